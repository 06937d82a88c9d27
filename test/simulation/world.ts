import { deadLetterApp } from '../../functions/dead-letter.ts'
import { lazyMetrics } from '../../functions/metrics.ts'
import { mutantDeploymentApp } from '../../functions/mutant-deployment.ts'
import { mutationApp } from '../../functions/mutation.ts'
import { resyncApp } from '../../functions/resync.ts'
import { watcherApp } from '../../functions/watcher.ts'
import { apiServer } from '../../shared/apiserver/server.ts'
import { objectTypes, pingType } from '../../shared/cloudevents/envelope.ts'
import type { CloudEvent } from '../../shared/cloudevents/event.ts'
import { binaryOf } from '../../shared/cloudevents/write.ts'
import { kubeClient, type Transport } from '../../shared/kube/client.ts'
import { createLog } from '../../shared/log.ts'
import type { AdoptionSettings } from '../../shared/reconcile/adoption.ts'
import { needsWork } from '../../shared/reconcile/needs-work.ts'
import { objectEventRecorder } from '../../shared/reconcile/object-events.ts'
import { settle, virtualClock } from '../support/clock.ts'
import { installCrds } from '../support/crds.ts'
import { type Broker, broker } from './broker.ts'
import { invariants } from './invariants.ts'
import { type Process, startProcess } from './process.ts'
import { troublesOf } from './troubles.ts'

/** The whole operator in one process on a virtual clock: the real watcher, functions and API; a broker that errs. */
export type Simulation = Awaited<ReturnType<typeof simulation>>

const log = createLog({ name: 'simulation', level: 'silent' })
const latencyMaxMs = 3_000
export const resyncPeriodMs = 300_000

/** In seconds; the longest a simulation may be without a leader after one ended is their sum. */
export const election = { leaseDurationSeconds: 30, renewDeadlineSeconds: 20, retryPeriodSeconds: 10 }

export interface SimulationOptions {
  onEvent?: (event: CloudEvent) => void
  rollout?: false
  adoption?: AdoptionSettings
  /** The way of the processes to the API server, bent. */
  bent?: (transport: Transport) => Transport
  /** What happens now and then just before a write of the operator reaches the server. */
  beforeWrite?: (path: string) => Promise<void>
}

