import type { ServerResponse } from 'node:http'
import { afterEach, describe, expect, test } from 'vitest'
import { type ResyncContext, resyncApp } from '../../functions/resync.ts'
import { systemClock } from '../../shared/clock.ts'
import { resyncRequest } from '../../shared/cloudevents/envelope.ts'
import type { CloudEvent } from '../../shared/cloudevents/event.ts'
import { sink } from '../../shared/cloudevents/sink.ts'
import { binaryOf } from '../../shared/cloudevents/write.ts'
import type { StoredObject } from '../../shared/kinds/object.ts'
import { virtualClock } from '../support/clock.ts'
import { functionContext, testSink } from '../support/function.ts'
import { lists } from '../support/lists.ts'

/** The real clock, with waits ten times as short. */
const hasty = {
  ...systemClock,
  sleep: (ms: number, signal?: AbortSignal) => systemClock.sleep(ms / 10, signal),
}

const stops: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop()
})

const mutation = (name: string, isDone = true): StoredObject => ({
  apiVersion: 'neiam.org/v1',
  kind: 'Mutation',
  metadata: { namespace: 'shop', name, uid: `uid-${name}`, resourceVersion: '1' },
  done: isDone,
})
const ping: CloudEvent = {
  specversion: '1.0',
  id: 'ping-1',
  source: '/apis/v1/namespaces/mutantops/pingsources/resync',
  type: 'dev.knative.sources.ping',
  extensions: {},
}

async function world(
  objects: StoredObject[],
  options: {
    answer?: Parameters<typeof testSink>[0]
    pageLength?: number
    ctx?: Partial<ResyncContext>
  } = {},
) {
  const there = await testSink(options.answer)
  const api = lists(objects, options.pageLength ?? 500)
  const base = functionContext(api.client)
  const out = sink({ url: there.url, clock: base.clock, userAgent: 'test' })
  stops.push(there.close, () => out.close())
  const ctx = {
    ...base,
    sink: out,
    namespaces: undefined,
    needsWork: ({ parent }: { parent: StoredObject }) => parent.done === false,
    ...options.ctx,
  }
  const app = resyncApp(ctx)
  const send = (event: CloudEvent) => app.fetch(request(event))
  const metric = async (name: string) => {
    const { text } = await ctx.metrics.text()
    return text.split('\n').filter((line) => line.startsWith(name))
  }
  return { app, api, there, send, metric, lines: base.lines, backgrounds: base.backgrounds }
}

function request(event: CloudEvent): Request {
  const { headers, body } = binaryOf(event)
  return new Request('http://x/', { method: 'POST', headers, body: body as string | null })
}

const full = (url: string, body: string) =>
  new Request(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body })

describe('a resync', () => {
  test('over objects in sync reads pages and sends nothing', async () => {
    const { send, there, api, metric } = await world([mutation('a'), mutation('b')])
    const response = await send(ping)
    expect([response.status, await response.text()]).toEqual([204, ''])
    expect(there.events).toEqual([])
    expect(api.requests).toHaveLength(3)
    expect(api.requests.every((path) => !path.includes('secrets'))).toBe(true)
    expect(await metric('mutantops_resync_objects_total')).toEqual([
      'mutantops_resync_objects_total{kind="Mutation"} 2',
    ])
    expect(await metric('mutantops_resync_out_of_sync_total')).toEqual([])
  })

  test('sends one event for each object that needs work, the same ones when it is delivered again', async () => {
    const { send, there, metric } = await world([mutation('a'), mutation('b', false), mutation('c', false)])
    expect((await send(ping)).status).toBe(204)
    expect((await send(ping)).status).toBe(204)
    const ids = there.events.map(({ id }) => id)
    expect(ids.slice(0, 2).sort()).toEqual(['uid-b.resync.ping-1', 'uid-c.resync.ping-1'])
    expect(ids.slice(2).sort()).toEqual(ids.slice(0, 2).sort())
    expect(there.events[0]).toMatchObject({
      type: 'org.neiam.object.resync',
      source: '/clusters/here/resync',
      extensions: { kind: 'Mutation', namespace: 'shop', cause: 'resync' },
    })
    expect(await metric('mutantops_resync_out_of_sync_total')).toEqual([
      'mutantops_resync_out_of_sync_total{kind="Mutation"} 4',
    ])
  })

  test.each([
    [
      'a person’s POST',
      (app: ReturnType<typeof resyncApp>) => app.fetch(full('http://x/', '{"mode":"full"}')),
    ],
    [
      'the hourly cron',
      (app: ReturnType<typeof resyncApp>) => app.fetch(request({ ...ping, data: { mode: 'full' } })),
    ],
  ])('in full, asked for by %s, sends every object', async (_, ask) => {
    const { app, there } = await world([mutation('a'), mutation('b', false)])
    expect((await ask(app)).status).toBe(204)
    expect(there.events.map(({ extensions }) => extensions.name).sort()).toEqual(['a', 'b'])
  })

  test.each([
    ['a mode that is none', '{"mode":"all"}'],
    ['no mode', '{}'],
    ['a list', '[]'],
    ['no JSON', '{'],
  ])('asked for with %s is refused and looks at nothing', async (_, body) => {
    const { app, api } = await world([mutation('a')])
    expect((await app.fetch(full('http://x/', body))).status).toBe(400)
    expect(api.requests).toEqual([])
  })

  test.each([
    ['a page without a place', { mode: 'needed', tick: 't', page: { number: 1 } }],
    [
      'a place outside',
      {
        mode: 'needed',
        tick: 't',
        page: { number: 1, position: { pages: {}, after: { namespace: '..', plural: 'x', name: 'y' } } },
      },
    ],
    [
      'a token that is none',
      {
        tick: 't',
        page: {
          number: 1,
          position: { pages: { mutations: 'x' }, after: { namespace: 'a', plural: 'x', name: 'y' } },
        },
      },
    ],
    ['text', 'full'],
  ])('asked for with %s is refused', async (_, data) => {
    const { send, api } = await world([mutation('a')])
    const asked = { ...resyncRequest({ cluster: 'c', from: 'watcher', mode: 'needed', tick: 't' }), data }
    expect((await send(asked)).status).toBe(400)
    expect(api.requests).toEqual([])
  })

  test('is not asked for by an event for somebody else', async () => {
    const { send, api } = await world([mutation('a')])
    expect((await send({ ...ping, type: 'org.neiam.object.applied' })).status).toBe(422)
    expect(api.requests).toEqual([])
  })
})

