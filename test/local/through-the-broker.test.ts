import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { pingType, reconciledEvent, resyncRequest } from '../../shared/cloudevents/envelope.ts'
import { verdictOf } from '../../shared/local/events/delivery.ts'
import { triggerFilter } from '../../shared/local/events/filters.ts'
import { base, mutation } from '../support/builders.ts'
import { type DeliveryOptions, type DeliveryWorld, deliveryWorld } from '../support/delivery-world.ts'
import { embeddedApi } from '../support/embedded.ts'
import { isWrite, type World, world } from '../support/world.ts'

/** The real functions behind the local broker, with the Triggers as shipped, on the embedded API. */

const api = embeddedApi()
let open: DeliveryWorld[] = []
afterEach(async () => {
  for (const one of open) await one.stop()
  open = []
})
afterAll(() => api.server.stop())

async function worldWith(options?: DeliveryOptions): Promise<{ w: World; d: DeliveryWorld }> {
  const w = await world(api)
  const d = await deliveryWorld(w, options)
  open.push(d)
  return { w, d }
}

const web = mutation('web').with('red', 2).with('blue', 1)
const functions = ['mutation', 'mutant-deployment', 'resync', 'dead-letter']

describe('every answer of every function, as the broker takes it (case 12)', () => {
  const event = (type: string, more: Record<string, string> = {}): RequestInit => ({
    method: 'POST',
    body: '{}',
    headers: {
      'ce-specversion': '1.0',
      'ce-id': '1',
      'ce-source': '/t',
      'ce-type': type,
      'content-type': 'application/json',
      ...more,
    },
  })
  const subject = (plural: string) => ({ 'ce-subject': `/apis/neiam.org/v1/namespaces/none/${plural}/none` })
  const requests: [string, string, RequestInit][] = [
    [
      'an event of a Mutation that is gone',
      '/',
      event('org.neiam.object.applied', { ...subject('mutations'), 'ce-kind': 'Mutation' }),
    ],
    [
      'an event of a MutantDeployment that is gone',
      '/',
      event('org.neiam.object.deleted', { ...subject('mutantdeployments'), 'ce-kind': 'MutantDeployment' }),
    ],
    ['an event of its own outcome', '/', event('org.neiam.object.reconciled', subject('mutations'))],
    [
      'an event of another kind',
      '/',
      event('org.neiam.object.applied', { 'ce-subject': '/apis/apps/v1/namespaces/a/deployments/b' }),
    ],
    ['an event without a subject', '/', event('org.neiam.object.applied')],
    ['a malformed event', '/', event('')],
    ['a cron event', '/', event(pingType)],
    [
      'a batch',
      '/',
      { method: 'POST', body: '[]', headers: { 'content-type': 'application/cloudevents-batch+json' } },
    ],
    ['a body of 5 MB', '/', event('org.neiam.object.applied', { 'content-length': '5000000' })],
    [
      'plain JSON',
      '/',
      { method: 'POST', body: '{"mode":"full"}', headers: { 'content-type': 'application/json' } },
    ],
    ['nothing', '/', { method: 'POST' }],
    ['GET', '/', { method: 'GET' }],
    ['HEAD', '/', { method: 'HEAD' }],
    ['PUT', '/', { method: 'PUT', body: '{}' }],
    ['OPTIONS', '/', { method: 'OPTIONS' }],
    ['an unknown path', '/none', event('org.neiam.object.applied')],
    ['an unknown page', '/none', { method: 'GET' }],
    ['its health', '/livez', { method: 'GET' }],
    ['its readiness', '/readyz', { method: 'GET' }],
  ]

  it.each(functions)('%s: a 2xx has no body or is an event, and none becomes a 502', async (name) => {
    const { d } = await worldWith()
    for (const [what, path, init] of requests) {
      const response = await d.ask(name, path, init)
      const body = new Uint8Array(await response.arrayBuffer())
      const { status, headers } = response
      const verdict = verdictOf({ kind: 'answer', status, headers, body }, 'filter')
      const reason = verdict.kind === 'failed' ? verdict.failure.reason : ''
      expect({ what, reason }).not.toMatchObject({ reason: expect.stringContaining('counts as 502') })
      if (response.ok) expect({ what, length: body.length }).toEqual({ what, length: 0 })
    }
  })

  it('an event of an object is delivered once, to the function of its kind alone', async () => {
    const { w, d } = await worldWith()
    await w.create(web)
    expect(await d.send(await d.eventOf(web))).toBe(202)
    await d.broker.settled()
    expect(d.answers).toEqual([{ name: 'mutation', type: 'org.neiam.object.applied', status: 204, body: '' }])
    expect(await w.children()).toEqual(['web-blue', 'web-red'])
  })
})

