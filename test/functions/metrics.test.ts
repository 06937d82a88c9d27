import { expect, test } from 'vitest'
import { lazyMetrics, metricDefinitions } from '../../functions/metrics.ts'

test('what was noted before anybody looked is told with what comes after', async () => {
  const metrics = lazyMetrics()
  metrics.note('mutantops_events_total', { status: '204' })
  metrics.note('mutantops_reconcile_duration_seconds', { kind: 'Mutation' }, 0.02)
  await metrics.text()
  metrics.note('mutantops_events_total', { status: '204' }, 2)
  const { text, contentType } = await metrics.text()
  expect(contentType).toContain('text/plain')
  expect(text).toContain('mutantops_events_total{status="204"} 3')
  expect(text).toContain('mutantops_reconcile_duration_seconds_bucket{le="0.025",kind="Mutation"} 1')
  expect(text).toContain('mutantops_reconcile_duration_seconds_sum{kind="Mutation"} 0.02')
})

test('thousands of notes that nobody asks for are kept as counts, not as a list', async () => {
  const metrics = lazyMetrics()
  for (let times = 0; times < 5_000; times++) metrics.note('mutantops_events_total', { status: '503' })
  expect((await metrics.text()).text).toContain('mutantops_events_total{status="503"} 5000')
})

test('each metric is explained, counters end in _total and durations say their unit', async () => {
  const { text } = await lazyMetrics().text()
  for (const [name, { type }] of Object.entries(metricDefinitions)) {
    expect(text).toMatch(new RegExp(`# HELP ${name} \\S.*\\.\n# TYPE ${name} ${type}`))
    expect(name.endsWith('_total')).toBe(type === 'counter')
    if (type === 'histogram') expect(name).toMatch(/_seconds$/)
  }
})
