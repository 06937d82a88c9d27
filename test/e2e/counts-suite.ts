import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { systemClock } from '../../shared/clock.ts'
import { objectEvent } from '../../shared/cloudevents/envelope.ts'
import { sink } from '../../shared/cloudevents/sink.ts'
import { apiVersion, type MutantKind, mutantDeployments, mutations } from '../../shared/kinds/mutants.ts'
import { deployments, namespaces, type StoredObject } from '../../shared/kinds/object.ts'
import type { KubeClient } from '../../shared/kube/client.ts'
import type { KnativeReport, LocalKnative } from '../../shared/local/knative.ts'
import { mutant } from '../support/builders.ts'
import { installCrds } from '../support/crds.ts'
import { eventually } from '../support/eventually.ts'
import { realProcesses } from '../support/real-processes.ts'

/** An API server that tells which requests it got. */
export interface CountedApi {
  admin: KubeClient
  /** For the processes. */
  kubeconfigFile: string
  /** All requests so far, oldest first. */
  requests(): Promise<CountedRequest[]>
}

export interface CountedRequest {
  userAgent: string
  method: string
  /** Path and query. */
  uri: string
}

/** A change is an event at the broker sooner than this, in ms. */
const quietMs = 300

/**
 * What the whole operator asks of the API server (real processes: watcher, local broker, functions), counted to the
 * request. No controller manager makes the children ready: their status is written here.
 */
