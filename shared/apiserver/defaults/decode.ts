import { isObject } from '../../kinds/object.ts'
import { nullOf, type SchemaField, type SchemaNode, zeroOf } from '../schema.ts'
import { canonicalTime } from './go-time.ts'
import { plainQuantity, quantityError, resourceQuantity } from './quantity.ts'

/**
 * Objects as the server's own types read and write them: unknown fields and dropped zeros go, what is always written is
 * filled in, null becomes the zero value, quantities and times get their canonical spelling.
 */

/** A value that does not fit its type. The message is what the server's decoder says. */
export class DecodeError extends Error {
  override readonly name = 'DecodeError'
}

/**
 * Which of the server's two decoders: that of request bodies (`json`), or that of objects which apply or a patch has
 * put together (`unstructured`). They word their errors differently.
 */
export type Decoder = 'json' | 'unstructured'

interface Place {
  decoder: Decoder
  /** The innermost type with a name. */
  struct: string
  path: string[]
  /** In a map of quantities: a list of resources. */
  inList?: boolean
}

/** The canonical form of a whole object. Throws {@link DecodeError}. */
export function decoded(object: unknown, schema: SchemaNode, decoder: Decoder): Record<string, unknown> {
  return valueFrom(object, schema, { decoder, struct: '', path: [] }) as Record<string, unknown>
}

function valueFrom(value: unknown, node: SchemaNode, place: Place): unknown {
  if (value === null || value === undefined) return zeroValue(node)
  switch (node.type) {
    case 'object':
      return isObject(value) ? objectFrom(value, node, place) : refuse(value, node, place)
    case 'list':
      if (!Array.isArray(value)) return refuse(value, node, place)
      return value.map((item) => valueFrom(item, node.items ?? { type: 'any' }, place))
    case 'any':
    case 'deduced':
      return value
    default:
      return scalarFrom(value, node, place)
  }
}

function zeroValue(node: SchemaNode): unknown {
  if (node.type === 'list' || (node.type === 'object' && !node.fields)) return null
  if (node.type === 'quantity') return '0'
  if (node.type === 'intOrString') return 0
  return node.type === 'time' || node.type === 'microTime' ? null : zeroOf(node)
}

function objectFrom(value: Record<string, unknown>, node: SchemaNode, place: Place): unknown {
  if (!node.fields) {
    const items = node.values ?? { type: 'any' }
    return Object.fromEntries(
      Object.entries(value).map(([key, child]) => [key, valueFrom(child, items, { ...place, inList: true })]),
    )
  }
  const out: Record<string, unknown> = {}
  const struct = node.name ?? place.struct
  for (const [name, field] of node.fields) {
    const child = fieldFrom(value[name], field, { ...place, struct, path: [...place.path, name] })
    if (child !== undefined) out[name] = child
  }
  return out
}

function fieldFrom(value: unknown, { node, zero }: SchemaField, place: Place): unknown {
  if (value === undefined || value === null) {
    if (zero === 'emit') return node.type === 'object' ? objectFrom({}, node, place) : zeroOf(node)
    return zero === 'null' ? nullOf(node) : undefined
  }
  const read = valueFrom(value, node, place)
  return zero === 'omit' && isZero(read) ? undefined : read
}

function isZero(value: unknown): boolean {
  if (Array.isArray(value)) return value.length === 0
  if (isObject(value)) return Object.keys(value).length === 0
  return value === null || value === '' || value === 0 || value === false
}

function scalarFrom(value: unknown, node: SchemaNode, place: Place): unknown {
  switch (node.type) {
    case 'integer':
    case 'int64':
      return integerFrom(value, node, place)
    case 'number':
      return typeof value === 'number' ? value : refuse(value, node, place)
    case 'boolean':
      return typeof value === 'boolean' ? value : refuse(value, node, place)
    case 'quantity':
      return quantityFrom(value, place)
    case 'intOrString':
      return typeof value === 'string' ? value : integerFrom(value, node, place)
    case 'time':
    case 'microTime':
      return typeof value === 'string' ? timeFrom(value, node.type) : refuse(value, node, place)
    case 'bytes':
      return typeof value === 'string' ? bytesFrom(value, place) : refuse(value, node, place)
    default:
      return typeof value === 'string' ? value : refuse(value, node, place)
  }
}

function integerFrom(value: unknown, node: SchemaNode, place: Place): number {
  if (typeof value !== 'number') return refuse(value, node, place)
  const fits = node.type === 'int64' || value === (value | 0)
  if (Number.isInteger(value) && fits) return value
  if (place.decoder === 'unstructured' && node.type !== 'intOrString') {
    // The server's converter wraps large whole numbers around.
    if (Number.isInteger(value)) return Number(BigInt.asIntN(32, BigInt(value)))
    throw new DecodeError(`cannot convert float64 to ${goTypeOf(node)}`)
  }
  return refuse(value, node, place, ` ${value}`)
}

function quantityFrom(value: unknown, { inList }: Place): string {
  const text = typeof value === 'string' || typeof value === 'number' ? String(value).trim() : ''
  const stored = inList ? resourceQuantity(text) : plainQuantity(text)
  if (stored === undefined) throw new DecodeError(quantityError(text) ?? text)
  return stored
}

function timeFrom(value: string, type: 'time' | 'microTime'): string {
  const read = canonicalTime(value, type)
  if ('error' in read) throw new DecodeError(read.error)
  return read.time
}

function bytesFrom(value: string, { decoder }: Place): string {
  const text = value.replaceAll(/[\r\n]/g, '')
  const good = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?/.exec(text)?.[0] ?? ''
  if (good.length === text.length) return Buffer.from(text, 'base64').toString('base64')
  const offset = text.search(/[^A-Za-z0-9+/]/)
  const prefix = decoder === 'unstructured' ? 'error decoding from json: ' : ''
  throw new DecodeError(`${prefix}illegal base64 data at input byte ${offset === -1 ? good.length : offset}`)
}

function refuse(value: unknown, node: SchemaNode, place: Place, detail = ''): never {
  const what = Array.isArray(value)
    ? 'array'
    : isObject(value)
      ? 'object'
      : typeof value === 'boolean'
        ? 'bool'
        : typeof value
  const into =
    place.decoder === 'json' && place.path.length > 0
      ? `struct field ${place.struct}.${place.path.join('.')} of type ${goTypeOf(node)}`
      : `value of type ${goTypeOf(node)}`
  throw new DecodeError(`json: cannot unmarshal ${what}${detail} into Go ${into}`)
}

function goTypeOf(node: SchemaNode): string {
  switch (node.type) {
    case 'object':
      if (node.name) return `v1.${node.name}`
      return node.values?.type === 'quantity'
        ? 'v1.ResourceList'
        : `map[string]${goTypeOf(node.values ?? node)}`
    case 'list':
      return `[]${goTypeOf(node.items ?? { type: 'string' })}`
    case 'integer':
    case 'intOrString':
      return 'int32'
    case 'number':
      return 'float64'
    case 'boolean':
      return 'bool'
    case 'bytes':
      return '[]uint8'
    case 'int64':
      return 'int64'
    default:
      return 'string'
  }
}
