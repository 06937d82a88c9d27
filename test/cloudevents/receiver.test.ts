import { afterEach, describe, expect, test } from 'vitest'
import { serve } from '../../functions/serve.ts'
import { systemClock } from '../../shared/clock.ts'
import { type Answer, notHandled, notNow, settled, settledWith } from '../../shared/cloudevents/answers.ts'
import type { CloudEvent } from '../../shared/cloudevents/event.ts'
import { type ReceiverOptions, receiver } from '../../shared/cloudevents/receiver.ts'
import { readEvent } from '../../shared/cloudevents/wire.ts'
import { createLog } from '../../shared/log.ts'
import { settle, virtualClock } from '../support/clock.ts'
import { exchange, rawBodyOf, rawConnection, statusOf } from '../support/socket.ts'

const attributes = {
  'ce-specversion': '1.0',
  'ce-id': 'i-1',
  'ce-source': '/s',
  'ce-type': 't',
  'ce-subject': '/apis/neiam.org/v1/namespaces/shop/mutations/web',
  'ce-traceparent': '00-trace-01',
}
const head = (extra: Record<string, string> = {}) =>
  `${Object.entries({ host: 'x', ...attributes, ...extra })
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('')}\r\n`

function made(options: Partial<ReceiverOptions> = {}) {
  const lines: Record<string, unknown>[] = []
  const worked: string[] = []
  const log = createLog({
    name: 'test',
    level: 'debug',
    destination: { write: (line) => lines.push(JSON.parse(line)) },
  })
  const app = receiver({
    clock: systemClock,
    log,
    work: async (event) => {
      worked.push(event.id)
      return undefined
    },
    ...options,
  })
  return { app, lines, worked }
}

const post = (headers: Record<string, string> = attributes, body: string | null = null) =>
  new Request('http://x/', { method: 'POST', headers, body })

const stops: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop()
})

async function listening(options: Partial<ReceiverOptions> = {}) {
  const parts = made(options)
  const served = await serve({ app: parts.app, port: 0, host: '127.0.0.1', clock: systemClock })
  stops.push(() => served.drain({ withinMs: 1_000 }))
  return { ...parts, ...served }
}

const outcome: CloudEvent = {
  specversion: '1.0',
  id: 'o',
  source: '/f',
  type: 'done',
  extensions: {},
  data: { a: 1 },
}

describe('case 12: every 2xx is empty or an event, whatever the work does', () => {
  const works: [string, () => Promise<unknown>, number][] = [
    ['returns nothing', async () => undefined, 204],
    ['settles', async () => settled(), 204],
    ['returns some JSON', async () => ({ ok: true }), 204],
    ['returns text', async () => 'OK', 204],
    ['returns a Response', async () => new Response('OK'), 204],
    ['returns a status of its own', async () => ({ status: 201, message: 'made' }), 204],
    ['replies with an event', async () => settledWith(outcome), 200],
    ['replies with half an event', async () => ({ status: 200, event: { id: 'i', extensions: {} } }), 500],
    ['refuses', async () => notHandled('Not mine'), 422],
    ['puts off', async () => notNow('Later', 7), 503],
    ['throws', async () => Promise.reject(new Error('secret detail')), 500],
    [
      'throws at once',
      () => {
        throw new Error('secret detail')
      },
      500,
    ],
  ]
  test.each(works)('work that %s', async (_, work, status) => {
    const { app } = made({ work: work as ReceiverOptions['work'] })
    const response = await app.fetch(post())
    expect(response.status).toBe(status)
    const body = Buffer.from(await response.arrayBuffer())
    if (status === 204) expect(body).toHaveLength(0)
    if (status === 200)
      expect(readEvent({ headers: response.headers, body })).toEqual({
        ...outcome,
        datacontenttype: 'application/json',
      })
    expect(body.toString()).not.toContain('secret')
    if (status === 503) expect(response.headers.get('retry-after')).toBe('7')
  })

  test.each([
    ['ASCII', 'x'.repeat(5_000)],
    ['characters of several bytes', '変異'.repeat(1_000)],
  ])('a long message (%s) is cut to what Knative can put in a dead letter', async (_, message) => {
    const { app } = made({ work: async () => notNow(message, 7) })
    const body = Buffer.from(await (await app.fetch(post())).arrayBuffer())
    expect(body.length).toBeGreaterThan(760)
    expect(body.toString('base64').length).toBeLessThanOrEqual(1_024)
    expect(body.toString()).not.toContain('\ufffd')
  })

  test.each([
    ['GET', '/', 405],
    ['HEAD', '/', 405],
    ['PUT', '/', 405],
    ['OPTIONS', '/', 405],
    ['GET', '/favicon.ico', 404],
    ['POST', '/elsewhere', 400],
    ['GET', '/livez', 204],
    ['HEAD', '/readyz', 204],
    ['GET', '/metrics', 404],
  ])('%s %s', async (method, path, status) => {
    const { app, worked } = made()
    const response = await app.fetch(new Request(`http://x${path}`, { method, headers: attributes }))
    expect(response.status).toBe(status)
    if (response.ok) expect(await response.text()).toBe('')
    expect(worked).toEqual([])
  })
})

