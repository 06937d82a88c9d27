import type { Clock } from '../clock.ts'
import type { ResyncMode } from '../cloudevents/envelope.ts'
import type { Sink } from '../cloudevents/sink.ts'
import type { KubeClient } from '../kube/client.ts'
import type { InformerCount, InformerLimits } from '../kube/informer.ts'
import { type Lane, type Workqueue, type WorkqueueState, workqueue } from '../kube/workqueue.ts'
import type { Logger } from '../log.ts'
import { delivery } from './delivery.ts'
import { eventOf, type Hint, keyOf } from './hint.ts'
import type { WatcherSettings } from './settings.ts'
import { type Watch, watchesOf } from './watches.ts'

export interface ForwardOptions {
  client: KubeClient
  clock: Clock
  log: Logger
  sink: Sink
  /** The cluster's name, for the source of events. */
  cluster: string
  /** Undefined means all of them, by one watch per kind. */
  namespaces: string[] | undefined
  /** Asked before each send. */
  isLeader: () => boolean
  /** Told of each answer of the sink: its status, 0 when none came. */
  onAnswer?: (status: number) => void
  onCount?: (kind: string, what: InformerCount) => void
  /** Told of each hint that a full queue has lost. */
  onDrop?: () => void
  /** As it is now; asked again and again. */
  settings: () => Pick<WatcherSettings, 'concurrency' | 'foldWithinMs' | 'paused'>
  /** Without a cron's events: asks for a resync each time so long has passed, and for a full one, in ms. */
  resyncEveryMs?: number | undefined
  fullResyncEveryMs?: number | undefined
  limits?: Partial<InformerLimits>
}

export interface ForwardState {
  queue: WorkqueueState
  /** How many objects of each kind are watched. */
  objects: Record<string, number>
  /** The watches that do not stand. */
  interrupted: { kind: string; namespace?: string; phase: string }[]
  /** Whether the sink took the last event. */
  sinkIsWell: boolean
}

export interface Forwarding {
  /** Watches and sends until `signal` is aborted. */
  run(signal: AbortSignal): Promise<void>
  /** Looks at the settings, which have changed. */
  wake(): void
  /** Undefined while it does not run. */
  state(): ForwardState | undefined
}

interface Running {
  queue: Workqueue<Hint>
  watches: Watch[]
  sinkIsWell: () => boolean
}

/** Many watches do not all begin at once: so long apart on average, in ms. */
const startApartMs = 10
/** So many begin at once all the same. */
const startTogether = 3

/**
 * Turns changes in the cluster into events at the sink: three informers (for each namespace, where they are named), one
 * queue. It knows nothing when it begins: it lists, then asks for one resync instead of sending an event for each object.
 * A namespace that could not be read then is sent whole as soon as it can be.
 */
export function forwarding(options: ForwardOptions): Forwarding {
  let running: Running | undefined
  return {
    async run(signal) {
      const mine = begin(options, signal)
      running = mine
      try {
        await Promise.all(startAll(mine.watches, options, signal))
      } finally {
        if (running === mine) running = undefined
      }
    },
    wake: () => running?.queue.wake(),
    state: () => running && stateOf(running),
  }
}

function begin(options: ForwardOptions, signal: AbortSignal): Running {
  const { clock, log, cluster, settings } = options
  const { send, isWell } = delivery({ ...options, onAnswer: (status) => options.onAnswer?.(status) })
  let isOverfull = false

  const add = (hint: Hint, lane: Lane) =>
    queue.add(keyOf(hint), hint, { lane, pinned: hint.verb === 'resync' })
  const askForResync = (mode: ResyncMode) => {
    const time = clock.now()
    const tick = `${time.toISOString()}-${Math.floor(clock.random() * 1e9)}`
    add({ verb: 'resync', mode, tick, time }, 'fresh')
  }
  const queue = workqueue<Hint>({
    clock,
    signal,
    mayStart: () => options.isLeader() && !settings().paused,
    concurrency: () => settings().concurrency,
    foldWithinMs: () => settings().foldWithinMs,
    onDrop: () => {
      options.onDrop?.()
      if (isOverfull) return
      isOverfull = true
      log.warn({}, 'queue full: hints are dropped, and a resync is asked for')
      askForResync('needed')
    },
    work: (_, hint) => {
      if (hint.verb === 'resync') isOverfull = false
      return send(eventOf(hint, cluster), signal)
    },
  })
  const watches = watchesOf({ ...options, onHint: add })
  Promise.all(watches.map(({ settled }) => settled)).then(
    () => askForResync('needed'),
    () => {},
  )
  const { resyncEveryMs, fullResyncEveryMs } = options
  if (resyncEveryMs) void every(resyncEveryMs, clock, signal, () => askForResync('needed'))
  if (fullResyncEveryMs) void every(fullResyncEveryMs, clock, signal, () => askForResync('full'))
  return { queue, watches, sinkIsWell: isWell }
}

async function every(periodMs: number, clock: Clock, signal: AbortSignal, task: () => void): Promise<void> {
  const passed = () =>
    clock.sleep(periodMs, signal).then(
      () => true,
      () => false,
    )
  while (await passed()) task()
}

function startAll(watches: Watch[], { clock }: ForwardOptions, signal: AbortSignal): Promise<void>[] {
  const spreadMs = watches.length > startTogether ? watches.length * startApartMs : 0
  return watches.map(async ({ informer }) => {
    if (spreadMs > 0) await clock.sleep(spreadMs * clock.random(), signal).catch(() => {})
    await informer.run(signal)
  })
}

function stateOf({ queue, watches, sinkIsWell }: Running): ForwardState {
  const objects: Record<string, number> = {}
  const interrupted: ForwardState['interrupted'] = []
  for (const { kind, namespace, informer } of watches) {
    const { phase, objects: count } = informer.state()
    objects[kind] = (objects[kind] ?? 0) + count
    if (phase !== 'watching') interrupted.push({ kind, ...(namespace && { namespace }), phase })
  }
  return { queue: queue.state(), objects, interrupted, sinkIsWell: sinkIsWell() }
}
