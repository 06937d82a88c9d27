import { describe, expect, it } from 'vitest'
import { type BrokerReport, broker, type Subscription } from '../../shared/local/events/broker.ts'
import { deliveryOf } from '../../shared/local/events/delivery.ts'
import { triggerFilter } from '../../shared/local/events/filters.ts'
import { settle, virtualClock } from '../support/clock.ts'

const ours = { retry: 8, backoffPolicy: 'linear', backoffDelay: 'PT10S', timeout: 'PT30S' }
const functionUrl = 'http://mutation.mutantops.svc.cluster.local'
const deadUrl = 'http://dead-letter.mutantops.svc.cluster.local'
const brokerUrl = 'http://broker.local/mutantops/default'

interface Arrival {
  url: string
  atMs: number
  headers: Record<string, string>
  body: string
}

type Subscriber = (arrival: Arrival, signal: AbortSignal) => Promise<Response> | Response

/** A broker in virtual time; `subscribers` says how each URL answers. */
function world(options: {
  subscribers: Record<string, Subscriber>
  delivery?: Record<string, unknown>
  deadLetter?: boolean
  subscriptions?: Partial<Subscription>[]
}) {
  const clock = virtualClock()
  const arrivals: Arrival[] = []
  const reports: BrokerReport[] = []
  const subscription: Subscription = {
    namespace: 'mutantops',
    name: 'mutation',
    broker: 'default',
    accepts: triggerFilter('t', { filters: [{ exact: { kind: 'Mutation' } }] }),
    subscriberUrl: functionUrl,
    delivery: deliveryOf('d', options.delivery ?? ours),
    deadLetterUrl: options.deadLetter === false ? undefined : deadUrl,
  }
  const made = broker({
    brokers: ['mutantops/default'],
    subscriptions: (options.subscriptions ?? [{}]).map((changes) => ({ ...subscription, ...changes })),
    brokerUrl: () => brokerUrl,
    clock,
    report: (report) => reports.push(report),
    async post(url, init) {
      if (url.startsWith('http://broker.local')) return made.app.fetch(new Request(url, init))
      const arrival = {
        url,
        atMs: clock.monotonicMs(),
        headers: Object.fromEntries(new Headers(init.headers)),
        body: await new Response(init.body ?? null).text(),
      }
      arrivals.push(arrival)
      const subscriber = options.subscribers[url]
      if (!subscriber || !init.signal) throw Object.assign(new Error('refused'), { code: 'ECONNREFUSED' })
      return subscriber(arrival, init.signal)
    },
  })
  const post = (changes: Record<string, string> = {}, body = '{}', path = '/mutantops/default') =>
    made.app.request(path, {
      method: 'POST',
      body,
      headers: {
        'ce-specversion': '1.0',
        'ce-id': '1',
        'ce-source': '/test',
        'ce-type': 'org.neiam.object.applied',
        'ce-kind': 'Mutation',
        'content-type': 'application/json',
        ...changes,
      },
    })
  const at = (url: string) => arrivals.filter((arrival) => arrival.url === url)
  const kinds = () => reports.map((report) => report.kind)
  return { broker: made, clock, post, arrivals, at, reports, kinds }
}

const done = () => new Response(null, { status: 204 })
const status = (code: number, body: string | null = null) => new Response(body, { status: code })

