import { isObject } from '../kinds/object.ts'
import { mapIn } from './values.ts'

type Labels = Record<string, unknown>

interface Requirement {
  key: string
  operator: string
  values: unknown[]
}

/** Whether a label selector (matchLabels and matchExpressions) asks for anything at all. */
export function isEmptySelector(selector: unknown): boolean {
  return Object.keys(mapIn(selector, 'matchLabels')).length === 0 && expressionsOf(selector).length === 0
}

/**
 * Why `selector` does not match `labels`, in words that can follow "the selector"; undefined when it does. An
 * expression with an operator that Kubernetes does not know matches nothing.
 */
export function mismatchOf(selector: unknown, labels: Labels): string | undefined {
  for (const [key, value] of Object.entries(mapIn(selector, 'matchLabels')))
    if (!Object.hasOwn(labels, key) || labels[key] !== value) return `asks for ${key}: ${String(value)}`
  const failed = expressionsOf(selector).find((requirement) => !isMet(requirement, labels))
  return (
    failed && `asks for ${failed.key} ${failed.operator} ${failed.values.map(String).join(', ')}`.trimEnd()
  )
}

/**
 * The labels that a pod template needs for `selector` and that `labels` lacks: those of matchLabels, and for an
 * expression that asks for a key the value in `live` (the labels that run now). What contradicts is left as it is:
 * {@link mismatchOf} tells.
 */
export function labelsNeeded(selector: unknown, labels: Labels, live: Labels): Labels {
  const needed = Object.entries(mapIn(selector, 'matchLabels')).filter(([key]) => !Object.hasOwn(labels, key))
  for (const { key, operator } of expressionsOf(selector))
    if (
      (operator === 'In' || operator === 'Exists') &&
      !Object.hasOwn(labels, key) &&
      Object.hasOwn(live, key)
    )
      needed.push([key, live[key]])
  return Object.fromEntries(needed)
}

function isMet({ key, operator, values }: Requirement, labels: Labels): boolean {
  const has = Object.hasOwn(labels, key)
  switch (operator) {
    case 'In':
      return has && values.includes(labels[key])
    case 'NotIn':
      return !has || !values.includes(labels[key])
    case 'Exists':
      return has
    case 'DoesNotExist':
      return !has
    default:
      return false
  }
}

function expressionsOf(selector: unknown): Requirement[] {
  const expressions = isObject(selector) ? selector.matchExpressions : undefined
  if (!Array.isArray(expressions)) return []
  return expressions.filter(isObject).map(({ key, operator, values }) => ({
    key: String(key),
    operator: String(operator),
    values: Array.isArray(values) ? values : [],
  }))
}