export function countsSuite(start: () => Promise<CountedApi>): void {
  let api: CountedApi
  let namespace: string
  let running: LocalKnative
  const reports: KnativeReport[] = []

  beforeAll(async () => {
    api = await start()
    await installCrds(api.admin)
    const object = { apiVersion: 'v1', kind: 'Namespace', metadata: { generateName: 'counts-' } }
    namespace = (await api.admin.create<StoredObject>(namespaces, object)).metadata.name
    running = await realProcesses({
      env: () => ({
        KUBECONFIG: api.kubeconfigFile,
        WATCH_NAMESPACES: namespace,
        // The Lease too: other tests use the same server.
        POD_NAMESPACE: namespace,
      }),
      report: (report) => reports.push(report),
    })
    await running.ready
    await eventually(() => expect(looks()).toHaveLength(1), 30_000)
    await quiet()
  }, 60_000)

  afterAll(() => running.stop(), 60_000)

  const outputOf = (name: string) =>
    reports.flatMap((one) => (one.from === 'output' && one.name === name ? [one.line] : []))
  const looks = () => outputOf('resync').filter((line) => line.includes('"lookedAt"'))
  const brokerReports = () => reports.flatMap((one) => (one.from === 'broker' ? [one.report] : []))
  const events = () => brokerReports().filter(({ kind }) => kind === 'accepted').length
  /** Deliveries that the broker has not ended yet. */
  const pending = () => {
    const ends = new Set<string>(['delivered', 'dead letter', 'lost'])
    const wanted = brokerReports().flatMap((one) => (one.kind === 'accepted' ? one.subscriptions : []))
    return wanted.length - brokerReports().filter(({ kind }) => ends.has(kind)).length
  }

  /** Resolves when nothing is under way and no process has told anything for a while. */
  async function quiet(): Promise<void> {
    let seen = -1
    await eventually(async () => {
      if (seen === reports.length && pending() === 0) return
      seen = reports.length
      await systemClock.sleep(quietMs)
      throw new Error('Something is still going on')
    }, 30_000)
  }

  /** What the functions asked for, and how many events came, from `change` until all is quiet. */
  async function costOf(change: () => Promise<unknown>) {
    const [before, eventsBefore] = [(await api.requests()).length, events()]
    await change()
    await quiet()
    const ours = (await api.requests())
      .slice(before)
      .filter(
        ({ userAgent, uri }) => /^mutantops\/.*\((?!watcher)/.test(userAgent) && uri.includes(namespace),
      )
    const writes = ours.filter(({ method }) => method !== 'GET')
    return { requests: ours.length, writes: writes.length, events: events() - eventsBefore }
  }

  const names: Record<string, string> = { Mutation: 'shop', MutantDeployment: 'store' }
  const nameOf = (kind: MutantKind) => names[kind.kind] ?? ''
  const objectOf = (kind: MutantKind) =>
    mutant(kind, nameOf(kind))
      .based(({ metadata, spec }) => {
        metadata.name = nameOf(kind)
        const labels = { app: nameOf(kind) }
        Object.assign(spec, { selector: { matchLabels: labels } })
        spec.template.metadata.labels = labels
      })
      .in(namespace)
  const patch = (kind: MutantKind, body: unknown, subresource = '') =>
    api.admin.request(
      'PATCH',
      `/apis/${apiVersion}/namespaces/${namespace}/${kind.plural}/${nameOf(kind)}${subresource}`,
      {
        body,
        contentType: 'application/json-patch+json',
      },
    )
  const childName = (kind: MutantKind, label: string) => `${nameOf(kind)}-${label}`

  async function makeReady(kind: MutantKind, label: string): Promise<void> {
    const child = await api.admin.get<StoredObject>(deployments, { namespace, name: childName(kind, label) })
    if (!child) throw new Error(`There is no ${label}`)
    const { generation: observedGeneration } = child.metadata
    const ready = {
      replicas: 1,
      updatedReplicas: 1,
      readyReplicas: 1,
      availableReplicas: 1,
      observedGeneration,
    }
    await api.admin.replace(deployments, { ...child, status: ready }, { subresource: 'status' })
  }

  async function lookAt(kind: MutantKind): Promise<void> {
    const object = await api.admin.get<StoredObject>(kind, { namespace, name: nameOf(kind) })
    const owner = {
      apiVersion,
      kind: kind.kind,
      namespace,
      name: nameOf(kind),
      uid: object?.metadata.uid ?? '',
    }
    const event = objectEvent({
      cluster: 'test',
      verb: 'resync',
      owner,
      tick: String(reports.length),
      cause: 'resync',
    })
    const out = sink({ url: `${running.brokerUrl}/mutantops/default`, clock: systemClock, userAgent: 'test' })
    expect((await out.send(event)).status).toBe(202)
    await out.close()
  }

  /** A Mutation reads its token's Secret as well, and makes it. */
  describe.each([
    { kind: mutations, secret: 1 },
    { kind: mutantDeployments, secret: 0 },
  ])('$kind.kind', ({ kind, secret }) => {
    const variants = kind === mutations ? 'variants' : 'mutations'

    it('created with three variants: two reads, a write for each child, one for the status', async () => {
      const object = objectOf(kind).with('red', 1).with('green', 0).with('blue', 0).object()
      expect(await costOf(() => api.admin.create(kind, object))).toEqual({
        requests: 6 + secret,
        writes: 4 + secret,
        events: 1,
      })
    })

    it('a child ready: the reads and the status', async () => {
      const cost = await costOf(() => makeReady(kind, 'red'))
      expect(cost).toEqual({ requests: 3 + secret, writes: 1, events: 1 })
    })

    it('one variant changed: the reads, that child, the status', async () => {
      const value = { COLOR: 'dark' }
      const cost = await costOf(() => patch(kind, [{ op: 'add', path: `/spec/${variants}/1/env`, value }]))
      expect(cost).toEqual({ requests: 4 + secret, writes: 2, events: 1 })
    })

    it('in sync: the reads and nothing else', async () => {
      expect(await costOf(() => lookAt(kind))).toEqual({ requests: 2 + secret, writes: 0, events: 1 })
    })

    it('a status written by somebody: no event', async () => {
      const message = [{ op: 'add', path: '/status/message', value: 'x' }]
      expect(await costOf(() => patch(kind, message, '/status'))).toEqual({
        requests: 0,
        writes: 0,
        events: 0,
      })
    })

    it.each([
      { which: ', and the status that somebody changed', label: 'blue', writes: 2 },
      { which: ', and a read that proves that the object is the same', label: 'green', writes: 1 },
    ])('a child deleted by hand: the reads, that child$which', async ({ label, writes }) => {
      const name = childName(kind, label)
      const cost = await costOf(() => api.admin.delete(deployments, { namespace, name }))
      expect(cost).toEqual({ requests: 4 + secret, writes, events: 1 })
    })

    it('a variant removed: as a change, and at most one look at the deletion that writes nothing', async () => {
      const cost = await costOf(() => patch(kind, [{ op: 'remove', path: `/spec/${variants}/2` }]))
      expect(cost.writes).toBe(2)
      const pass = 4 + secret
      expect([pass, pass + 2 + secret]).toContain(cost.requests)
    })

    it('with as many variants again in sync: the same reads', async () => {
      const more = ['one', 'two', 'three'].map((label) => ({
        op: 'add',
        path: `/spec/${variants}/-`,
        value: { label, instances: 0 },
      }))
      await costOf(() => patch(kind, more))
      expect(await costOf(() => lookAt(kind))).toEqual({ requests: 2 + secret, writes: 0, events: 1 })
    })
  })

  it('the watcher ended and started again: one look at everything, by pages, and no event of an object', async () => {
    const pids = () =>
      reports.flatMap((one) =>
        one.from === 'process' && one.report.kind === 'ready' ? [one.report.pid] : [],
      )
    const looksBefore = looks().length
    const cost = await costOf(async () => {
      process.kill(pids().at(-1) ?? 0, 'SIGTERM')
      await eventually(() => expect(looks()).toHaveLength(looksBefore + 1), 30_000)
    })
    // Mutations, MutantDeployments, and Deployments with an owner.
    expect(cost).toEqual({ requests: 3, writes: 0, events: 1 })
    expect(JSON.parse(looks().at(-1) ?? '')).toMatchObject({ lookedAt: 2, outOfSync: 0 })
  }, 60_000)
}
