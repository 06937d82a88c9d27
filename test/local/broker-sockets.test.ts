import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../shared/clock.ts'
import { type BrokerReport, broker } from '../../shared/local/events/broker.ts'
import { deliveryOf } from '../../shared/local/events/delivery.ts'
import { listenLocally } from '../../shared/local/listen.ts'
import { eventually } from '../support/eventually.ts'

/** Subscribers that misbehave on real sockets. */

type Handler = (request: IncomingMessage, response: ServerResponse, tries: number) => void

const closers: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

async function subscriber(handler: Handler) {
  const got: { headers: IncomingMessage['headers']; body: string }[] = []
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    got.push({ headers: request.headers, body })
    handler(request, response, got.length)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  closers.push(
    () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  )
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, got }
}

const well: Handler = (_, response) => response.writeHead(204).end()

/** A broker on a socket between a sender and a subscriber that behaves as told. */
async function world(handler: Handler, delivery: object = { retry: 2, timeout: 'PT0.3S' }) {
  const [target, dead] = [await subscriber(handler), await subscriber(well)]
  const reports: BrokerReport[] = []
  const made = broker({
    brokers: ['ns/default'],
    subscriptions: [
      {
        namespace: 'ns',
        name: 'work',
        broker: 'default',
        accepts: () => true,
        subscriberUrl: target.url,
        delivery: deliveryOf('d', { ...delivery }),
        deadLetterUrl: dead.url,
      },
    ],
    brokerUrl: (namespace, name) => `http://nobody.invalid/${namespace}/${name}`,
    post: (url, init) => fetch(url, init),
    clock: systemClock,
    report: (report) => reports.push(report),
  })
  closers.push(async () => {
    await made.stop()
  })
  const listening = await listenLocally(made.app)
  closers.push(() => listening.close())
  const send = (headers: Record<string, string> = {}, body = '{"a":1}') =>
    fetch(`${listening.url}/ns/default`, {
      method: 'POST',
      body,
      headers: {
        'ce-specversion': '1.0',
        'ce-id': '1',
        'ce-source': '/t',
        'ce-type': 'x',
        'content-type': 'application/json',
        ...headers,
      },
    })
  return { send, target, dead, reports, kinds: () => reports.map(({ kind }) => kind) }
}

describe('a subscriber on a socket that', () => {
  it('resets the connection gets the event again', async () => {
    const w = await world((request, response, tries) =>
      tries < 3 ? request.socket.destroy() : response.writeHead(204).end(),
    )
    await w.send()
    await eventually(() => expect(w.kinds()).toEqual(['accepted', 'retrying', 'retrying', 'delivered']))
    expect(w.target.got.map(({ body }) => body)).toEqual(['{"a":1}', '{"a":1}', '{"a":1}'])
  })

  it('closes it in the middle of its answer gets the event again', async () => {
    const w = await world((request, response, tries) => {
      if (tries > 1) {
        response.writeHead(204).end()
        return
      }
      response.writeHead(200, { 'content-length': '100' }).write('half')
      setImmediate(() => request.socket.destroy())
    })
    await w.send()
    await eventually(() => expect(w.kinds()).toEqual(['accepted', 'retrying', 'delivered']))
  })

  it('never answers is cut off by the timeout each time, and then the event is given up', async () => {
    const w = await world(() => {})
    await w.send()
    await eventually(() => expect(w.dead.got).toHaveLength(1))
    expect(w.target.got).toHaveLength(3)
    expect(w.dead.got[0]?.headers['ce-knativeerrorcode']).toBeUndefined()
  })

  it('begins an answer and never ends it is cut off too', async () => {
    const w = await world((_, response) => response.writeHead(500).write('begun'), {
      retry: 0,
      timeout: 'PT0.3S',
    })
    await w.send()
    await eventually(() => expect(w.dead.got).toHaveLength(1))
  })

  it('redirects is followed, with the same event for a 307', async () => {
    const w = await world((request, response) =>
      request.url === '/moved'
        ? response.writeHead(204).end()
        : response.writeHead(307, { location: '/moved' }).end(),
    )
    await w.send()
    await eventually(() => expect(w.target.got).toHaveLength(2))
    expect(w.target.got[1]?.headers['ce-id']).toBe(w.target.got[0]?.headers['ce-id'])
    expect(w.dead.got).toHaveLength(0)
  })

  it('answers an HTML page with line ends gets it, in base64, into the dead letter', async () => {
    const page = `<html>\r\n${'é'.repeat(2_000)}\r\n</html>`
    const w = await world((_, response) => response.writeHead(400, { 'content-type': 'text/html' }).end(page))
    await w.send()
    await eventually(() => expect(w.dead.got).toHaveLength(1))
    const data = String(w.dead.got[0]?.headers['ce-knativeerrordata'])
    expect(data).toBe(Buffer.from(page).toString('base64').slice(0, 1024))
    expect(w.dead.got[0]?.body).toBe('{"a":1}')
  })

  it('wants text that is not ASCII gets the very bytes', async () => {
    const w = await world(well)
    const subject = Buffer.from('変異/ü', 'utf8').toString('latin1')
    expect((await w.send({ 'ce-subject': subject }, '{"n":"ü"}')).status).toBe(202)
    await eventually(() => expect(w.target.got).toHaveLength(1))
    expect(w.target.got[0]).toMatchObject({ headers: { 'ce-subject': subject }, body: '{"n":"ü"}' })
  })
})
