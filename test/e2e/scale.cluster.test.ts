import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { systemClock } from '../../shared/clock.ts'
import { mutations } from '../../shared/kinds/mutants.ts'
import { controllerOf, deployments, type StoredObject } from '../../shared/kinds/object.ts'
import type { KnativeReport, LocalKnative } from '../../shared/local/knative.ts'
import { realCluster } from '../control-plane/cluster.ts'
import { mutation } from '../support/builders.ts'
import { installCrds } from '../support/crds.ts'
import { eventually } from '../support/eventually.ts'
import { realProcesses } from '../support/real-processes.ts'

/**
 * Many objects on a real API server, with the real processes: the watcher, the local broker and the functions. It has a
 * namespace and a Lease of its own, for other tests run on this cluster too.
 */
describe('200 Mutations with 3 variants each', () => {
  const objectCount = 200
  const variants = ['red', 'green', 'blue']
  const names = Array.from({ length: objectCount }, (_, index) => `m${index}`)
  const admin = realCluster.client()
  const reports: KnativeReport[] = []
  let namespace = ''
  let running: LocalKnative

  beforeAll(async () => {
    await installCrds(admin)
    namespace = await realCluster.newNamespace()
    running = await realProcesses({
      env: () => ({
        KUBECONFIG: realCluster.kubeconfigFile,
        WATCH_NAMESPACES: namespace,
        POD_NAMESPACE: namespace,
      }),
      report: (report) => reports.push(report),
    })
    await running.ready
    await eventually(() => expect(resyncs()).toHaveLength(1), 30_000)
  }, 60_000)
  afterAll(() => running.stop(), 60_000)

  /** What each resync told at its end. */
  const resyncs = () =>
    reports.flatMap((one) =>
      one.from === 'output' && one.name === 'resync' && one.line.includes('"lookedAt"')
        ? [JSON.parse(one.line) as Record<string, unknown>]
        : [],
    )
  const watcherPids = () =>
    reports.flatMap((one) => (one.from === 'process' && one.report.kind === 'ready' ? [one.report.pid] : []))
  const accepted = () => reports.filter((one) => one.from === 'broker' && one.report.kind === 'accepted')
  const create = (name: string) => {
    const object = variants.reduce((one, label) => one.with(label, 1), mutation(name).in(namespace))
    const named = object.based(({ metadata }) => {
      metadata.name = name
    })
    return admin.create(mutations, named.object())
  }
  /** Requests of our processes to the API server since then, but those for the Lease. */
  async function requestsSince(count: number) {
    const all = await realCluster.requests(count)
    return all.filter(
      ({ userAgent, objectRef, requestURI }) =>
        userAgent.startsWith('mutantops/') &&
        objectRef?.resource !== 'leases' &&
        (objectRef?.namespace === namespace || requestURI.includes(namespace)),
    )
  }

  it('converge, though the watcher is killed in the middle of the burst', async () => {
    for (const [index, name] of names.entries()) {
      if (index === objectCount / 2) process.kill(watcherPids()[0] ?? 0, 'SIGKILL')
      await create(name)
    }
    await eventually(async () => {
      const { items } = await admin.list<StoredObject>(mutations, { namespace })
      const done = items.filter(({ status }) => status && 'summary' in (status as object))
      expect(done).toHaveLength(objectCount)
    }, 90_000)
    const [owners, children] = await Promise.all([
      admin.list<StoredObject>(mutations, { namespace }),
      admin.list<StoredObject>(deployments, { namespace }),
    ])
    const uids = new Map(owners.items.map(({ metadata }) => [metadata.name, metadata.uid]))
    const wanted = names.flatMap((name) => variants.map((label) => `${uids.get(name)} ${name}-${label}`))
    const made = children.items.map((child) => `${controllerOf(child)?.uid} ${child.metadata.name}`)
    expect(made.toSorted()).toEqual(wanted.toSorted())
    expect(watcherPids()).toHaveLength(2)
  }, 150_000)

  it('a resync of them, in sync, reads pages, writes nothing and sends nothing', async () => {
    await quiet()
    const [before, told, events] = [
      (await realCluster.requests()).length,
      resyncs().length,
      accepted().length,
    ]
    const response = await fetch(`${running.functionsUrl}/mutantops/resync`, {
      method: 'POST',
      body: '{"mode":"needed"}',
      headers: { 'content-type': 'application/json' },
    })
    expect(response.status).toBe(204)
    await eventually(() => expect(resyncs()).toHaveLength(told + 1))
    expect(resyncs().at(-1)).toMatchObject({ lookedAt: objectCount, outOfSync: 0 })
    expect(accepted()).toHaveLength(events)
    const requests = await requestsSince(before)
    expect(requests.map(({ verb }) => verb).filter((verb) => verb !== 'list')).toEqual([])
    // One page of each of our kinds and two of the 600 children.
    expect(requests).toHaveLength(4)
  }, 60_000)

  /** Waits until no event has come for a while and none is under way. */
  async function quiet(): Promise<void> {
    let seen = -1
    await eventually(async () => {
      const now = reports.length
      if (now !== seen) {
        seen = now
        await systemClock.sleep(1_500)
        throw new Error('Something is still going on')
      }
    }, 60_000)
  }
})
