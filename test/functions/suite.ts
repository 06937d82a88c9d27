import { afterEach, describe, expect, test } from 'vitest'
import { deadLetterApp } from '../../functions/dead-letter.ts'
import { mutantDeploymentApp } from '../../functions/mutant-deployment.ts'
import { mutationApp } from '../../functions/mutation.ts'
import type { ReconcilerContext } from '../../functions/reconciler.ts'
import { resyncApp } from '../../functions/resync.ts'
import { serve } from '../../functions/serve.ts'
import { systemClock } from '../../shared/clock.ts'
import { objectEvent, pingType, reconciledEvent } from '../../shared/cloudevents/envelope.ts'
import type { CloudEvent } from '../../shared/cloudevents/event.ts'
import { sink } from '../../shared/cloudevents/sink.ts'
import { readEvent } from '../../shared/cloudevents/wire.ts'
import { binaryOf, structuredOf } from '../../shared/cloudevents/write.ts'
import { deployments, events as kubernetesEvents } from '../../shared/kinds/object.ts'
import { kubeClient } from '../../shared/kube/client.ts'
import { needsWork } from '../../shared/reconcile/needs-work.ts'
import { objectEventRecorder } from '../../shared/reconcile/object-events.ts'
import { type MutantBuilder, mutantDeployment, mutation } from '../support/builders.ts'
import { functionContext, testSink } from '../support/function.ts'
import { isWrite, type TestApi, type World, world } from '../support/world.ts'

const stops: (() => Promise<unknown>)[] = []

/** The functions, each served over a real socket, on an API: what is posted to them, and how the world is then. */
export function functionsSuite(api: TestApi): void {
  afterEach(async () => {
    for (const stop of stops.splice(0).reverse()) await stop()
  })
  describe('a reconciler', () => reconcilerTests(api))
  describe('the resync', () => resyncTests(api))
  describe('the dead letter function', () => deadLetterTests(api))
}

async function served(app: { fetch(request: Request): Response | Promise<Response> }) {
  const running = await serve({ app, port: 0, host: '127.0.0.1', clock: systemClock })
  stops.push(() => running.drain({ withinMs: 1_000 }))
  return {
    async post(
      event: CloudEvent,
      headers: Record<string, string> = {},
    ): Promise<{ status: number; body: Buffer; headers: Headers }> {
      const message = binaryOf(event)
      return answerOf(
        await fetch(running.url, {
          method: 'POST',
          headers: { ...message.headers, ...headers },
          body: message.body as string | null,
        }),
      )
    },
    async postRaw(body: string, headers: Record<string, string>) {
      return answerOf(await fetch(running.url, { method: 'POST', headers, body }))
    },
  }
}

async function answerOf(response: Response) {
  return {
    status: response.status,
    body: Buffer.from(await response.arrayBuffer()),
    headers: response.headers,
  }
}

function contextOf(w: World, options: Partial<ReconcilerContext> = {}) {
  const { client, clock } = w.context
  const reporter = { controller: 'neiam.org/test', instance: 'test' }
  return {
    ...functionContext(client),
    adoption: 'label' as const,
    replies: false,
    record: objectEventRecorder({ client, clock, reporter }),
    ...options,
  }
}

async function eventOf(w: World, object: MutantBuilder): Promise<CloudEvent> {
  const { metadata } = await w.get(object)
  const { uid, resourceVersion } = metadata
  return objectEvent({
    cluster: 'here',
    verb: 'applied',
    owner: {
      apiVersion: 'neiam.org/v1',
      kind: object.kind.kind,
      namespace: w.namespace,
      name: object.name,
      uid,
    },
    changed: { uid, resourceVersion },
    cause: 'object',
    traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
  })
}

const web = mutation('web').with('red', 2).with('blue', 1)

