import { isDeepStrictEqual } from 'node:util'
import { Environment } from '@marcbachmann/cel-js'
import { isObject } from '../../kinds/object.ts'
import { type Cause, cause } from '../status.ts'
import type { Structural } from './structural.ts'

/** The rules of `x-kubernetes-validations`, which are written in CEL. */

interface Rule {
  rule: string
  message?: string
  messageExpression?: string
  reason?: string
  fieldPath?: string
}

type Program = (context: Record<string, unknown>) => unknown

const environment = new Environment({ unlistedVariablesAreDyn: true, enableOptionalTypes: true })
/** Compiled once: the text says all. */
const programs = new Map<string, Program>()
const programsMax = 1_000

function programOf(expression: string): Program {
  const known = programs.get(expression)
  if (known) return known
  if (programs.size >= programsMax) programs.clear()
  const program = environment.parse(expression) as Program
  programs.set(expression, program)
  return program
}

/**
 * What breaks a rule in a value that its schema holds otherwise; `old` is the value that it takes the place of, for rules about
 * `oldSelf`, which are not asked of a new value. A rule that cannot be evaluated counts as broken.
 */
export function ruleCauses(value: unknown, old: unknown, schema: Structural, path: string): Cause[] {
  if (!hasRules(schema)) return []
  const rules = (schema['x-kubernetes-validations'] ?? []) as Rule[]
  const own = rules.flatMap((rule) => brokenRule(rule, { value, old, schema, path }) ?? [])
  if (Array.isArray(value)) return [...own, ...itemCauses(value, old, schema, path)]
  if (!isObject(value)) return own
  const before = isObject(old) ? old : {}
  const inner = Object.entries(value).flatMap(([name, field]) => {
    const named = schema.properties?.[name]
    if (named) return ruleCauses(field, before[name], named, path === '' ? name : `${path}.${name}`)
    const values = isObject(schema.additionalProperties)
      ? (schema.additionalProperties as Structural)
      : undefined
    return values ? ruleCauses(field, before[name], values, `${path}[${name}]`) : []
  })
  return [...own, ...inner]
}

/** Whether a schema, or one within it, has rules. */
export function hasRules(schema: unknown): boolean {
  if (!isObject(schema)) return Array.isArray(schema) && schema.some(hasRules)
  return 'x-kubernetes-validations' in schema || Object.values(schema).some(hasRules)
}

/** Only entries with keys can be told to be the same one as before. */
function itemCauses(list: unknown[], old: unknown, schema: Structural, path: string): Cause[] {
  const { items } = schema
  if (!items) return []
  const keys = schema['x-kubernetes-list-type'] === 'map' ? (schema['x-kubernetes-list-map-keys'] ?? []) : []
  const keyOf = (item: unknown) => (isObject(item) ? keys.map((key) => item[key]) : undefined)
  const before = keys.length > 0 && Array.isArray(old) ? old : []
  return list.flatMap((item, index) => {
    const same = before.find((other) => isDeepStrictEqual(keyOf(other), keyOf(item)))
    return ruleCauses(item, same, items, `${path}[${index}]`)
  })
}

interface Subject {
  value: unknown
  old: unknown
  schema: Structural
  path: string
}

function brokenRule(rule: Rule, { value, old, schema, path }: Subject): Cause | undefined {
  const isAboutOld = /\boldSelf\b/.test(rule.rule)
  if (isAboutOld && old === undefined) return undefined
  const context = { self: typed(value, schema), ...(isAboutOld && { oldSelf: typed(old, schema) }) }
  if (evaluated(rule.rule, context) === true) return undefined
  const told = rule.messageExpression === undefined ? undefined : evaluated(rule.messageExpression, context)
  const detail = (typeof told === 'string' && told) || rule.message || `failed rule: ${rule.rule}`
  const field = `${path}${rule.fieldPath ?? ''}`.replace(/^\./, '')
  return refusal(rule, field, value, detail)
}

function refusal({ reason, fieldPath }: Rule, field: string, value: unknown, detail: string): Cause {
  switch (reason) {
    case 'FieldValueForbidden':
      return cause.forbidden(field, detail)
    case 'FieldValueRequired':
      return cause.required(field, detail)
    case 'FieldValueDuplicate':
      return { ...cause.duplicate(field, value), message: 'Duplicate value' }
    default: {
      // Only a scalar is shown.
      const isShown = typeof value !== 'object' && fieldPath === undefined
      if (isShown) return cause.invalid(field, value, detail)
      return { reason: 'FieldValueInvalid', message: `Invalid value: ${detail}`, field }
    }
  }
}

function evaluated(expression: string, context: Record<string, unknown>): unknown {
  try {
    return programOf(expression)(context)
  } catch {
    return undefined
  }
}

/** The value as CEL has it: integers are ints, other numbers doubles. */
function typed(value: unknown, schema: Structural | undefined): unknown {
  if (typeof value === 'number') {
    const isInt = schema?.type === 'integer' || (schema?.type === undefined && Number.isInteger(value))
    return isInt && Number.isInteger(value) ? BigInt(value) : value
  }
  if (Array.isArray(value)) return value.map((item) => typed(item, schema?.items))
  if (!isObject(value)) return value
  const values = isObject(schema?.additionalProperties)
    ? (schema.additionalProperties as Structural)
    : undefined
  return Object.fromEntries(
    Object.entries(value).map(([name, field]) => [name, typed(field, schema?.properties?.[name] ?? values)]),
  )
}
