import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, onTestFinished, test } from 'vitest'
import { systemClock } from '../../shared/clock.ts'
import type { CloudEvent } from '../../shared/cloudevents/event.ts'
import { type Sink, SinkError, type SinkOptions, sink } from '../../shared/cloudevents/sink.ts'
import { sinkConfig, sinkNames } from '../../shared/cloudevents/sink-config.ts'
import { settle, virtualClock } from '../support/clock.ts'

const event: CloudEvent = {
  specversion: '1.0',
  id: 'i-1',
  source: '/s',
  type: 't',
  extensions: {},
  data: { a: 1 },
}
const stops: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop()
})

type Handler = (request: IncomingMessage, response: ServerResponse, number: number) => void

/** A sink on a real socket; `handler` answers the n-th request (from 1). */
async function listening(handler: Handler, keepAliveTimeoutMs = 5_000) {
  const seen: { path: string | undefined; headers: IncomingMessage['headers']; body: string }[] = []
  const server = createServer({ keepAliveTimeout: keepAliveTimeoutMs }, async (request, response) => {
    let body = ''
    try {
      for await (const chunk of request) body += chunk
    } catch {
      return
    }
    handler(request, response, seen.push({ path: request.url, headers: request.headers, body }))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  stops.push(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, seen, server }
}

function to(url: string, options: Partial<SinkOptions> = {}): Sink {
  const made = sink({ url, clock: systemClock, userAgent: 'mutantops/test', ...options })
  stops.push(() => made.close())
  return made
}

const answer =
  (status: number): Handler =>
  (_, response) => {
    response.statusCode = status
    response.end()
  }

describe('case 24: an event has left only when the sink said so', () => {
  test.each([202, 204, 200, 400, 404, 429, 500, 503])('the status %i is told as it is', async (status) => {
    const there = await listening(answer(status))
    expect(await to(there.url).send(event)).toEqual({ status, resets: 0 })
    expect(there.seen).toHaveLength(1)
  })

  test('a redirect is not followed', async () => {
    const elsewhere = await listening(answer(202))
    const there = await listening((_, response) => response.writeHead(307, { location: elsewhere.url }).end())
    expect((await to(there.url).send(event)).status).toBe(307)
    expect(elsewhere.seen).toHaveLength(0)
  })

  test('a socket closed after the headers is no answer', async () => {
    const there = await listening((_, response) => {
      response.writeHead(202, { 'content-length': '10' })
      response.flushHeaders()
      response.write('x', () => response.socket?.destroy())
    })
    const error = await to(there.url)
      .send(event)
      .catch((caught) => caught)
    expect(error).toBeInstanceOf(SinkError)
    expect(error.reason).toBe('reset')
    expect(error.message).not.toContain('127.0.0.1')
    expect(there.seen).toHaveLength(2)
  })

  test('what the sink asks to wait is told', async () => {
    const there = await listening((_, response) => response.writeHead(429, { 'retry-after': '3' }).end())
    expect(await to(there.url).send(event)).toEqual({ status: 429, retryAfterSeconds: 3, resets: 0 })
  })

  test('an event without data can be sent', async () => {
    const there = await listening(answer(202))
    const { data: _, ...bare } = event
    expect((await to(there.url).send(bare)).status).toBe(202)
    expect(there.seen[0]).toMatchObject({ body: '', headers: { 'ce-id': 'i-1' } })
    expect(there.seen[0]?.headers).not.toHaveProperty('content-type')
  })

  test('a hanging sink is given up at the timeout, and does not hold up others', async () => {
    const clock = virtualClock()
    let hung = 0
    const there = await listening((_, response, number) => {
      if (number === 1) hung++
      else response.writeHead(202).end()
    })
    const client = to(there.url, { clock })
    const first = client.send(event, { timeoutMs: 70_000 }).catch((caught) => caught)
    await expect.poll(() => hung).toBe(1)
    expect((await client.send({ ...event, id: 'i-2' })).status).toBe(202)
    await clock.advance(69_999)
    await expect(Promise.race([first, settle().then(() => 'waiting')])).resolves.toBe('waiting')
    await clock.advance(1)
    expect(await first).toMatchObject({ name: 'SinkError', reason: 'timeout' })
  })

  test('a send that its caller gives up throws the caller’s reason', async () => {
    const there = await listening(() => {})
    const giveUp = new AbortController()
    const sent = to(there.url).send(event, { signal: giveUp.signal })
    await expect.poll(() => there.seen.length).toBe(1)
    giveUp.abort(new Error('enough'))
    await expect(sent).rejects.toThrow('enough')
  })

  test('a refused connection is told as such', async () => {
    const there = await listening(answer(202))
    await new Promise((resolve) => there.server.close(resolve))
    await expect(to(there.url).send(event)).rejects.toMatchObject({ reason: 'refused' })
  })
})

describe('case 55: a connection that the sink was just closing', () => {
  test('is repeated at once, once, and counted apart', async () => {
    let resets = 0
    const there = await listening((request, response, number) => {
      if (number === 2) request.socket.destroy()
      else response.writeHead(202).end()
    })
    const client = to(there.url, { onReset: () => resets++ })
    expect((await client.send(event)).resets).toBe(0)
    expect(await client.send({ ...event, id: 'i-2' })).toEqual({ status: 202, resets: 1 })
    expect(resets).toBe(1)
    expect(there.seen.map(({ headers }) => headers['ce-id'])).toEqual(['i-1', 'i-2', 'i-2'])
  })

  test('loses no event of bursts sent just as idle connections are closed', async () => {
    const got = new Map<string, number>()
    const there = await listening((request, response) => {
      const id = String(request.headers['ce-id'])
      got.set(id, (got.get(id) ?? 0) + 1)
      response.writeHead(202).end()
    }, 20)
    const client = to(there.url)
    for (let burst = 0; burst < 25; burst++) {
      const ids = Array.from({ length: 20 }, (_, index) => `${burst}.${index}`)
      const answers = await Promise.all(ids.map((id) => client.send({ ...event, id })))
      expect(answers.map(({ status }) => status)).toEqual(ids.map(() => 202))
      there.server.closeIdleConnections()
      await systemClock.sleep(burst % 5)
    }
    expect(got.size).toBe(500)
    expect(Math.max(...got.values())).toBeLessThanOrEqual(2)
  })
})

describe('what a SinkBinding says', () => {
  test('its extensions stand on every event, its token in every request, read again when it was rotated', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'mutantops-'))
    onTestFinished(() => rm(folder, { recursive: true }))
    const tokenFile = join(folder, 'token')
    const there = await listening(answer(202))
    const clock = virtualClock()
    const client = to(there.url, { clock, tokenFile, extensions: { tenant: 'a b' } })
    await client.send(event)
    await writeFile(tokenFile, 'first\n')
    await clock.advance(30_000)
    await client.send(event)
    await writeFile(tokenFile, 'second')
    await clock.advance(30_000)
    await client.send(event)
    expect(there.seen.map(({ headers }) => headers.authorization)).toEqual([
      undefined,
      'Bearer first',
      'Bearer second',
    ])
    expect(there.seen[0]?.headers['ce-tenant']).toBe('a%20b')
    expect(there.seen[0]?.headers['user-agent']).toBe('mutantops/test')
  })

  test('is named in the log without its query', () => {
    const config = sinkConfig({ K_SINK: 'http://broker:8080/ns/default?token=secret' })
    expect(config && sinkNames(config)).toEqual(['http://broker:8080/ns/default'])
  })

  test('without K_SINK there is none', () => {
    expect(sinkConfig({})).toBeUndefined()
    expect(sinkConfig({ K_SINK: ' ' })).toBeUndefined()
  })

  test('is read from the environment', () => {
    const env = { K_SINK: 'http://broker/x', K_CE_OVERRIDES: '{"extensions":{"a":"b"}}', K_CA_CERTS: 'PEM' }
    expect(sinkConfig(env)).toEqual({
      url: 'http://broker/x',
      // A broker may hold a POST through all the tries of a Trigger.
      timeoutMs: 600_000,
      extensions: { a: 'b' },
      caCerts: 'PEM',
      tokenFile: '/oidc/token',
    })
    expect(sinkConfig({ K_SINK: 'http://broker', K_CE_OVERRIDES: '{}' })?.extensions).toEqual({})
  })

  test("without a broker each event goes to its kind's function, and a resync's request to the resync", async () => {
    const there = await listening(answer(204))
    const env = {
      SINK_MUTATION: `${there.url}mutation`,
      SINK_MUTANTDEPLOYMENT: `${there.url}mutant-deployment`,
      SINK_RESYNC: `${there.url}resync`,
    }
    const config = sinkConfig(env)
    expect(config?.timeoutMs).toBe(45_000)
    const out = to(there.url, config)
    const of = (kind: string) => ({ ...event, extensions: { kind } })
    await out.send(of('Mutation'))
    await out.send(of('MutantDeployment'))
    await out.send({ ...event, type: 'org.neiam.resync.requested' })
    expect(there.seen.map(({ path }) => path)).toEqual(['/mutation', '/mutant-deployment', '/resync'])
    await expect(out.send(of('Secret'))).rejects.toThrow(SinkError)
  })

  test.each([
    [{ SINK_MUTATION: 'http://a' }, 'SINK_MUTANTDEPLOYMENT is missing'],
    [{ SINK_RESYNC: 'http://a', K_SINK: 'http://b' }, 'SINK_MUTANTDEPLOYMENT is missing'],
    [
      {
        SINK_MUTATION: 'http://a',
        SINK_MUTANTDEPLOYMENT: 'http://a',
        SINK_RESYNC: 'http://a',
        K_SINK: 'http://b',
      },
      'exclude each other',
    ],
    [
      { SINK_MUTATION: 'http://a', SINK_MUTANTDEPLOYMENT: 'a', SINK_RESYNC: 'http://a' },
      'SINK_MUTANTDEPLOYMENT is not',
    ],
  ])('%o is refused: %s', (env, message) => {
    expect(() => sinkConfig(env)).toThrow(message)
  })

  test.each([
    [{ K_SINK: 'broker' }, 'K_SINK'],
    [{ K_SINK: 'ftp://broker' }, 'K_SINK'],
    [{ K_SINK: 'http://me:secret@broker' }, 'K_SINK'],
    [{ K_CE_OVERRIDES: '{' }, 'K_CE_OVERRIDES'],
    [{ K_CE_OVERRIDES: '[]' }, 'K_CE_OVERRIDES'],
    [{ K_CE_OVERRIDES: '{"extensions":{"A":"b"}}' }, 'K_CE_OVERRIDES'],
    [{ K_CE_OVERRIDES: '{"extensions":{"type":"b"}}' }, 'K_CE_OVERRIDES'],
    [{ K_CE_OVERRIDES: '{"extensions":{"a":1}}' }, 'K_CE_OVERRIDES'],
  ])('%o is refused by the name of the variable', (env, name) => {
    expect(() => sinkConfig({ K_SINK: 'http://broker', ...env })).toThrow(name)
  })
})