export async function simulation(seed: number, options: SimulationOptions = {}) {
  const clock = virtualClock({ seed })
  const { random } = clock
  const adoption = options.adoption ?? { adoption: 'label' }
  const server = apiServer({ clock, ...(options.rollout === false && { rollout: false }) })
  const admin = kubeClient({ transport: server.transport(), clock, userAgent: 'admin' })
  await installCrds(admin)
  const held = invariants(admin, adoption)
  const state = {
    isTroubled: false,
    inFlight: 0,
    deliveries: 0,
    /** When something was last written, the Lease apart, or an event of a change was taken; on the monotonic clock. */
    activeAtMs: 0,
    /** All that was written, the Lease apart. */
    writes: [] as string[],
    /** Each request that was answered and each event that was taken, in order. */
    trace: [] as string[],
    kills: 0,
    /** The events that were given up once the trouble was over. */
    givenUp: [] as CloudEvent[],
  }
  const chance = (probability: number) => state.isTroubled && random() < probability

  function start(): Process {
    const dies = chance(0.15)
      ? { batch: Math.floor(random() * 7), survivors: Math.floor(random() * 256) }
      : undefined
    return startProcess({
      transport: options.bent?.(server.transport()) ?? server.transport(),
      clock,
      troubles: (method, isWatch) =>
        state.isTroubled ? troublesOf(random, latencyMaxMs, { method, isWatch }) : [],
      dies,
      beforeWrite: async (_, path) => {
        if (chance(0.02)) await options.beforeWrite?.(path)
      },
      onFlight: (change) => {
        state.inFlight += change
      },
      witness: async (seen) => {
        const after = await held.witness(seen)
        return async (answer) => {
          await after(answer)
          state.trace.push(`${seen.method} ${seen.path} ${answer.status}`)
          if (answer.status >= 300 || seen.path.includes('/leases/')) return
          state.activeAtMs = clock.monotonicMs()
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
    record: objectEventRecorder({
      client,
      clock: own,
      reporter: { controller: 'neiam.org/simulation', instance: 'one' },
    }),
  })

  function appOf(event: CloudEvent, by: Process) {
    const ctx = contextOf(by)
    const { kind } = event.extensions
    if (kind === undefined)
      return resyncApp({
        ...ctx,
        sink: events.sinkFor(by),
        namespaces: undefined,
        needsWork: (family) =>
          needsWork(family.kind, family.parent, family.children, { ...adoption, now: clock.now() }),
      })
    const reconciler = { ...ctx, ...adoption, replies: false }
    return kind === 'Mutation' ? mutationApp(reconciler) : mutantDeploymentApp(reconciler)
  }

  /** One try: a new process that works on the event, and may die at it. Gives no status when it did. */
  async function posted(
    event: CloudEvent,
    app: (by: Process) => { fetch: ReturnType<typeof appOf>['fetch'] },
  ): Promise<number | undefined> {
    const by = start()
    const { headers, body } = binaryOf(event)
    const request = new Request('http://function/', { method: 'POST', headers, body: body as string | null })
    const answer = await Promise.race([by.dead, app(by).fetch(request)])
    if (!answer) state.kills++
    return answer?.status
  }

  /** The dead letter of an event; its function is tried as any other. */
  async function giveUp(event: CloudEvent, status: number): Promise<void> {
    const extensions = { ...event.extensions, knativeerrordest: 'here', knativeerrorcode: `${status}` }
    for (let tries = 1; tries <= 3; tries++) {
      const isCalm = !state.isTroubled
      const answered = await posted({ ...event, extensions }, (by) => deadLetterApp(contextOf(by)))
      if (answered === undefined) continue
      if (answered !== 204) held.broken.push(`a dead letter was answered ${answered}`)
      if (isCalm) state.givenUp.push(event)
      return
    }
  }

  const events: Broker = broker({
    clock,
    chance,
    giveUp,
    tryOnce: async (event) => (chance(0.05) ? 503 : ((await posted(event, (by) => appOf(event, by))) ?? 503)),
    onAccepted: (event) => {
      // A variant whose name is taken is looked at again at each resync.
      if (event.type !== pingType && event.type !== objectTypes.resync) state.activeAtMs = clock.monotonicMs()
      state.trace.push(`${event.type} ${event.id}`)
      options.onEvent?.(event)
    },
    onDelivery: (change) => {
      state.deliveries += change
    },
  })

  /** A watcher; of several one leads. */
  async function startWatcher(identity: string): Promise<Process> {
    const by = start()
    await watcherApp({
      ...contextOf(by),
      sink: events.sinkFor(by),
      namespaces: undefined,
      election: { ...election, namespace: 'default', leaseName: 'watcher', identity },
    }).start()
    return by
  }

  let nextResyncMs = resyncPeriodMs
  /** Until all requests under way are answered, and what waited for them has run. */
  async function idle(): Promise<void> {
    await settle()
    while (state.inFlight > 0) await settle()
  }
  async function advance(ms: number): Promise<void> {
    const endMs = clock.monotonicMs() + ms
    while (clock.monotonicMs() < endMs) {
      await clock.advance(Math.min(endMs, nextResyncMs) - clock.monotonicMs(), idle)
      if (clock.monotonicMs() < nextResyncMs) continue
      nextResyncMs += resyncPeriodMs
      const ping = { specversion: '1.0', id: `${nextResyncMs}`, source: '/cron', type: pingType } as const
      events.accept({ ...ping, extensions: {} })
      await idle()
    }
  }

  const { accept } = events
  return { clock, server, admin, held, state, startWatcher, advance, accept, stop: () => server.stop() }
}