function reconcilerTests(api: TestApi): void {
  test('posted the event of a new object, its children exist, and the log says so in one line', async () => {
    const w = await world(api)
    await w.create(web)
    const ctx = contextOf(w)
    const { post } = await served(mutationApp(ctx))
    const event = await eventOf(w, web)
    expect(await post(event)).toMatchObject({ status: 204, body: Buffer.alloc(0) })
    expect(await w.children()).toEqual(['web-blue', 'web-red'])
    expect(ctx.lines).toHaveLength(1)
    expect(ctx.lines[0]).toMatchObject({
      msg: 'event worked on',
      object: event.subject,
      event: event.id,
      traceparent: event.extensions.traceparent,
      status: 204,
      outcome: 'settled',
      durationMs: expect.any(Number),
    })
    expect(ctx.lines[0]?.writes).toEqual(
      expect.arrayContaining([
        `apply Deployment ${w.namespace}/web-red`,
        `apply Deployment ${w.namespace}/web-blue`,
      ]),
    )
    const token = await tokenOf(w)
    expect(token).toMatch(/^[A-Za-z0-9_-]{43}$/)
    expect(JSON.stringify(ctx.lines)).not.toContain(token)
  })

  test('taped, it records the events that it could read, also those that it refuses, and no others', async () => {
    const w = await world(api)
    const tape: CloudEvent[] = []
    const { post } = await served(mutationApp(contextOf(w, { tape: (event) => tape.push(event) })))
    const gone = await eventOf({ ...w, get: async () => web.stored() }, web)
    await post(gone)
    await post(gone, { 'ce-id': '' })
    await post({ ...gone, type: pingType })
    expect(tape).toEqual([gone, { ...gone, type: pingType }])
  })

  test('posted the same event again, in either mode and however its subject is encoded, nothing is written', async () => {
    const w = await world(api)
    await w.create(web)
    const { post, postRaw } = await served(mutationApp(contextOf(w)))
    const event = await eventOf(w, web)
    await post(event)
    await post(event)
    w.forget()
    const encoded = { 'ce-subject': String(event.subject).replaceAll('/', '%2F') }
    expect((await post(event)).status).toBe(204)
    expect((await post(event, encoded)).status).toBe(204)
    expect((await post({ ...event, type: 'org.neiam.object.deleted' })).status).toBe(204)
    const contentType = { 'content-type': 'application/cloudevents+json; charset=UTF-8' }
    expect((await postRaw(structuredOf(event), contentType)).status).toBe(204)
    expect(w.requests.length).toBeGreaterThan(0)
    expect(w.requests.filter(isWrite)).toEqual([])
  })

  test('cases 20, 21 and 23: what is not exactly an event for it reads and writes nothing', async () => {
    const w = await world(api)
    await w.create(web)
    const { post, postRaw } = await served(mutationApp(contextOf(w)))
    const event = await eventOf(w, web)
    const subject = String(event.subject)
    const wrong: [Record<string, string>, number][] = [
      [{ 'ce-specversion': '0.3' }, 400],
      [{ 'ce-time': 'yesterday' }, 400],
      [{ 'ce-id': '' }, 400],
      [{ 'ce-subject': subject.replaceAll('/', '%252F') }, 400],
      [{ 'ce-subject': subject.replace('mutations', '%2e%2e%2f') }, 400],
      [{ 'ce-subject': `${subject}/../../secrets/x` }, 400],
      [{ 'ce-subject': subject.replace('web', '%E4') }, 400],
      [{ 'ce-subject': subject.replace('web', '%ZZ') }, 400],
      [{ 'ce-subject': subject.replace('mutations', 'secrets') }, 422],
      [{ 'ce-subject': subject.replace('mutations', 'mutantdeployments') }, 422],
      [{ 'ce-type': 'dev.knative.sources.ping' }, 422],
    ]
    w.forget()
    for (const [headers, status] of wrong)
      expect([headers, (await post(event, headers)).status]).toEqual([headers, status])
    const batch = `[${structuredOf(event)}]`
    expect((await postRaw(batch, { 'content-type': 'application/cloudevents-batch+json' })).status).toBe(415)
    expect((await postRaw(batch, { 'content-type': 'application/cloudevents+json' })).status).toBe(415)
    expect(w.requests).toEqual([])
  })

  test('case 14: an outcome event is answered without a look', async () => {
    const w = await world(api)
    await w.create(web)
    const { post } = await served(mutationApp(contextOf(w)))
    const ref = { apiVersion: 'neiam.org/v1', kind: 'Mutation', namespace: w.namespace, name: 'web' }
    const outcome = reconciledEvent({
      cluster: 'c',
      functionName: 'mutation',
      ref,
      cause: await eventOf(w, web),
    })
    w.forget()
    expect((await post(outcome)).status).toBe(204)
    expect(w.requests).toEqual([])
  })

  test('with replies on it tells once that it wrote, as an event that it would not work on', async () => {
    const w = await world(api)
    await w.create(web)
    const { post } = await served(mutationApp(contextOf(w, { replies: true })))
    const event = await eventOf(w, web)
    const { status, headers, body } = await post(event)
    expect(status).toBe(200)
    const reply = readEvent({ headers, body })
    expect(reply).toMatchObject({ type: 'org.neiam.object.reconciled', subject: event.subject })
    expect((await post(reply)).status).toBe(204)
    await post(event)
    expect((await post(event)).status).toBe(204)
  })

  test('an object that is gone is settled', async () => {
    const w = await world(api)
    const gone = mutantDeployment('gone').with('red', 1)
    await w.create(gone)
    const event = await eventOf(w, gone)
    await w.admin.delete(gone.kind, { namespace: w.namespace, name: 'gone' })
    const { post } = await served(mutantDeploymentApp(contextOf(w)))
    w.forget()
    expect((await post(event)).status).toBe(204)
    expect(w.requests.filter(isWrite)).toEqual([])
  })

  test('what is wrong with the object is settled, and stands in its status', async () => {
    const w = await world(api)
    const wrong = mutation('wrong').with('Not A Label', 1).with('red', 1)
    await w.create(wrong)
    const ctx = contextOf(w)
    const { post } = await served(mutationApp(ctx))
    expect((await post(await eventOf(w, wrong))).status).toBe(204)
    expect((await w.variant(wrong, 'Not A Label')).state).toBe('Invalid')
    expect(await w.children()).toEqual(['web-red'])
  })

  test('an API that is away is for later, and the broker is told when', async () => {
    const w = await world(api)
    await w.create(web)
    const transport = { baseUrl: 'http://127.0.0.1:9', fetch: () => Promise.reject(new Error('away')) }
    const client = kubeClient({ transport, clock: systemClock, userAgent: 'test', retries: 0 })
    const ctx = contextOf(w, { client })
    const { post } = await served(mutationApp(ctx))
    const { status, headers } = await post(await eventOf(w, web))
    expect(status).toBe(503)
    expect(Number(headers.get('retry-after'))).toBeGreaterThan(0)
    const { text } = await ctx.metrics.text()
    expect(text).toContain('mutantops_reconcile_errors_total{kind="Mutation",error="client"} 1')
    expect(text).toContain('mutantops_reconciles_total{kind="Mutation",outcome="later"} 1')
  })
}

