import { lazyMetrics } from '../../functions/metrics.ts'
import { mutantDeploymentApp } from '../../functions/mutant-deployment.ts'
import { mutationApp } from '../../functions/mutation.ts'
import { resyncApp } from '../../functions/resync.ts'
import { watcherApp } from '../../functions/watcher.ts'
import type { Trouble } from '../../shared/apiserver/faults.ts'
import { apiServer } from '../../shared/apiserver/server.ts'
import { pingType } from '../../shared/cloudevents/envelope.ts'
import type { CloudEvent } from '../../shared/cloudevents/event.ts'
import { type Sink, SinkError } from '../../shared/cloudevents/sink.ts'
import { binaryOf } from '../../shared/cloudevents/write.ts'
import { kubeClient } from '../../shared/kube/client.ts'
import { createLog } from '../../shared/log.ts'
import { needsWork } from '../../shared/reconcile/needs-work.ts'
import { settle, virtualClock } from '../support/clock.ts'
import { installCrds } from '../support/crds.ts'
import { invariants } from './invariants.ts'
import { type Process, startProcess } from './process.ts'

/** The whole operator in one process on a virtual clock: the real watcher, functions and API; a broker that errs. */
export type Simulation = Awaited<ReturnType<typeof simulation>>

const log = createLog({ name: 'simulation', level: 'silent' })
const resyncPeriodMs = 300_000
/** Time passes in steps of this length, each when all requests under way are answered. */
const stepMs = 1_000
/** The waits of the Triggers' deliveries, as in the manifests. */
const retriesMax = 8
const backoffMs = 10_000
/** Above it a delivery is late on purpose. */
const delayMaxMs = 20_000

export async function simulation(
  seed: number,
  options: { onEvent?: (event: CloudEvent) => void; rollout?: false } = {},
) {
  const clock = virtualClock({ seed })
  const { random } = clock
  const server = apiServer({ clock, ...(options.rollout === false && { rollout: false }) })
  const admin = kubeClient({ transport: server.transport(), clock, userAgent: 'admin' })
  await installCrds(admin)
  const held = invariants(admin)
  const state = {
    isTroubled: false,
    inFlight: 0,
    deliveries: 0,
    writes: [] as string[],
    events: [] as CloudEvent[],
    /** Each request that was answered and each event that was taken, in order. */
    trace: [] as string[],
    kills: 0,
  }
  const chance = (probability: number) => state.isTroubled && random() < probability

  function troubles(method: string, isWatch: boolean): Trouble[] {
    if (!state.isTroubled) return []
    if (isWatch) {
      if (chance(0.3)) return [{ cutAfterEvents: Math.floor(random() * 4) }]
      return chance(0.2) ? [{ stallAfterEvents: Math.floor(random() * 4) }] : []
    }
    const met: Trouble[] = chance(0.2) ? [{ latencyMs: random() * 3_000 }] : []
    if (chance(0.08)) met.push({ status: [429, 500, 503, 504][Math.floor(random() * 4)] ?? 500 })
    if (chance(0.08)) met.push({ reset: method !== 'GET' && random() < 0.5 ? 'after' : 'before' })
    return met
  }

  function start(): Process {
    const dies = chance(0.15)
      ? { at: Math.floor(random() * 10), effect: random() < 0.5 ? ('before' as const) : ('after' as const) }
      : undefined
    return startProcess({
      transport: server.transport(),
      clock,
      troubles,
      dies,
      onFlight: (change) => {
        state.inFlight += change
      },
      witness: async (seen) => {
        const after = await held.witness(seen)
        return async (answer) => {
          await after(answer)
          state.trace.push(`${seen.method} ${seen.path} ${answer.status}`)
          if (answer.status < 300 && !seen.path.includes('/leases/'))
            state.writes.push(`${seen.method} ${seen.path}`)
        }
      },
    })
  }

  const contextOf = ({ client, clock: own }: Process) => ({
    name: 'simulation',
    client,
    clock: own,
    log,
    metrics: lazyMetrics(),
    cluster: 'here',
    deadlineMs: 20_000,
    draining: new AbortController().signal,
    background: (work: Promise<void>) => void work.catch(() => {}),
  })

  function appOf(event: CloudEvent, by: Process) {
    const ctx = contextOf(by)
    const { kind } = event.extensions
    if (kind === undefined)
      return resyncApp({
        ...ctx,
        sink: sinkOf(by),
        namespaces: undefined,
        needsWork: (family) =>
          needsWork(family.kind, family.parent, family.children, { adoption: 'label', now: clock.now() }),
      })
    const reconciler = { ...ctx, adoption: 'label' as const, replies: false, record: async () => {} }
    return kind === 'Mutation' ? mutationApp(reconciler) : mutantDeploymentApp(reconciler)
  }

  /** One try: a new process that works on the event, and may die at it. */
  async function tryOnce(event: CloudEvent): Promise<number> {
    if (chance(0.05)) return 503
    const by = start()
    const { headers, body } = binaryOf(event)
    const request = new Request('http://function/', { method: 'POST', headers, body: body as string | null })
    const answer = await Promise.race([by.dead, appOf(event, by).fetch(request)])
    if (!answer) state.kills++
    return answer ? answer.status : 503
  }

  async function deliver(event: CloudEvent): Promise<void> {
    state.deliveries++
    if (chance(0.5)) await clock.sleep(random() * delayMaxMs)
    for (let tries = 0; tries <= retriesMax; tries++) {
      const status = await tryOnce(event)
      if (status < 300 || (status < 500 && ![404, 408, 409, 429].includes(status))) break
      if (tries < retriesMax) await clock.sleep(tries * backoffMs)
    }
    state.deliveries--
  }

  function accept(event: CloudEvent): void {
    state.events.push(event)
    state.trace.push(`${event.type} ${event.id}`)
    options.onEvent?.(event)
    if (chance(0.1)) return
    void deliver(event)
    if (chance(0.2)) void deliver(event)
  }

  function sinkOf(by: Process): Sink {
    return {
      async send(event) {
        if (by.isDead()) await new Promise<never>(() => {})
        if (chance(0.1)) throw new SinkError('no answer', 'reset')
        if (chance(0.1)) return { status: 503, resets: 0 }
        accept(event)
        return { status: 202, resets: 0 }
      },
      close: async () => {},
    }
  }

  /** A watcher; of several one leads. */
  async function startWatcher(identity: string): Promise<Process> {
    const by = start()
    // Looked at less often than usual: most of a seed's time would be the renewals of the quiet end.
    const election = { leaseDurationSeconds: 15, renewDeadlineSeconds: 10, retryPeriodSeconds: 5 }
    await watcherApp({
      ...contextOf(by),
      sink: sinkOf(by),
      namespaces: undefined,
      election: { ...election, namespace: 'default', leaseName: 'watcher', identity },
    }).start()
    return by
  }

  let nextResyncMs = resyncPeriodMs
  async function idle(): Promise<void> {
    // A request that waits on the clock (latency) is not waited for.
    for (let turn = 0; turn < 20; turn++) {
      await settle()
      if (state.inFlight === 0) break
    }
    await settle()
  }
  async function advance(ms: number): Promise<void> {
    for (let left = ms; left > 0; left -= stepMs) {
      await clock.advance(Math.min(stepMs, left))
      await idle()
      if (clock.monotonicMs() < nextResyncMs) continue
      nextResyncMs += resyncPeriodMs
      accept({ specversion: '1.0', id: `${nextResyncMs}`, source: '/cron', type: pingType, extensions: {} })
    }
  }

  return { clock, server, admin, held, state, startWatcher, advance, accept, stop: () => server.stop() }
}
