import { isObject } from '../../kinds/object.ts'

/** A structural schema (openAPIV3Schema of a CRD), as far as the server acts on it. */
export interface Structural {
  type?: string
  format?: string
  nullable?: boolean
  properties?: Record<string, Structural>
  additionalProperties?: Structural | boolean
  items?: Structural
  required?: string[]
  enum?: unknown[]
  default?: unknown
  minimum?: number
  maximum?: number
  exclusiveMinimum?: boolean
  exclusiveMaximum?: boolean
  multipleOf?: number
  minLength?: number
  maxLength?: number
  pattern?: string
  minItems?: number
  maxItems?: number
  uniqueItems?: boolean
  minProperties?: number
  maxProperties?: number
  allOf?: Structural[]
  anyOf?: Structural[]
  oneOf?: Structural[]
  not?: Structural
  'x-kubernetes-preserve-unknown-fields'?: boolean
  'x-kubernetes-int-or-string'?: boolean
  'x-kubernetes-embedded-resource'?: boolean
  'x-kubernetes-list-type'?: string
  'x-kubernetes-list-map-keys'?: string[]
  'x-kubernetes-map-type'?: string
  'x-kubernetes-validations'?: { rule: string; message?: string; reason?: string; fieldPath?: string }[]
}

/** Fields that every object may have, whatever the schema says. */
const rootFields = new Set(['apiVersion', 'kind', 'metadata'])

/**
 * The value without what the schema does not name; where `x-kubernetes-preserve-unknown-fields` stands everything is kept.
 * `onDropped` is told the path of each thing dropped.
 */
export function prune(
  value: unknown,
  schema: Structural | undefined,
  onDropped: (path: string) => void,
  isRoot = true,
  path = '',
): unknown {
  if (Array.isArray(value))
    return value.map((item, index) => prune(item, schema?.items, onDropped, false, `${path}[${index}]`))
  if (!isObject(value)) return value
  const keepsAll = schema?.['x-kubernetes-preserve-unknown-fields'] === true
  const hasMeta = isRoot || schema?.['x-kubernetes-embedded-resource'] === true
  const values = schema?.additionalProperties
  const kept: Record<string, unknown> = {}
  for (const [name, field] of Object.entries(value)) {
    const place = path === '' ? name : `${path}.${name}`
    const named =
      schema?.properties && Object.hasOwn(schema.properties, name) ? schema.properties[name] : undefined
    if (hasMeta && rootFields.has(name)) kept[name] = field
    else if (named) kept[name] = prune(field, named, onDropped, false, place)
    else if (isObject(values)) kept[name] = prune(field, values as Structural, onDropped, false, place)
    else if (values === true || keepsAll) kept[name] = field
    else onDropped(place)
  }
  return kept
}

/**
 * The value with the schema's defaults where a field is absent, or null where null is not allowed. A null that may not be
 * one and has no default is dropped from what was sent; in what an apply has put together it is kept, and invalid.
 */
export function withDefaults(
  value: unknown,
  schema: Structural | undefined,
  nulls: 'drop' | 'keep' = 'drop',
): unknown {
  if (!schema) return value
  if (Array.isArray(value)) return value.map((item) => withDefaults(item, schema.items, nulls))
  if (!isObject(value)) return value
  const filled: Record<string, unknown> = {}
  for (const [name, field] of Object.entries(value)) {
    const own = schema.properties?.[name]
    const node =
      own ?? (isObject(schema.additionalProperties) ? (schema.additionalProperties as Structural) : undefined)
    const isDroppedNull = field === null && node && node.nullable !== true
    if (isDroppedNull && (node.default !== undefined || (own && nulls === 'drop'))) continue
    filled[name] = withDefaults(field, node, nulls)
  }
  for (const [name, node] of Object.entries(schema.properties ?? {}))
    if (!Object.hasOwn(filled, name) && node.default !== undefined)
      filled[name] = withDefaults(structuredClone(node.default), node, nulls)
  return filled
}
