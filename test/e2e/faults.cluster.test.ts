import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Trouble } from '../../shared/apiserver/faults.ts'
import { systemClock } from '../../shared/clock.ts'
import { fieldManager, mutantKinds } from '../../shared/kinds/mutants.ts'
import { deployments, type StoredObject, secrets } from '../../shared/kinds/object.ts'
import type { KnativeReport, LocalKnative } from '../../shared/local/knative.ts'
import { realCluster } from '../control-plane/cluster.ts'
import { act, prepare, resumeAll, type Stage } from '../simulation/acts.ts'
import { expectConverged } from '../simulation/peace.ts'
import { troublesOf } from '../simulation/troubles.ts'
import { seededRandom } from '../support/clock.ts'
import { installCrds } from '../support/crds.ts'
import { eventually } from '../support/eventually.ts'
import { type FaultyProxy, faultyProxy } from '../support/faulty-proxy.ts'
import { writeKubeconfig } from '../support/kubeconfig.ts'
import { type FunctionProcess, functionProcess } from '../support/process.ts'
import { realProcesses } from '../support/real-processes.ts'

/**
 * The faults of the simulation, fewer, on the real API server: the real processes reach it by a way on which requests are
 * late, refused, cut before and after they took effect, and watches cut and stalled; functions and the leading watcher are
 * killed and paused, while people do the same things as there.
 */
const seed = Number(process.env.SEED ?? 1)
const acts = 40
/** Between two acts, at most, in ms. */
const apartMs = 500
const pauseMs = 4_000
const latencyMaxMs = 1_000

describe('the real processes on a real API server, whatever goes wrong', () => {
  const admin = realCluster.client()
  const random = seededRandom(seed)
  const reports: KnativeReport[] = []
  const ended = new AbortController()
  /** How many requests met trouble, and how many processes were killed or paused. */
  const met = { troubles: 0, signals: 0 }
  let isTroubled = false
  let stage: Stage
  let proxy: FaultyProxy
  let running: LocalKnative
  let second: FunctionProcess
  let rollouts: Promise<void>

  function troubles(request: { method: string; isWatch: boolean }): Trouble[] {
    const troubled = isTroubled ? troublesOf(random, latencyMaxMs, request) : []
    met.troubles += troubled.length
    return troubled
  }

  beforeAll(async () => {
    await installCrds(admin)
    const namespace = await realCluster.newNamespace()
    proxy = await faultyProxy(realCluster.transport(), troubles)
    const own = {
      KUBECONFIG: await writeKubeconfig(proxy.url),
      POD_NAMESPACE: namespace,
      WATCH_NAMESPACES: namespace,
    }
    running = await realProcesses({
      env: () => own,
      report: (report) => reports.push(report),
    })
    await running.ready
    const sink = `${running.brokerUrl}/mutantops/mutantops`
    second = await functionProcess('watcher', { ...own, K_SINK: sink })
    stage = {
      admin,
      namespace,
      random,
      strangers: new Set(),
      upsets: [killFunction, killWatcher, pauseWatcher],
    }
    await prepare(stage, false)
    rollouts = rollOut()
  }, 90_000)

  afterAll(async () => {
    ended.abort()
    await rollouts
    second.child.kill('SIGKILL')
    await running.stop()
    await proxy.close()
  }, 60_000)

  /** The processes of the local Knative that live, by what has been told of them. */
  function pidsOf(from: 'function' | 'process'): number[] {
    const alive = new Set<number>()
    for (const one of reports) {
      if (one.from !== from || !('pid' in one.report)) continue
      const { kind, pid } = one.report
      if (kind === 'ready') alive.add(pid)
      if (kind === 'stopped' || kind === 'crashed') alive.delete(pid)
    }
    return [...alive]
  }

  function signal(pid: number | undefined, name: NodeJS.Signals): void {
    try {
      if (pid === undefined) return
      process.kill(pid, name)
      met.signals++
    } catch {
      // It has ended by itself.
    }
  }
  const killFunction = () => {
    const pids = pidsOf('function')
    signal(pids[Math.floor(random() * pids.length)], 'SIGKILL')
  }
  const killWatcher = () => signal(pidsOf('process')[0], 'SIGKILL')
  const pauseWatcher = async () => {
    const pid = random() < 0.5 ? second.child.pid : pidsOf('process')[0]
    signal(pid, 'SIGSTOP')
    await systemClock.sleep(pauseMs)
    signal(pid, 'SIGCONT')
  }

  /** No controller runs pods here: each Deployment is told to be rolled out, as soon as it is seen. */
  async function rollOut(): Promise<void> {
    while (!ended.signal.aborted) {
      const { items } = await admin.list<StoredObject & { spec: { replicas: number } }>(deployments, {
        namespace: stage.namespace,
      })
      await Promise.all(items.map((item) => rolledOut(item).catch(() => {})))
      await systemClock.sleep(200, ended.signal).catch(() => {})
    }
  }

  async function rolledOut(item: StoredObject & { spec: { replicas: number } }): Promise<void> {
    const { replicas } = item.spec
    const status = {
      observedGeneration: item.metadata.generation,
      ...(replicas > 0 && {
        replicas,
        updatedReplicas: replicas,
        readyReplicas: replicas,
        availableReplicas: replicas,
      }),
    }
    if (JSON.stringify(status) === JSON.stringify(item.status)) return
    await admin.replace(deployments, { ...item, status }, { subresource: 'status' })
  }

  it(`ends as wanted after a resync (seed ${seed}), touches no stranger, and then writes nothing`, async () => {
    const tokens = new Map<string, unknown>()
    const lookAtTokens = async () => {
      for (const { metadata, data } of (await admin.list(secrets, { namespace: stage.namespace })).items) {
        if (tokens.has(metadata.uid)) expect(data).toEqual(tokens.get(metadata.uid))
        tokens.set(metadata.uid, data)
      }
    }
    isTroubled = true
    for (let revision = 1; revision <= acts; revision++) {
      await act(stage, revision)
      await systemClock.sleep(random() * apartMs)
      await lookAtTokens()
    }
    isTroubled = false
    expect(met.troubles).toBeGreaterThan(acts)
    expect(met.signals).toBeGreaterThan(0)
    await resumeAll(stage)
    // A paused watcher goes on, whatever the acts said last.
    for (const pid of [second.child.pid, ...pidsOf('process')]) signal(pid, 'SIGCONT')

    await eventually(async () => {
      const response = await fetch(`${running.functionsUrl}/mutantops/resync`, {
        method: 'POST',
        body: '{"mode":"needed"}',
        headers: { 'content-type': 'application/json' },
      })
      expect(response.status).toBe(204)
      await systemClock.sleep(2_000)
      await expectConverged(stage)
    }, 120_000)
    await lookAtTokens()
    await expectStrangersUntouched()

    const before = (await realCluster.requests()).length
    await systemClock.sleep(3_000)
    const writes = (await realCluster.requests(before)).filter(
      ({ verb, userAgent, objectRef }) =>
        userAgent.startsWith('mutantops/') &&
        objectRef?.namespace === stage.namespace &&
        objectRef.resource !== 'leases' &&
        !['get', 'list', 'watch'].includes(verb),
    )
    expect(writes).toEqual([])
  }, 240_000)

  async function expectStrangersUntouched(): Promise<void> {
    for (const { metadata } of (await admin.list(deployments, { namespace: stage.namespace })).items)
      if (stage.strangers.has(metadata.name))
        expect(metadata.managedFields?.map(({ manager }) => manager)).not.toContain(fieldManager)
    expect(stage.strangers.size).toBeGreaterThanOrEqual(mutantKinds.length)
  }
})
