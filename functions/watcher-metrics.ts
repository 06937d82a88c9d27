import { Counter, Gauge, type Registry } from 'prom-client'
import type { InformerCount } from '../shared/kube/informer.ts'
import type { Forwarding } from '../shared/watching/forward.ts'

/** What the watcher counts, each thing as it happens; the rest is read from its state at each scrape. */
export interface WatcherMetrics {
  answer(status: number): void
  count(kind: string, what: InformerCount): void
}

const watchCounts = {
  relist: ['relists', 'Lists read again after a gap.'],
  restart: ['restarts', 'Watches that stand again after an outage.'],
  denied: ['denials', 'Requests refused for want of rights.'],
  error: ['errors', 'Requests that failed otherwise.'],
} satisfies Record<InformerCount, [string, string]>

/** Registers the watcher's metrics. Label values are our kinds, methods and statuses. */
export function watcherMetrics(registry: Registry, forwarding: () => Forwarding): WatcherMetrics {
  const registers = [registry]
  const answers = new Counter({
    name: 'mutantops_watcher_sends_total',
    help: 'Events sent, by the status that the sink answered; 0 is no answer.',
    labelNames: ['status'],
    registers,
  })
  const watches = Object.fromEntries(
    Object.entries(watchCounts).map(([what, [name, help]]) => [
      what,
      new Counter({ name: `mutantops_watcher_${name}_total`, help, labelNames: ['kind'], registers }),
    ]),
  )
  queueGauges(registry, forwarding)
  return {
    answer: (status) => answers.inc({ status: String(status) }),
    count: (kind, what) => watches[what]?.inc({ kind }),
  }
}

type Reading = [name: string, help: string, read: (queue: QueueState) => number]
type QueueState = NonNullable<ReturnType<Forwarding['state']>>['queue']

const readings: Reading[] = [
  ['queue_depth', 'Objects that wait to be told of.', ({ waiting }) => waiting],
  [
    'queue_oldest_seconds',
    'How long the one that has waited longest has done so.',
    (q) => q.oldestAgeMs / 1_000,
  ],
  ['sends_in_flight', 'Events on their way.', ({ inFlight }) => inFlight],
  ['sends_slow', 'Events that the sink has held for over 5 s.', ({ slow }) => slow],
  [
    'folded',
    'Changes of this term that cost no event of their own, because one waited already.',
    ({ folded }) => folded,
  ],
  ['retried', 'Sends of this term that are to be tried again.', ({ retried }) => retried],
  ['dropped', 'Hints of this term dropped because the queue was full.', ({ dropped }) => dropped],
]

/** A new term begins with an empty queue, so all of these are gauges. A process that does not lead has none to show. */
function queueGauges(registry: Registry, forwarding: () => Forwarding): void {
  const registers = [registry]
  for (const [name, help, read] of readings)
    new Gauge({
      name: `mutantops_watcher_${name}`,
      help,
      registers,
      collect() {
        const state = forwarding().state()
        this.set(state ? read(state.queue) : 0)
      },
    })
  new Gauge({
    name: 'mutantops_watcher_objects',
    help: 'Objects watched, by kind.',
    labelNames: ['kind'],
    registers,
    collect() {
      this.reset()
      for (const [kind, count] of Object.entries(forwarding().state()?.objects ?? {}))
        this.set({ kind }, count)
    },
  })
}