describe('the local broker', () => {
  it('answers 202 and delivers the event with its arrival time, asking for a reply', async () => {
    const w = world({ subscribers: { [functionUrl]: done } })
    expect(
      (
        await w.post(
          { 'ce-subject': '/s', traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' },
          '{"name":"web"}',
        )
      ).status,
    ).toBe(202)
    await w.broker.settled()
    expect(w.arrivals).toEqual([
      {
        url: functionUrl,
        atMs: 0,
        body: '{"name":"web"}',
        headers: {
          'ce-specversion': '1.0',
          'ce-id': '1',
          'ce-source': '/test',
          'ce-type': 'org.neiam.object.applied',
          'ce-kind': 'Mutation',
          'ce-subject': '/s',
          'ce-knativearrivaltime': '2026-01-01T00:00:00.000Z',
          'content-type': 'application/json',
          'kn-namespace': 'mutantops',
          prefer: 'reply',
          traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
        },
      },
    ])
  })

  it('gives a structured event on in binary mode', async () => {
    const w = world({ subscribers: { [functionUrl]: done } })
    const body = JSON.stringify({
      specversion: '1.0',
      id: '1',
      source: '/',
      type: 'y',
      kind: 'Mutation',
      data: [1],
    })
    const answer = await w.broker.app.request('/mutantops/default', {
      method: 'POST',
      body,
      headers: { 'content-type': 'application/cloudevents+json' },
    })
    expect(answer.status).toBe(202)
    await w.broker.settled()
    expect(w.arrivals[0]).toMatchObject({ body: '[1]', headers: { 'ce-kind': 'Mutation' } })
  })

  it('sends an event to each Trigger that wants it and to no other', async () => {
    const urls = ['http://a', 'http://b', 'http://c']
    const w = world({
      subscribers: Object.fromEntries(urls.map((url) => [url, done])),
      subscriptions: [
        { name: 'a', subscriberUrl: 'http://a' },
        { name: 'b', subscriberUrl: 'http://b', accepts: () => true },
        { name: 'c', subscriberUrl: 'http://c', accepts: () => false },
        { name: 'd', subscriberUrl: 'http://c', broker: 'another' },
      ],
    })
    await w.post()
    await w.post({ 'ce-kind': 'MutantDeployment' })
    await w.broker.settled()
    expect(w.arrivals.map(({ url }) => url).sort()).toEqual(['http://a', 'http://b', 'http://b'])
  })

  it.each([
    ['no event', { 'ce-specversion': '' }, '/mutantops/default', 400],
    ['a missing id', { 'ce-id': '' }, '/mutantops/default', 400],
    [
      'a batch',
      { 'ce-specversion': '', 'content-type': 'application/cloudevents-batch+json' },
      '/mutantops/default',
      400,
    ],
    ['an unknown broker', {}, '/mutantops/none', 404],
    ['the root', {}, '/', 404],
    ['a path that is no broker', {}, '/mutantops/default/more', 400],
  ])('refuses %s', async (_, headers, path, code) => {
    const w = world({ subscribers: {} })
    expect((await w.post(headers, '{}', path)).status).toBe(code)
    expect(w.kinds()).toEqual([])
  })

  it('takes a trailing slash, and other methods than POST get 405', async () => {
    const w = world({ subscribers: { [functionUrl]: done } })
    expect((await w.post({}, '{}', '/mutantops/default/')).status).toBe(202)
    expect((await w.broker.app.request('/mutantops/default')).status).toBe(405)
    expect((await w.broker.app.request('/mutantops/default', { method: 'OPTIONS' })).status).toBe(200)
  })

  it('refuses an event over its limit', async () => {
    const w = world({ subscribers: {} })
    expect((await w.post({}, 'x'.repeat(9 * 1024 * 1024))).status).toBe(413)
  })
})

describe('delivery of the local broker', () => {
  it('tries at once, then 10, 20 … 70 s apart, and then sends a dead letter', async () => {
    const w = world({ subscribers: { [functionUrl]: () => status(503, 'later'), [deadUrl]: done } })
    await w.post()
    await w.clock.advance(300_000)
    expect(w.at(functionUrl).map(({ atMs }) => atMs / 1000)).toEqual([0, 0, 10, 30, 60, 100, 150, 210, 280])
    expect(w.at(deadUrl)).toHaveLength(1)
    expect(w.at(deadUrl)[0]?.headers).toMatchObject({
      'ce-id': '1',
      'ce-knativeerrordest': functionUrl,
      'ce-knativeerrorcode': '503',
      'ce-knativeerrordata': Buffer.from('later').toString('base64'),
    })
    expect(w.broker.pending()).toBe(0)
  })

  it('ignores Retry-After', async () => {
    const answer = () => new Response(null, { status: 429, headers: { 'retry-after': '3600' } })
    const w = world({ subscribers: { [functionUrl]: answer, [deadUrl]: done } })
    await w.post()
    await w.clock.advance(10_000)
    expect(w.at(functionUrl)).toHaveLength(3)
    await w.broker.stop()
  })

  it.each([400, 413, 415, 422])('%i goes to the dead letter sink at once', async (code) => {
    const w = world({ subscribers: { [functionUrl]: () => status(code, 'no'), [deadUrl]: done } })
    await w.post()
    await w.broker.settled()
    expect(w.arrivals.map(({ url }) => url)).toEqual([functionUrl, deadUrl])
    expect(w.at(deadUrl)[0]?.headers['ce-knativeerrorcode']).toBe(String(code))
  })

  it('a subscriber that does not listen gets all its tries', async () => {
    const w = world({ subscribers: { [deadUrl]: done } })
    await w.post()
    await w.clock.advance(280_000)
    expect(w.at(functionUrl)).toHaveLength(9)
    expect(w.at(deadUrl)[0]?.headers).toMatchObject({
      'ce-knativeerrorcode': '500',
      'ce-knativeerrordata': Buffer.from(`dispatch error: POST ${functionUrl}: ECONNREFUSED`).toString(
        'base64',
      ),
    })
  })

  it('a subscriber that hangs is cut off after the timeout, and the dead letter tells nothing', async () => {
    let cut = 0
    const hang: Subscriber = (_, signal) =>
      new Promise((_, reject) => {
        signal.addEventListener('abort', () => {
          cut++
          reject(signal.reason)
        })
      })
    const w = world({
      subscribers: { [functionUrl]: hang, [deadUrl]: done },
      delivery: { retry: 1, timeout: 'PT30S' },
    })
    await w.post()
    await w.clock.advance(59_999)
    expect(w.at(deadUrl)).toHaveLength(0)
    await w.clock.advance(1)
    expect(cut).toBe(2)
    expect(
      Object.keys(w.at(deadUrl)[0]?.headers ?? {}).filter((name) => name.startsWith('ce-knativeerror')),
    ).toEqual([])
  })

  it('200 with "OK" in the body runs the function again and again, as on Knative (case 12)', async () => {
    const w = world({
      subscribers: { [functionUrl]: () => status(200, 'OK'), [deadUrl]: done },
      delivery: { retry: 2 },
    })
    await w.post()
    await w.clock.advance(0)
    expect(w.at(functionUrl)).toHaveLength(3)
    expect(w.at(deadUrl)).toHaveLength(1)
  })

  it('a failing dead letter sink is tried on the same schedule, and then the loss is told', async () => {
    const w = world({
      subscribers: { [functionUrl]: () => status(400), [deadUrl]: () => status(500) },
      delivery: { retry: 2, backoffPolicy: 'exponential', backoffDelay: 'PT1S' },
    })
    await w.post()
    await w.clock.advance(10_000)
    expect(w.at(deadUrl).map(({ atMs }) => atMs)).toEqual([0, 1000, 3000])
    expect(w.reports.at(-1)).toMatchObject({ kind: 'lost', reason: 'the dead letter sink: answer 500' })
  })

  it('without a dead letter sink the loss is told', async () => {
    const w = world({ subscribers: { [functionUrl]: () => status(400) }, deadLetter: false })
    await w.post()
    await w.broker.settled()
    expect(w.reports.at(-1)).toMatchObject({ kind: 'lost' })
  })

  it('an event that waits for its next try does not hold up the others', async () => {
    const w = world({
      subscribers: {
        [functionUrl]: ({ headers }) => (headers['ce-id'] === 'bad' ? status(503) : done()),
        [deadUrl]: done,
      },
    })
    for (let n = 0; n < 300; n++) await w.post({ 'ce-id': 'bad' })
    await w.post({ 'ce-id': 'good' })
    await settle()
    expect(w.reports.filter(({ kind }) => kind === 'delivered')).toHaveLength(1)
    await w.broker.stop()
  })

  it('stop drops what waits and says how much', async () => {
    const w = world({ subscribers: { [functionUrl]: () => status(503) } })
    await w.post()
    await w.post()
    await settle()
    expect(await w.broker.stop()).toBe(2)
    expect(w.clock.sleepers()).toBe(0)
    expect((await w.post()).status).toBe(503)
  })
})

describe('replies of the local broker (case 14)', () => {
  const reply = (type: string, kind: string) => () =>
    new Response(null, {
      status: 200,
      headers: { 'ce-specversion': '1.0', 'ce-id': 'r', 'ce-source': '/f', 'ce-type': type, 'ce-kind': kind },
    })

  it('go back to the broker and to the Triggers that want them', async () => {
    const w = world({
      subscribers: { [functionUrl]: reply('org.neiam.object.reconciled', 'Other'), 'http://audit': done },
      subscriptions: [
        {},
        {
          name: 'audit',
          subscriberUrl: 'http://audit',
          accepts: triggerFilter('a', { filter: { attributes: { kind: 'Other' } } }),
        },
      ],
    })
    await w.post()
    await w.broker.settled()
    expect(w.at('http://audit')[0]?.headers).toMatchObject({
      'ce-type': 'org.neiam.object.reconciled',
      'ce-id': 'r',
    })
    expect(w.at('http://audit')[0]?.headers['ce-knativebrokerttl']).toBeUndefined()
  })

  it('that match their own Trigger run in a circle until the hop limit, which is told', async () => {
    const w = world({
      subscribers: { [functionUrl]: reply('org.neiam.object.applied', 'Mutation'), [deadUrl]: done },
    })
    await w.post()
    await w.broker.settled()
    expect(w.at(functionUrl)).toHaveLength(255)
    expect(w.kinds().filter((kind) => kind === 'hop limit')).toHaveLength(1)
    expect(w.at(deadUrl)[0]?.headers).toMatchObject({
      'ce-knativeerrordest': brokerUrl,
      'ce-knativeerrorcode': '400',
    })
  })
})