async function tokenOf(w: World): Promise<string> {
  const { body } = await w.admin.request('GET', `/api/v1/namespaces/${w.namespace}/secrets/web-token`)
  return Buffer.from((body as { data: { token: string } }).data.token, 'base64').toString()
}

function resyncTests(api: TestApi): void {
  test('over a world in sync sends nothing; after a hand edit and a lost child one event each, which mend them', async () => {
    const w = await world(api)
    const mutants = [mutation('a'), mutation('b'), mutantDeployment('c'), mutantDeployment('d')].map(
      (mutant, index) =>
        mutant.with('red', 0).based(({ metadata }) => {
          metadata.name = `base-${index}`
        }),
    )
    const there = await testSink()
    const out = sink({ url: there.url, clock: systemClock, userAgent: 'test' })
    stops.push(there.close, () => out.close())
    const mutationFunction = await served(mutationApp(contextOf(w)))
    const mutantDeploymentFunction = await served(mutantDeploymentApp(contextOf(w)))
    const deliver = (event: CloudEvent) =>
      (event.extensions.kind === 'Mutation' ? mutationFunction : mutantDeploymentFunction).post(event)
    for (const mutant of mutants) {
      await w.create(mutant)
      const event = await eventOf(w, mutant)
      expect((await deliver(event)).status).toBe(204)
    }
    for (const name of await w.children()) await w.makeReady(name)
    for (const mutant of mutants) expect((await deliver(await eventOf(w, mutant))).status).toBe(204)

    const settings = { adoption: 'label' as const, now: systemClock.now() }
    const { post } = await served(
      resyncApp({
        ...contextOf(w),
        sink: out,
        namespaces: [w.namespace],
        needsWork: ({ kind, parent, children }) => needsWork(kind, parent, children, settings),
      }),
    )
    const ping = (id: string): CloudEvent => ({
      specversion: '1.0',
      id,
      source: '/cron',
      type: pingType,
      extensions: {},
    })
    w.forget()
    expect((await post(ping('1'))).status).toBe(204)
    expect(there.events.map(({ subject }) => subject)).toEqual([])
    expect(w.requests.map(({ method }) => method)).toEqual(['GET', 'GET', 'GET'])

    await w.edit('base-0-red', ({ spec }) => {
      const [container] = spec.template.spec.containers
      if (container) container.image = 'nginx:0.1'
    })
    await w.admin.delete(deployments, { namespace: w.namespace, name: 'base-3-red' })
    expect((await post(ping('2'))).status).toBe(204)
    expect(there.events.map(({ extensions }) => extensions.name).sort()).toEqual(['a', 'd'])
    for (const event of there.events) expect((await deliver(event)).status).toBe(204)
    expect(await w.children()).toEqual(['base-0-red', 'base-1-red', 'base-2-red', 'base-3-red'])
    expect((await w.child('base-0-red'))?.spec.template.spec.containers[0]?.image).toBe('nginx:1.21')
  })
}

