import type { KubeObject, Resource } from '../kinds/object.ts'
import data from './data/schema.json' with { type: 'json' }

/** What is known of a value's type: enough for apply, patches, defaults and the spelling of stored objects. */
export interface SchemaNode {
  /** Of an object with a fixed shape: its name in the API's own types (`PodSpec`). */
  readonly name?: string
  /** `any` is one value as a whole; `deduced` goes by the value (objects by field, lists as a whole). */
  readonly type: 'object' | 'list' | ScalarType | 'any' | 'deduced'
  /** Of an object with a fixed shape. */
  readonly fields?: ReadonlyMap<string, SchemaField>
  /** Of an object with a fixed shape: its fields by their numbers in protobuf. */
  readonly numbers?: FieldNumbers
  /** Of a map's values, or of fields that `fields` does not name. Absent: other fields are unknown ones. */
  readonly values?: SchemaNode
  /** Objects: owned and replaced as a whole. */
  readonly atomic?: boolean
  /** Of a list. */
  readonly items?: SchemaNode
  /** Lists: replaced as a whole, a set of scalars, or entries told apart by `keys`. */
  readonly as?: 'atomic' | 'set' | 'map'
  readonly keys?: readonly string[]
}

/** The name of a field, or the fields of a message that stand in JSON beside the others. */
export interface FieldNumbers {
  readonly [number: string]: string | FieldNumbers
}

export type ScalarType =
  | 'string'
  | 'integer'
  | 'int64'
  | 'number'
  | 'boolean'
  | 'quantity'
  | 'intOrString'
  | 'time'
  | 'microTime'
  | 'bytes'

export interface SchemaField {
  readonly node: SchemaNode
  /** What the server makes of a zero: drops it, keeps it as given, writes it even when absent, or writes null. */
  readonly zero: 'omit' | 'keep' | 'emit' | 'null'
  readonly default?: unknown
  /** Strategic merge patch: which field tells list entries apart, and `merge`, `replace`, `retainKeys`. */
  readonly mergeKey?: string
  readonly strategy?: string
}

/** A kind as apply and managed fields need it. */
export interface KindSchema {
  readonly root: SchemaNode
  /** What counts as being there before the object is created (the server's own zero value). */
  readonly empty: KubeObject
  /** Paths that a request to the object itself, or to its status, never changes and so never owns. */
  readonly resetFields: { readonly main: readonly FieldPath[]; readonly status: readonly FieldPath[] }
}

export type FieldPath = readonly string[]

type TypeExpression =
  | string
  | { list: TypeExpression; as?: 'set' | 'map'; keys?: string[] }
  | { map: TypeExpression; atomic?: boolean }
type FieldExpression =
  | TypeExpression
  | {
      type: TypeExpression
      zero?: SchemaField['zero']
      default?: unknown
      mergeKey?: string
      strategy?: string
    }
interface TypeEntry {
  fields?: Record<string, FieldExpression>
  atomic?: boolean
  numbers?: FieldNumbers
  open?: string
}

const scalars = new Map<string, SchemaNode>(
  [
    'string',
    'integer',
    'int64',
    'number',
    'boolean',
    'quantity',
    'intOrString',
    'time',
    'microTime',
    'bytes',
  ].map((type) => [type, { type: type as ScalarType }]),
)
const types = data.types as Record<string, TypeEntry>
const nodes = new Map<string, SchemaNode>()

/** The schema of a built-in kind, or undefined for a kind that is not built in. */
export function schemaFor(resource: Pick<Resource, 'group' | 'kind'>): KindSchema | undefined {
  const known = builtIn.get(`${resource.kind}.${resource.group}`)
  const name = (data.kinds as Record<string, string>)[resource.kind]
  if (!known || name === undefined) return undefined
  const root = nodeOf(name)
  return { root, empty: zeroOf(root) as KubeObject, resetFields: known }
}