test('what is not an event is refused by the name of what is wrong, and no work is done', async () => {
  const { app, worked } = made()
  const { 'ce-type': _, ...untyped } = attributes
  const response = await app.fetch(post(untyped))
  expect([response.status, await response.text()]).toEqual([400, 'Attribute type is missing\n'])
  expect((await app.fetch(post({}, '{}'))).status).toBe(400)
  expect((await app.fetch(post({ 'content-type': 'application/cloudevents-batch+json' }, '[]'))).status).toBe(
    415,
  )
  expect((await app.fetch(post({ ...attributes, 'content-encoding': 'gzip' }, 'x'))).status).toBe(415)
  expect(worked).toEqual([])
})

test('each event has one line in the log, with what the work tells of it', async () => {
  const { app, lines } = made({ work: async () => settled({ writes: ['apply Deployment shop/web-red'] }) })
  await app.fetch(post())
  expect(lines).toHaveLength(1)
  expect(lines[0]).toMatchObject({
    level: 'info',
    msg: 'event worked on',
    object: attributes['ce-subject'],
    event: 'i-1',
    traceparent: '00-trace-01',
    writes: ['apply Deployment shop/web-red'],
    status: 204,
    durationMs: expect.any(Number),
  })
})

test('a plain JSON request may stand for an event, where a function says so', async () => {
  const { app, worked } = made({
    plain: (value) => (value === 'look' ? { ...outcome, id: 'plain' } : undefined),
  })
  expect((await app.fetch(post({ 'content-type': 'application/json' }, '"look"'))).status).toBe(204)
  expect((await app.fetch(post({ 'content-type': 'application/json' }, '"else"'))).status).toBe(400)
  expect((await app.fetch(post({ 'content-type': 'application/json' }, '{'))).status).toBe(400)
  expect(worked).toEqual(['plain'])
})

describe('the deadline', () => {
  const late = (stops: boolean) => {
    const clock = virtualClock()
    let isStopped = false
    const { app, lines } = made({
      clock,
      work: (_, { signal }) =>
        new Promise<Answer>((resolve) => {
          signal.addEventListener('abort', () => {
            isStopped = true
            if (stops) resolve(settled())
          })
        }),
    })
    return { clock, app, lines, isStopped: () => isStopped }
  }

  test('work is stopped before the broker’s 30 s are over, and put off', async () => {
    const { clock, app, isStopped } = late(true)
    const answer = app.fetch(post())
    await clock.advance(19_999)
    expect(isStopped()).toBe(false)
    await clock.advance(1)
    expect(isStopped()).toBe(true)
    expect((await answer).status).toBe(503)
  })

  test('work that does not stop is answered all the same, in time, and told of', async () => {
    const { clock, app, lines } = late(false)
    const answer = app.fetch(post())
    await clock.advance(20_000)
    await expect(Promise.race([answer, settle().then(() => 'waiting')])).resolves.toBe('waiting')
    await clock.advance(2_000)
    expect((await answer).status).toBe(503)
    expect(lines.map(({ msg }) => msg)).toContain('work did not stop when its time was up')
  })
})

test('a process that drains puts off what comes, and says that it is not ready', async () => {
  const { app, worked } = made({ draining: AbortSignal.abort() })
  const response = await app.fetch(post())
  expect(response.status).toBe(503)
  expect(response.headers.get('retry-after')).toBe('1')
  expect((await app.fetch(new Request('http://x/readyz'))).status).toBe(503)
  expect((await app.fetch(new Request('http://x/livez'))).status).toBe(204)
  expect(worked).toEqual([])
})