function deadLetterTests(api: TestApi): void {
  const eventsIn = async (w: World) =>
    (await w.admin.list(kubernetesEvents, { namespace: w.namespace })).items
  const asDeadLetter = (event: CloudEvent, extensions: Record<string, string>): CloudEvent => ({
    ...event,
    extensions: { ...event.extensions, ...extensions },
  })

  test('case 18: fifty dead letters of an object are one Warning Event on it, and fifty lines and counts', async () => {
    const w = await world(api)
    await w.create(web)
    const ctx = contextOf(w)
    const { post } = await served(deadLetterApp(ctx))
    const event = asDeadLetter(await eventOf(w, web), {
      knativeerrordest: 'http://mutation.mutantops.svc.cluster.local',
      knativeerrorcode: '503',
      knativeerrordata: Buffer.from('The API server is in the way\n').toString('base64'),
    })
    const answers = await Promise.all(Array.from({ length: 50 }, () => post(event)))
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([204]))
    const told = await eventsIn(w)
    expect(told).toHaveLength(1)
    expect(told[0]).toMatchObject({
      type: 'Warning',
      reason: 'EventGivenUp',
      regarding: { kind: 'Mutation', name: 'web', uid: (await w.get(web)).metadata.uid },
    })
    expect(String(told[0]?.note)).toContain('503')
    expect(ctx.lines.filter(({ deadLetter }) => deadLetter)).toHaveLength(50)
    expect(ctx.lines[0]).toMatchObject({ last: { code: 503, text: 'The API server is in the way' } })
    expect((await ctx.metrics.text()).text).toContain(
      'mutantops_dead_letters_total{kind="Mutation",answer="5xx"} 50',
    )
  })

  test.each([
    ['base64 cut in the middle of a group', { knativeerrorcode: '503', knativeerrordata: 'VGhlIEFQSSB' }],
    [
      'plain text with a percent sign and line ends',
      { knativeerrorcode: 'abc', knativeerrordata: '100% <html>' },
    ],
    ['nothing', {}],
    ['a code that is none', { knativeerrorcode: '-1' }],
    ['a code of 0', { knativeerrorcode: '0' }],
  ])('case 18: an error told as %s is answered 204 and told', async (_, extensions) => {
    const w = await world(api)
    await w.create(web)
    const { post } = await served(deadLetterApp(contextOf(w)))
    expect((await post(asDeadLetter(await eventOf(w, web), extensions))).status).toBe(204)
    expect(await eventsIn(w)).toHaveLength(1)
  })

  test('case 18: nothing is told of an object that is gone, or of no object at all', async () => {
    const w = await world(api)
    await w.create(web)
    const event = await eventOf(w, web)
    await w.admin.delete(web.kind, { namespace: w.namespace, name: 'web' })
    const { post } = await served(deadLetterApp(contextOf(w)))
    expect((await post(event)).status).toBe(204)
    expect((await post({ ...event, subject: '../..' })).status).toBe(204)
    expect(
      (await post({ specversion: '1.0', id: '1', source: '/cron', type: pingType, extensions: {} })).status,
    ).toBe(204)
    expect(await eventsIn(w)).toEqual([])
  })

  test.each([
    ['data that is no JSON', { 'ce-specversion': '1.0' }, '{'],
    ['an event of another version', { 'ce-specversion': '0.3' }, '{}'],
    ['a body that is too large', { 'ce-specversion': '1.0' }, JSON.stringify('x'.repeat(5_000_000))],
  ])(
    'case 18: a dead letter with %s is settled, told and counted, for refused it would be lost',
    async (_, headers, body) => {
      const w = await world(api)
      const ctx = contextOf(w)
      const { postRaw } = await served(deadLetterApp(ctx))
      const letter = { 'ce-id': 'i', 'ce-source': '/s', 'ce-type': 't', 'content-type': 'application/json' }
      expect((await postRaw(body, { ...letter, ...headers })).status).toBe(204)
      expect(ctx.lines.filter((line) => line.deadLetter)).toHaveLength(1)
      expect((await ctx.metrics.text()).text).toContain(
        'mutantops_dead_letters_total{kind="none",answer="none"} 1',
      )
    },
  )

  test('case 18: its own trouble makes no dead letter', async () => {
    const w = await world(api)
    await w.create(web)
    const ctx = contextOf(w, { record: () => Promise.reject(new Error('no rights')) })
    const { post } = await served(deadLetterApp(ctx))
    expect((await post(await eventOf(w, web))).status).toBe(204)
    expect(
      ctx.lines.some(({ level, msg }) => level === 'warn' && msg === 'dead letter not told on its object'),
    ).toBe(true)
  })
}
