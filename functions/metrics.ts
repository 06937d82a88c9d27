import type { MetricDefinition } from '../shared/telemetry/otlp.ts'
import type { Telemetry } from '../shared/telemetry/telemetry.ts'

/** What the functions count. Label values come from closed sets, or are HTTP methods and statuses. */
export const metricDefinitions = {
  mutantops_events_total: {
    type: 'counter',
    help: 'Events answered, by HTTP status.',
    labels: ['status'],
  },
  mutantops_reconciles_total: {
    type: 'counter',
    help: 'Reconciles ended, by kind and outcome (settled, later).',
    labels: ['kind', 'outcome'],
  },
  mutantops_reconcile_duration_seconds: {
    type: 'histogram',
    help: 'How long a reconcile took.',
    labels: ['kind'],
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25],
  },
  mutantops_reconcile_errors_total: {
    type: 'counter',
    help: 'Reconciles with an error, by label (invalid, api, client).',
    labels: ['kind', 'error'],
  },
  mutantops_controller_errors_total: {
    type: 'counter',
    help: 'Events whose object was gone (object_not_found), hints dropped from a full queue (queue), bugs (runner).',
    labels: ['error'],
  },
  mutantops_writes_total: {
    type: 'counter',
    help: 'Writes to the Kubernetes API, by verb.',
    labels: ['kind', 'verb'],
  },
  mutantops_api_requests_total: {
    type: 'counter',
    help: 'Answers of the Kubernetes API, by method and status; 0 is no answer.',
    labels: ['method', 'code'],
  },
  mutantops_resync_objects_total: {
    type: 'counter',
    help: 'Objects that resyncs looked at, by kind.',
    labels: ['kind'],
  },
  mutantops_resync_out_of_sync_total: {
    type: 'counter',
    help: 'Objects that resyncs found to need work, by kind.',
    labels: ['kind'],
  },
  mutantops_resync_events_total: {
    type: 'counter',
    help: 'Events that resyncs sent, by what became of them (sent, slow, failed).',
    labels: ['result'],
  },
  mutantops_resync_restarts_total: {
    type: 'counter',
    help: 'Lists that a resync had to begin again because their continue token had expired.',
    labels: [],
  },
  mutantops_sink_resets_total: {
    type: 'counter',
    help: 'Sends repeated at once because the connection was reset.',
    labels: [],
  },
  mutantops_dead_letters_total: {
    type: 'counter',
    help: 'Events given up by the broker, by kind of object and class of the last answer.',
    labels: ['kind', 'answer'],
  },
  mutantops_watcher_sends_total: {
    type: 'counter',
    help: 'Events sent by the watcher, by the status that the sink answered; 0 is no answer.',
    labels: ['status'],
  },
  mutantops_watcher_relists_total: {
    type: 'counter',
    help: 'Lists read again after a gap.',
    labels: ['kind'],
  },
  mutantops_watcher_restarts_total: {
    type: 'counter',
    help: 'Watches that stand again after an outage.',
    labels: ['kind'],
  },
  mutantops_watcher_denials_total: {
    type: 'counter',
    help: 'Lists and watches refused for want of rights.',
    labels: ['kind'],
  },
  mutantops_watcher_errors_total: {
    type: 'counter',
    help: 'Lists and watches that failed otherwise.',
    labels: ['kind'],
  },
  mutantops_watcher_objects: {
    type: 'gauge',
    help: 'Objects watched, by kind.',
    labels: ['kind'],
  },
  mutantops_watcher_leading: {
    type: 'gauge',
    help: '1 on the watcher that leads.',
    labels: [],
  },
  mutantops_watcher_interrupted: {
    type: 'gauge',
    help: 'Watches that do not stand.',
    labels: [],
  },
  mutantops_watcher_paused: {
    type: 'gauge',
    help: '1 while nothing is sent because the ConfigMap says so.',
    labels: [],
  },
  mutantops_watcher_queue_depth: {
    type: 'gauge',
    help: 'Objects that wait to be told of.',
    labels: [],
  },
  mutantops_watcher_queue_oldest_seconds: {
    type: 'gauge',
    help: 'How long the object that has waited longest has done so.',
    labels: [],
  },
  mutantops_watcher_sends_in_flight: {
    type: 'gauge',
    help: 'Events on their way, by lane: quick, or slow when the sink has held them for over 5 s.',
    labels: ['lane'],
  },
  mutantops_watcher_folded: {
    type: 'gauge',
    help: 'Changes of this term that cost no event of their own, because one waited already.',
    labels: [],
  },
  mutantops_watcher_retried: {
    type: 'gauge',
    help: 'Sends of this term that had to be tried again.',
    labels: [],
  },
  mutantops_watcher_dropped: {
    type: 'gauge',
    help: 'Hints of this term that were dropped because the queue was full.',
    labels: [],
  },
} as const satisfies Record<string, Definition>

interface Definition extends MetricDefinition {
  labels: readonly string[]
}

export type MetricName = keyof typeof metricDefinitions

export interface Metrics {
  /** Adds to a counter (1 by default), sets a gauge, or notes one value of a histogram. */
  note(name: MetricName, labels?: Record<string, string>, value?: number): void
  /** The Prometheus text and its content type. */
  text(): Promise<{ text: string; contentType: string }>
}

/** So many values wait for prom-client before it is loaded for them. */
const waitingMax = 1_000

/**
 * Metrics that cost nothing at a cold start: what is noted waits in a short list, and prom-client is loaded when
 * somebody asks for the text or the list is full. `push` is told of each note too.
 */
export function lazyMetrics(options: { push?: Telemetry['note'] | undefined } = {}): Metrics {
  let waiting: [MetricName, Record<string, string>, number][] = []
  let loading: Promise<Loaded> | undefined
  let loaded: Loaded | undefined

  function load(): Promise<Loaded> {
    loading ??= loadRegistry().then((registry) => {
      for (const [name, labels, value] of waiting) registry.note(name, labels, value)
      waiting = []
      loaded = registry
      return registry
    })
    return loading
  }

  return {
    note(name, labels = {}, value = 1) {
      options.push?.(name, labels, value)
      if (loaded) return loaded.note(name, labels, value)
      waiting.push([name, labels, value])
      if (waiting.length >= waitingMax) load().catch(() => {})
    },
    text: async () => (await load()).text(),
  }
}

interface Loaded {
  note(name: MetricName, labels: Record<string, string>, value: number): void
  text(): Promise<{ text: string; contentType: string }>
}

async function loadRegistry(): Promise<Loaded> {
  const { Counter, Gauge, Histogram, Registry } = await import('prom-client')
  const registry = new Registry()
  const metrics = new Map<string, (labels: Record<string, string>, value: number) => void>()
  for (const [name, definition] of Object.entries<Definition>(metricDefinitions)) {
    const { type, help, labels, buckets } = definition
    const common = { name, help, labelNames: [...labels], registers: [registry] }
    if (type === 'counter') {
      const counter = new Counter(common)
      metrics.set(name, (values, value) => counter.inc(values, value))
    } else if (type === 'gauge') {
      const gauge = new Gauge(common)
      metrics.set(name, (values, value) => gauge.set(values, value))
    } else {
      const histogram = new Histogram({ ...common, ...(buckets && { buckets: [...buckets] }) })
      metrics.set(name, (values, value) => histogram.observe(values, value))
    }
  }
  return {
    note: (name, labels, value) => metrics.get(name)?.(labels, value),
    text: async () => ({ text: await registry.metrics(), contentType: registry.contentType }),
  }
}