describe('case 51: bodies of every length, declared or not', () => {
  const json = { 'content-type': 'application/json', connection: 'close' }
  const chunked = (chunk: string, count: number) =>
    `${`${chunk.length.toString(16)}\r\n${chunk}\r\n`.repeat(count)}0\r\n\r\n`
  const big = 'x'.repeat(64 * 1024)

  test.each([
    ['a small chunked event', head({ ...json, 'transfer-encoding': 'chunked' }) + chunked('{"a":1}', 1), 204],
    ['5 MB in chunks', head({ ...json, 'transfer-encoding': 'chunked' }) + chunked(big, 80), 413],
    ['5 MB declared', head({ ...json, 'content-length': String(80 * big.length) }) + big.repeat(80), 413],
    ['5 MB declared and never sent', head({ ...json, 'content-length': String(80 * big.length) }), 413],
    ['a length smaller than the body', `${head({ ...json, 'content-length': '4' })}{"a":1}`, 400],
    ['a length that is no number', `${head({ ...json, 'content-length': 'abc' })}{}`, 400],
    [
      'both',
      head({ ...json, 'content-length': '7', 'transfer-encoding': 'chunked' }) + chunked('{"a":1}', 1),
      400,
    ],
    ['a gzip body', `${head({ ...json, 'content-encoding': 'gzip', 'content-length': '4' })}gzip`, 415],
    ['no body and no length', head({ connection: 'close' }), 204],
  ])('%s', async (_, request, status) => {
    const { port, worked } = await listening()
    const answer = await exchange(port, `POST / HTTP/1.1\r\n${request}`)
    expect(statusOf(answer)).toBe(status)
    expect(worked).toEqual(status === 204 ? ['i-1'] : [])
    if (status === 204) expect(rawBodyOf(answer)).toBe('')
  })

  test('a refused body is not kept', async () => {
    const { port } = await listening()
    const chunk = `10000\r\n${big}\r\n`
    const connection = await rawConnection(port)
    connection.write(`POST / HTTP/1.1\r\n${head({ ...json, 'transfer-encoding': 'chunked' })}`)
    const before = process.memoryUsage().arrayBuffers
    for (let sent = 0; sent < 800 && !connection.socket.destroyed; sent++) {
      connection.write(chunk)
      if (sent % 50 === 0) await settle()
    }
    await connection.closed
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(16 * 1024 * 1024)
  })
})

describe('case 52: senders that hang up', () => {
  test('500 of them, at every point, leave the process alive and the others’ work whole', {
    timeout: 20_000,
  }, async () => {
    const unhandled: unknown[] = []
    const onUnhandled = (reason: unknown) => unhandled.push(reason)
    process.on('unhandledRejection', onUnhandled)
    stops.push(async () => process.off('unhandledRejection', onUnhandled))
    let release = () => {}
    const gate = new Promise<void>((resolve) => {
      release = resolve
    })
    const begun: string[] = []
    const ended: string[] = []
    const { port, url, lines } = await listening({
      work: async (event) => {
        begun.push(event.id)
        await gate
        ended.push(event.id)
        return settled()
      },
    })
    const steady = Array.from({ length: 10 }, (_, index) =>
      fetch(url, { method: 'POST', headers: { ...attributes, 'ce-id': `steady-${index}` } }),
    )
    const cuts = Array.from({ length: 500 }, async (_, index) => {
      const connection = await rawConnection(port)
      const length = { 'ce-id': `cut-${index}`, 'content-type': 'application/json', 'content-length': '7' }
      const whole = `POST / HTTP/1.1\r\n${head(length)}{"a":1}`
      const upTo = [whole.indexOf('ce-type'), whole.length - 7, whole.length - 3, whole.length][index % 4]
      connection.write(whole.slice(0, upTo))
      await settle()
      connection.cut()
      await connection.closed
    })
    await Promise.all(cuts)
    release()
    for (const answer of await Promise.all(steady)) expect(answer.status).toBe(204)
    await expect.poll(() => ended.length).toBe(begun.length)
    expect(ended.filter((id) => id.startsWith('steady'))).toHaveLength(10)
    expect(unhandled).toEqual([])
    expect(lines.filter(({ level }) => level === 'error')).toEqual([])
    expect((await fetch(`${url}/livez`)).status).toBe(204)
  })
})
