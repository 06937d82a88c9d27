import { describe, expect, it } from 'vitest'
import { functionNames, processNames } from '../../knative/names.ts'
import { manifests } from '../../knative/render.ts'
import { isObject } from '../../shared/kinds/object.ts'

/** The NetworkPolicies, read as a network plugin reads them: what one allows is allowed, what none allows is not. */

const objects = Object.values(manifests).flatMap((make) => make())

interface Selector {
  matchLabels?: Record<string, string>
  matchExpressions?: { key: string; operator: string; values: string[] }[]
}
interface PolicySpec {
  podSelector: Selector
  policyTypes: string[]
  ingress?: { from: { namespaceSelector: Selector }[]; ports: { port: number }[] }[]
}
const policies = objects
  .filter(({ kind }) => kind === 'NetworkPolicy')
  .map(({ spec }) => spec as unknown as PolicySpec)

function selects({ matchLabels = {}, matchExpressions = [] }: Selector, labels: Record<string, string>) {
  return (
    Object.entries(matchLabels).every(([key, value]) => labels[key] === value) &&
    matchExpressions.every(({ key, operator, values }) => {
      expect(operator).toBe('In')
      return values.includes(labels[key] ?? '')
    })
  )
}

/** The labels of the pods that a workload makes. */
function podLabels(name: string): Record<string, string> {
  const found = objects.find(
    ({ kind, metadata }) => ['Service', 'Deployment'].includes(kind ?? '') && metadata?.name === name,
  )
  const template = isObject(found?.spec) ? found.spec.template : undefined
  return (template as { metadata: { labels: Record<string, string> } }).metadata.labels
}

function isLetIn(namespace: string, pod: string, port: number): boolean {
  const from = { 'kubernetes.io/metadata.name': namespace }
  return policies
    .filter(({ podSelector }) => selects(podSelector, podLabels(pod)))
    .flatMap(({ ingress }) => ingress ?? [])
    .some(
      (rule) =>
        rule.ports.some((one) => one.port === port) &&
        rule.from.some(({ namespaceSelector }) => selects(namespaceSelector, from)),
    )
}

describe('the NetworkPolicies', () => {
  it('hold for every pod of the namespace, of a process or not, and say nothing of what a pod opens', () => {
    expect(policies.some(({ podSelector }) => selects(podSelector, {}))).toBe(true)
    for (const { policyTypes } of policies) expect(policyTypes).toEqual(['Ingress'])
  })

  it.each([
    ...functionNames.map((name) => ['knative-serving', name, 8012] as const),
    ['knative-serving', 'mutation', 9090],
    ['knative-serving', 'mutation', 8022],
    ['kourier-system', 'mutation', 8012],
    ['monitoring', 'watcher', 8080],
  ] as const)('%s reaches %s at %i', (namespace, pod, port) => {
    expect(isLetIn(namespace, pod, port)).toBe(true)
  })

  it.each([
    // Around queue-proxy to the function itself, from anywhere.
    ...functionNames.map((name) => ['knative-serving', name, 8080] as const),
    ['mutantops', 'mutation', 8012],
    ['default', 'mutation', 8012],
    ['default', 'resync', 9090],
    ['default', 'watcher', 9229],
  ] as const)('%s does not reach %s at %i', (namespace, pod, port) => {
    expect(isLetIn(namespace, pod, port)).toBe(false)
  })

  it('name each process, so that a new one is not forgotten', () => {
    for (const name of processNames)
      expect(policies.filter(({ podSelector }) => selects(podSelector, podLabels(name)))).toHaveLength(2)
  })
})
