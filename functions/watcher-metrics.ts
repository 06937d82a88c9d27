import type { InformerCount } from '../shared/kube/informer.ts'
import type { ForwardState } from '../shared/watching/forward.ts'
import type { MetricName, Metrics } from './metrics.ts'

const counters = {
  relist: 'mutantops_watcher_relists_total',
  restart: 'mutantops_watcher_restarts_total',
  denied: 'mutantops_watcher_denials_total',
  error: 'mutantops_watcher_errors_total',
} satisfies Record<InformerCount, MetricName>

/** Counts what happens to the watch of a kind. */
export function countWatch(metrics: Metrics, kind: string, what: InformerCount): void {
  metrics.note(counters[what], { kind })
}

/** Sets the gauges to what holds now, before a scrape. A process that does not lead watches nothing and sends nothing. */
export function noteState(
  metrics: Metrics,
  state: ForwardState | undefined,
  { leading, paused }: { leading: boolean; paused: boolean },
): void {
  metrics.note('mutantops_watcher_leading', {}, leading ? 1 : 0)
  metrics.note('mutantops_watcher_interrupted', {}, state?.interrupted.length ?? 0)
  metrics.note('mutantops_watcher_paused', {}, paused ? 1 : 0)
  for (const [kind, count] of Object.entries(state?.objects ?? {}))
    metrics.note('mutantops_watcher_objects', { kind }, count)
  const {
    waiting = 0,
    oldestAgeMs = 0,
    inFlight = 0,
    slow = 0,
    folded = 0,
    retried = 0,
    dropped = 0,
  } = state?.queue ?? {}
  metrics.note('mutantops_watcher_queue_depth', {}, waiting)
  metrics.note('mutantops_watcher_queue_oldest_seconds', {}, oldestAgeMs / 1_000)
  metrics.note('mutantops_watcher_sends_in_flight', { lane: 'quick' }, inFlight)
  metrics.note('mutantops_watcher_sends_in_flight', { lane: 'slow' }, slow)
  metrics.note('mutantops_watcher_folded', {}, folded)
  metrics.note('mutantops_watcher_retried', {}, retried)
  metrics.note('mutantops_watcher_dropped', {}, dropped)
}