const none = { main: [], status: [] }
const status: FieldPath = ['f:status']
const spec: FieldPath = ['f:spec']
const builtIn = new Map<string, KindSchema['resetFields']>([
  ['Deployment.apps', { main: [status], status: [spec, ['f:metadata', 'f:labels']] }],
  ['Secret.', none],
  ['ConfigMap.', none],
  ['Namespace.', { main: [status], status: [spec] }],
  ['Lease.coordination.k8s.io', none],
  ['Event.events.k8s.io', none],
  // Core Events are read as those of events.k8s.io.
  ['Event.', none],
  ['CustomResourceDefinition.apiextensions.k8s.io', { main: [status], status: [['f:metadata'], spec] }],
])

/** The node of `metadata`, for custom resources. */
export const metadataNode = (): SchemaNode => nodeOf('meta.v1.ObjectMeta')

function nodeOf(expression: TypeExpression): SchemaNode {
  if (typeof expression !== 'string')
    return 'list' in expression
      ? {
          type: 'list',
          items: nodeOf(expression.list),
          as: expression.as ?? 'atomic',
          ...(expression.keys && { keys: expression.keys }),
        }
      : { type: 'object', values: nodeOf(expression.map), ...(expression.atomic && { atomic: true }) }
  return scalars.get(expression) ?? namedNode(expression)
}

/** Types refer to themselves (JSONSchemaProps), so a node is known before its fields are. */
function namedNode(name: string): SchemaNode {
  const known = nodes.get(name)
  if (known) return known
  const entry = types[name]
  if (!entry) throw new TypeError(`No type ${name} in the schema data`)
  if (!entry.fields) return { type: 'any' }
  const fields = new Map<string, SchemaField>()
  const node: SchemaNode = {
    type: 'object',
    name: name.slice(name.lastIndexOf('.') + 1),
    fields,
    ...(entry.atomic && { atomic: true }),
    ...(entry.numbers && { numbers: entry.numbers }),
  }
  nodes.set(name, node)
  for (const [field, expression] of Object.entries(entry.fields)) fields.set(field, fieldOf(expression))
  // An empty list of managers is a wish (to forget them), not an absence.
  const managers = name === 'meta.v1.ObjectMeta' && fields.get('managedFields')
  if (managers) fields.set('managedFields', { ...managers, zero: 'keep' })
  return node
}

function fieldOf(expression: FieldExpression): SchemaField {
  if (typeof expression === 'string' || !('type' in expression))
    return { node: nodeOf(expression), zero: 'omit' }
  const { type, zero = 'omit', ...rest } = expression
  return { node: nodeOf(type), zero, ...rest }
}

/** The zero value of a type as the server would write it. */
export function zeroOf(node: SchemaNode): unknown {
  if (node.type === 'object') {
    const zero: Record<string, unknown> = {}
    for (const [name, field] of node.fields ?? []) {
      if (field.zero === 'emit') zero[name] = zeroOf(field.node)
      if (field.zero === 'null') zero[name] = nullOf(field.node)
    }
    return zero
  }
  return node.type === 'integer' || node.type === 'int64' || node.type === 'number'
    ? 0
    : node.type === 'boolean'
      ? false
      : ''
}

/** What the server writes for a value that it cannot leave out: null, but 0 for a number or text. */
export const nullOf = (node: SchemaNode): unknown => (node.type === 'intOrString' ? 0 : null)

/** The node of an object's field: its own, or that of a map's values; undefined for an unknown field. */
export function fieldNode(node: SchemaNode, name: string): SchemaNode | undefined {
  return node.fields?.get(name)?.node ?? node.values
}

/** `deduced` made plain for a value: objects by field, lists and scalars as a whole. */
export function resolved(node: SchemaNode, value: unknown): SchemaNode {
  if (node.type !== 'deduced') return node
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? deducedObject : anything
}

export const anything: SchemaNode = { type: 'any' }
export const deduced: SchemaNode = { type: 'deduced' }
const deducedObject: SchemaNode = { type: 'object', values: deduced }