describe('replies that find their way back to the functions (case 14)', () => {
  /** Without a filter on the type, as a user might write it. */
  const byKindOnly: DeliveryOptions['subscriptions'] = (shipped) =>
    shipped.map((one) =>
      one.name === 'mutation'
        ? { ...one, accepts: triggerFilter('t', { filter: { attributes: { kind: 'Mutation' } } }) }
        : one,
    )
  /** A Trigger of its own that sends every outcome to the function. */
  const sentBack: DeliveryOptions['subscriptions'] = (shipped) =>
    shipped.flatMap((one) =>
      one.name === 'mutation'
        ? [
            one,
            {
              ...one,
              name: 'back',
              accepts: (attributes) => attributes.type === 'org.neiam.object.reconciled',
            },
          ]
        : [one],
    )

  it.each([
    ['a Trigger without a type filter', byKindOnly],
    ['a Trigger that sends the outcomes back', sentBack],
  ])('%s causes two deliveries per change, of which the second reads nothing', async (_, subscriptions) => {
    const { w, d } = await worldWith({ env: { REPLY_EVENTS: 'true' }, subscriptions })
    await w.create(web)
    await d.send(await d.eventOf(web))
    await d.broker.settled()
    expect(d.answers.map(({ type, status }) => [type, status])).toEqual([
      ['org.neiam.object.applied', 200],
      ['org.neiam.object.reconciled', 204],
    ])
    w.forget()
    const ref = { apiVersion: 'neiam.org/v1', kind: 'Mutation', namespace: w.namespace, name: 'web' }
    const cause = await d.eventOf(web)
    await d.send(reconciledEvent({ cluster: 'here', functionName: 'mutation', ref, cause }))
    await d.broker.settled()
    expect(w.requests).toEqual([])
  })

  it('with the Triggers as shipped an outcome goes to nobody', async () => {
    const { w, d } = await worldWith({ env: { REPLY_EVENTS: 'true' } })
    await w.create(web)
    await d.send(await d.eventOf(web))
    await d.broker.settled()
    expect(d.answers.map(({ type }) => type)).toEqual(['org.neiam.object.applied'])
    expect(d.reports.at(-1)).toMatchObject({ kind: 'accepted', subscriptions: [] })
  })
})

describe('a broker that says 202 and forgets (case 15)', () => {
  const objects = Array.from({ length: 100 }, (_, n) => mutation(`web-${n}`).on(base(`web-${n}`)))
  const wanted = (n: number, round: number) => (n + round) % 5

  /** 300 changes over 100 objects, each told to the broker; every tenth event is forgotten. */
  async function burst(w: World, d: DeliveryWorld): Promise<void> {
    for (let round = 1; round <= 3; round++)
      for (const [n, object] of objects.entries()) {
        const next = object.with('red', wanted(n, round))
        await (round === 1 ? w.create(next) : w.change(next))
        await d.send(await d.eventOf(object))
      }
    await d.broker.settled()
  }

  async function outOfSync(w: World): Promise<string[]> {
    const wrong: string[] = []
    for (const [n, object] of objects.entries()) {
      const child = await w.child(`${object.name}-red`)
      if (child?.spec.replicas !== wanted(n, 3)) wrong.push(object.name)
    }
    return wrong
  }

  it.each(['full', 'needed'] as const)(
    'all 100 objects are in sync after one resync "%s"; without loss it sends nothing more',
    async (mode) => {
      const { w, d } = await worldWith({ forgets: (count) => count <= 300 && count % 10 === 3 })
      await burst(w, d)
      const lost = await outOfSync(w)
      expect(lost.length).toBeGreaterThan(0)

      const ask = (tick: string) => d.send(resyncRequest({ cluster: 'here', from: 'watcher', mode, tick }))
      await ask('1')
      await d.broker.settled()
      await Promise.all(d.contexts.resync?.backgrounds ?? [])
      await d.broker.settled()
      expect(await outOfSync(w)).toEqual([])
      const { text = '' } = (await d.contexts.resync?.metrics.text()) ?? {}
      const found = Number(
        /mutantops_resync_out_of_sync_total\{[^}]*kind="Mutation"[^}]*\} (\d+)/.exec(text)?.[1],
      )
      expect(found).toBeGreaterThanOrEqual(lost.length)

      if (mode === 'full') return
      w.forget()
      const before = d.answers.length
      await ask('2')
      await d.broker.settled()
      expect(d.answers.slice(before).map(({ name }) => name)).toEqual(['resync'])
      expect(w.requests.filter(isWrite)).toEqual([])
    },
    60_000,
  )
})

describe('what the broker gives up', () => {
  it('becomes a Kubernetes Event on the object', async () => {
    const { w, d } = await worldWith({
      // Straight to the wrong function, which refuses it for good.
      subscriptions: (shipped) =>
        shipped.map((one) =>
          one.name === 'mutation'
            ? { ...one, subscriberUrl: one.subscriberUrl.replace('mutation', 'mutant-deployment') }
            : one,
        ),
    })
    await w.create(web)
    await d.send(await d.eventOf(web))
    await d.broker.settled()
    expect(d.answers.map(({ name, status }) => [name, status])).toEqual([
      ['mutant-deployment', 422],
      ['dead-letter', 204],
    ])
    const { body } = await w.admin.request('GET', `/apis/events.k8s.io/v1/namespaces/${w.namespace}/events`)
    expect(JSON.stringify(body)).toContain('the answer 422')
  })
})
