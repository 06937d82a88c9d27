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
  const counter = (name: string, help: string) => new Counter({ name, help, registers: [registry] })
  const published = counter('kubernetes_events_published_total', 'Kubernetes Events written.')
  const failed = counter('kubernetes_events_failed_total', 'Kubernetes Events that could not be written.')
  const apiUp = new Gauge({
    name: 'kubernetes_api_up',
    help: 'Whether the Kubernetes API answered the last health check (1) or not (0).',
    registers: [registry],
  })
  return {
    ...leaseMetrics(registry),
    ...configMapMetrics(registry),
    events: { published: () => published.inc(), failed: () => failed.inc() },
    apiUp: (up) => apiUp.set(up ? 1 : 0),
  }
}

function leaseMetrics(registry: Registry): Pick<RuntimeMetrics, 'lease' | 'watchLeader'> {
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
  const count = (name: string, help: string) => labelled(registry, 'lease', `kubernetes_${name}_total`, help)
  const acquired = count('leader_acquired', 'Terms of leadership that began.')
  const lost = count('leader_lost', 'Terms of leadership that ended.')
  const errors = count('lease_errors', 'Rounds of the election that failed on the API.')
  const conflicts = count('lease_conflicts', 'Lease writes that lost a race.')
  return {
    lease: (name) => ({
      acquired: acquired(name),
      lost: lost(name),
      error: errors(name),
      conflict: conflicts(name),
    }),
    watchLeader: (name, leadership) => leaders.set(name, leadership),
  }
}

function configMapMetrics(registry: Registry): Pick<RuntimeMetrics, 'configMap'> {
  const count = (name: string, help: string) =>
    labelled(registry, 'config_map', `kubernetes_config_map_${name}_total`, help)
  const updates = count('updates', 'Changes of a watched ConfigMap.')
  const errors = count('errors', 'Failed reads and watches of a ConfigMap.')
  return { configMap: (name) => ({ update: updates(name), error: errors(name) }) }
}

/** A counter with one label. Each series begins at 0, so that its first increase is seen. */
function labelled(registry: Registry, label: string, name: string, help: string) {
  const counter = new Counter({ name, help, labelNames: [label], registers: [registry] })
  return (value: string) => {
    const series = counter.labels(value)
    series.inc(0)
    return () => series.inc()
  }
}
