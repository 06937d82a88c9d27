import type { KubeObject } from '../shared/kinds/object.ts'
import { head } from './names.ts'

/**
 * For the Prometheus operator: what to scrape, and when to call somebody. The functions live too short to be scraped;
 * their metrics come by OTLP, under the same names (Prometheus keeps a `_total` and a unit that are there already).
 */

interface Alert {
  alert: string
  expr: string
  /** How long it must hold. */
  for: string
  severity: 'warning' | 'critical'
  summary: string
}

export const alerts: Alert[] = [
  {
    alert: 'MutantopsNoLeader',
    expr: 'sum(mutantops_watcher_leading) < 1 or absent(mutantops_watcher_leading)',
    for: '2m',
    severity: 'critical',
    summary: 'No watcher leads: changes are reconciled by the periodic resync only.',
  },
  {
    alert: 'MutantopsQueueOld',
    expr: 'max(mutantops_watcher_queue_oldest_seconds) > 120 and max(mutantops_watcher_paused) == 0',
    for: '5m',
    severity: 'warning',
    summary: 'A change has waited for more than two minutes to be told to the functions.',
  },
  {
    alert: 'MutantopsSinkDown',
    expr: 'sum(rate(mutantops_watcher_sends_total{status!~"2.."}[5m])) > 0 unless sum(rate(mutantops_watcher_sends_total{status=~"2.."}[5m])) > 0',
    for: '5m',
    severity: 'critical',
    summary: "The broker (or the functions) takes none of the watcher's events.",
  },
  {
    alert: 'MutantopsWatchInterrupted',
    expr: 'max(mutantops_watcher_interrupted) > 0',
    for: '10m',
    severity: 'warning',
    summary: 'The watcher cannot watch a kind or a namespace: see its log and /readyz.',
  },
  {
    alert: 'MutantopsPaused',
    expr: 'max(mutantops_watcher_paused) > 0',
    for: '1h',
    severity: 'warning',
    summary: 'The watcher has been paused for an hour by its ConfigMap.',
  },
  {
    alert: 'MutantopsDeadLetters',
    expr: `sum by (kind, answer) (${anew('mutantops_dead_letters_total', '15m')}) > 0`,
    for: '0m',
    severity: 'warning',
    summary:
      'Events were given up; a Kubernetes Event on each object says why. The next resync looks at them again.',
  },
  {
    alert: 'MutantopsReconcileErrors',
    expr: 'sum by (kind, error) (rate(mutantops_reconcile_errors_total{error!="invalid"}[10m])) > 0.1',
    for: '15m',
    severity: 'warning',
    summary: 'Reconciles keep failing at the API server.',
  },
  {
    alert: 'MutantopsBugs',
    expr: `sum by (error) (${anew('mutantops_controller_errors_total{error=~"runner|queue"}', '30m')}) > 0`,
    for: '0m',
    severity: 'warning',
    summary: 'A function failed in a way that nobody foresaw, or the queue of the watcher was full.',
  },
]

/**
 * How much a counter grew. `increase` needs two values, and the first one that comes from a function that lives for a
 * minute is often its last: a series that was not there before counts whole.
 */
function anew(series: string, within: string): string {
  return `(${series} unless ${series} offset ${within}) or increase(${series}[${within}])`
}

export function alertRules(): KubeObject[] {
  const rules = alerts.map(({ alert, expr, for: duration, severity, summary }) => ({
    alert,
    expr,
    for: duration,
    labels: { severity },
    annotations: { summary },
  }))
  return [
    {
      ...head('monitoring.coreos.com/v1', 'PodMonitor', 'watcher', 'watcher'),
      spec: {
        selector: { matchLabels: { 'app.kubernetes.io/name': 'watcher' } },
        podMetricsEndpoints: [{ port: 'http', path: '/metrics', interval: '30s' }],
      },
    },
    {
      ...head('monitoring.coreos.com/v1', 'PrometheusRule', 'mutantops'),
      spec: { groups: [{ name: 'mutantops', rules }] },
    },
  ]
}
