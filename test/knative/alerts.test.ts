import type { SyntaxNode } from '@lezer/common'
import { parser } from '@prometheus-io/lezer-promql'
import { expect, it } from 'vitest'
import { metricDefinitions } from '../../functions/metrics.ts'
import { alerts } from '../../knative/alerts.ts'

/** The text of each node of a kind, in what Prometheus' own grammar makes of an expression. */
function textsOf(expression: string, kind: string): string[] {
  const texts: string[] = []
  parser.parse(expression).iterate({
    enter({ node, name }) {
      if (name === kind) texts.push(expression.slice(node.from, node.to))
    },
  })
  return texts
}

/** Each metric with the labels that are asked of it. */
function selectorsOf(expression: string): { metric: string; labels: string[] }[] {
  const selectors: { metric: string; labels: string[] }[] = []
  parser.parse(expression).iterate({
    enter({ node, name }) {
      if (name !== 'VectorSelector') return
      const [metric = ''] = childTexts(expression, node, 'Identifier')
      selectors.push({ metric, labels: childTexts(expression, node, 'LabelName') })
    },
  })
  return selectors
}

function childTexts(expression: string, node: SyntaxNode, kind: string): string[] {
  const texts: string[] = []
  node.cursor().iterate((one) => {
    if (one.name === kind) texts.push(expression.slice(one.from, one.to))
  })
  return texts
}

const definitions: Record<string, { type: string; labels: readonly string[] }> = metricDefinitions

it.each(alerts)('$alert is PromQL over metrics that there are, by labels that they have', ({ expr }) => {
  expect(textsOf(expr, '⚠')).toEqual([])
  const selectors = selectorsOf(expr)
  expect(selectors.length).toBeGreaterThan(0)
  for (const { metric, labels } of selectors) {
    expect(Object.keys(definitions)).toContain(metric)
    expect(definitions[metric]?.labels).toEqual(expect.arrayContaining(labels))
  }
  const grouped = textsOf(expr, 'GroupingLabels').flatMap((text) => text.match(/\w+/g) ?? [])
  for (const label of grouped)
    expect(selectors.some(({ metric }) => definitions[metric]?.labels.includes(label))).toBe(true)
})

it('rates are taken of counters, and of nothing else', () => {
  for (const { expr } of alerts)
    for (const call of textsOf(expr, 'FunctionCall'))
      if (/^(rate|increase)\(/.test(call))
        for (const { metric } of selectorsOf(call)) expect(definitions[metric]?.type).toBe('counter')
})

it('a broken expression would be seen', () => {
  expect(textsOf('sum(mutantops_x{a="b") > 0', '⚠')).not.toEqual([])
  expect(selectorsOf('rate(typo_total{kind="a"}[5m])')).toEqual([{ metric: 'typo_total', labels: ['kind'] }])
})

it('no alert has the name of another, and each says what it is about', () => {
  expect(new Set(alerts.map(({ alert }) => alert)).size).toBe(alerts.length)
  for (const { summary } of alerts) expect(summary).toMatch(/^[A-Z].*\.$/)
})