describe('a resync whose time is short', () => {
  test('goes on by events to itself until each object was looked at once', async () => {
    const objects = Array.from({ length: 12 }, (_, index) =>
      mutation(`m${String(index).padStart(2, '0')}`, index % 3 !== 0),
    )
    let offsetMs = 0
    const clock = { ...systemClock, monotonicMs: () => systemClock.monotonicMs() + offsetMs }
    const looked: string[] = []
    const { send, there } = await world(objects, {
      pageLength: 5,
      ctx: {
        clock,
        needsWork: ({ parent }) => {
          looked.push(parent.metadata.name)
          offsetMs += 4_000
          return parent.done === false
        },
      },
    })
    expect((await send(ping)).status).toBe(204)
    let pages = 0
    for (;;) {
      const next = there.events.find(({ id }) => id === `resync.needed.ping-1.${pages + 1}`)
      if (!next) break
      pages++
      expect((await send(next)).status).toBe(204)
    }
    expect(pages).toBeGreaterThan(1)
    expect(looked).toEqual(objects.map(({ metadata }) => metadata.name))
    const sent = there.events.filter(({ type }) => type === 'org.neiam.object.resync')
    expect(sent.map(({ extensions }) => extensions.name)).toEqual(['m00', 'm03', 'm06', 'm09'])
  })
})

describe('a resync’s sink', () => {
  test('that holds each POST until the work is done does not hold it up', async () => {
    const held: ServerResponse[] = []
    const objects = Array.from({ length: 60 }, (_, index) => mutation(`m${index}`, false))
    const clock = virtualClock()
    const { send, there, backgrounds, metric } = await world(objects, {
      answer: (response) => void held.push(response),
      ctx: { clock },
    })
    const answer = send(ping)
    for (let turn = 0; turn < 4; turn++) {
      await expect.poll(() => there.events.length).toBeGreaterThanOrEqual(Math.min(60, (turn + 1) * 16))
      await clock.advance(3_000)
    }
    expect((await answer).status).toBe(204)
    expect(there.events).toHaveLength(60)
    for (const response of held) response.writeHead(202).end()
    await Promise.all(backgrounds)
    expect(await metric('mutantops_resync_events_total')).toEqual([
      'mutantops_resync_events_total{result="slow"} 60',
      'mutantops_resync_events_total{result="sent"} 60',
    ])
  })

  test('that refuses now and then gets the event again', async () => {
    const { send, there, backgrounds } = await world([mutation('a', false)], {
      answer: (response, _, number) => response.writeHead(number < 3 ? 503 : 202).end(),
      ctx: { clock: hasty },
    })
    expect((await send(ping)).status).toBe(204)
    await Promise.all(backgrounds)
    expect(there.events).toHaveLength(3)
  })

  test('that refuses all makes the resync come again, and is not sent all there is', async () => {
    const objects = Array.from({ length: 300 }, (_, index) => mutation(`m${index}`, false))
    const { send, there } = await world(objects, {
      answer: (response) => response.writeHead(500).end(),
      ctx: { clock: hasty },
    })
    const response = await send(ping)
    expect(response.status).toBe(503)
    expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0)
    expect(there.events.length).toBeLessThan(200)
  })
})

test('an API that is in the way makes the resync come again', async () => {
  const { send, api } = await world([])
  api.client.list = async () => {
    const { KubeError } = await import('../../shared/kube/errors.ts')
    throw new KubeError('GET /x: 503', { code: 503 })
  }
  expect((await send(ping)).status).toBe(503)
})
