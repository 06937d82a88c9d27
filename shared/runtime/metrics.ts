import { Counter, Gauge, type Registry } from 'prom-client'
import type { ConfigMapMetrics } from './config-maps.ts'
import type { LeaseMetrics } from './elector.ts'
import type { Leadership } from './leadership.ts'
import type { EventMetrics } from './recorder.ts'

/** The runtime's metrics. The values of labels are names from the configuration, so their number is bounded by it. */
export interface RuntimeMetrics {
  lease(name: string): LeaseMetrics
  /** From now on `kubernetes_leader` tells, at each scrape, what `leadership` says at that moment. */
  watchLeader(name: string, leadership: Leadership): void
  events: EventMetrics
  configMap(name: string): ConfigMapMetrics
  apiUp(up: boolean): void
}

/** Registers the metrics; throws when `registry` has them already (one runtime for each registry). */
export function runtimeMetrics(registry: Registry): RuntimeMetrics {
  const counter = (name: string, help: string, ...labelNames: string[]) =>
    new Counter({ name, help, labelNames, registers: [registry] })
  const leaders = new Map<string, Leadership>()
  new Gauge({
    name: 'kubernetes_leader',
    help: 'Whether this process leads (1) or not (0).',
    labelNames: ['lease'],
    registers: [registry],
    collect() {
      for (const [lease, leadership] of leaders) this.set({ lease }, leadership.isLeader() ? 1 : 0)
    },
  })
  const acquired = counter('kubernetes_leader_acquired_total', 'Terms of leadership that began.', 'lease')
  const lost = counter('kubernetes_leader_lost_total', 'Terms of leadership that ended.', 'lease')
  const leaseErrors = counter(
    'kubernetes_lease_errors_total',
    'Rounds of the election that failed on the API.',
    'lease',
  )
  const conflicts = counter('kubernetes_lease_conflicts_total', 'Lease writes that lost a race.', 'lease')
  const published = counter('kubernetes_events_published_total', 'Kubernetes Events written.')
  const failed = counter('kubernetes_events_failed_total', 'Kubernetes Events that could not be written.')
  const apiUp = new Gauge({
    name: 'kubernetes_api_up',
    help: 'Whether the Kubernetes API answered the last health check (1) or not (0).',
    registers: [registry],
  })
  const updates = counter(
    'kubernetes_config_map_updates_total',
    'Changes of a watched ConfigMap.',
    'config_map',
  )
  const watchErrors = counter(
    'kubernetes_config_map_errors_total',
    'Failed reads and watches of a ConfigMap.',
    'config_map',
  )

  return {
    lease(lease) {
      // A series that exists from the start at 0 makes its first increase visible.
      for (const each of [acquired, lost, leaseErrors, conflicts]) each.inc({ lease }, 0)
      return {
        acquired: () => acquired.inc({ lease }),
        lost: () => lost.inc({ lease }),
        error: () => leaseErrors.inc({ lease }),
        conflict: () => conflicts.inc({ lease }),
      }
    },
    watchLeader: (lease, leadership) => leaders.set(lease, leadership),
    events: { published: () => published.inc(), failed: () => failed.inc() },
    configMap(name) {
      for (const each of [updates, watchErrors]) each.inc({ config_map: name }, 0)
      return {
        update: () => updates.inc({ config_map: name }),
        error: () => watchErrors.inc({ config_map: name }),
      }
    },
    apiUp: (up) => apiUp.set(up ? 1 : 0),
  }
}
