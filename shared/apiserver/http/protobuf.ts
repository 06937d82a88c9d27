import { BinaryReader, WireType } from '@bufbuild/protobuf/wire'
import { isObject } from '../../kinds/object.ts'
import type { FieldNumbers, SchemaNode } from '../schema.ts'

/**
 * Bodies in Kubernetes' protobuf form, as kubectl's typed commands send them (`kubectl create namespace`): four bytes
 * `k8s\0`, then a `runtime.Unknown` whose field 1 says of which kind the message in field 2 is
 * (apimachinery, runtime/serializer/protobuf).
 */

/** The body is no such message: in its `envelope`, or in the object within. */
export class UnreadableProtobuf extends Error {
  override readonly name = 'UnreadableProtobuf'
  readonly where: 'envelope' | 'object'

  constructor(where: UnreadableProtobuf['where'], message: string) {
    super(message)
    this.where = where
  }
}

const magic = [0x6b, 0x38, 0x73, 0x00]

/**
 * Reads an object as it would stand in JSON, with the zeros that Go writes. `root` is its type. Throws
 * {@link UnreadableProtobuf}.
 */
export function fromProtobuf(body: Uint8Array, root: SchemaNode): Record<string, unknown> {
  const { head, raw } = read('envelope', () => fieldsIn(contentOf(body), envelope))
  const { apiVersion, kind } = isObject(head) ? head : {}
  const message = raw instanceof Uint8Array ? raw : noBytes
  return { apiVersion, kind, ...read('object', () => messageIn(message, root, root.numbers)) }
}

/** Without the four bytes that stand before each. */
function contentOf(body: Uint8Array): Uint8Array {
  if (body.length === 0) throw new TypeError('empty data')
  if (magic.some((byte, index) => body[index] !== byte))
    throw new TypeError(
      `provided data does not appear to be a protobuf message, expected prefix [${magic.join(' ')}]`,
    )
  if (body.length === magic.length) throw new TypeError('empty body')
  return body.subarray(magic.length)
}

function read<T>(where: UnreadableProtobuf['where'], work: () => T): T {
  try {
    return work()
  } catch (error) {
    const { message } = error as Error
    throw new UnreadableProtobuf(where, message === 'premature EOF' ? 'unexpected EOF' : message)
  }
}

const noBytes = new Uint8Array()

type Read = (reader: BinaryReader, wire: WireType) => unknown

/** A message of a few known fields. */
function fieldsIn(body: Uint8Array, reads: Record<number, [name: string, read: Read]>) {
  const found: Record<string, unknown> = {}
  const reader = new BinaryReader(body)
  while (reader.pos < reader.len) {
    const [number, wire] = reader.tag()
    const known = reads[number]
    if (known) found[known[0]] = known[1](reader, wire)
    else reader.skip(wire, number)
  }
  return found
}

/** Throws for another wire type than the schema means: what follows would be read as something it is not. */
function expected(wire: WireType, wanted: WireType): void {
  if (wire !== wanted) throw new TypeError(`proto: wrong wireType = ${wire}`)
}

const text: Read = (reader, wire) => {
  expected(wire, WireType.LengthDelimited)
  return reader.string()
}
const bytes: Read = (reader, wire) => {
  expected(wire, WireType.LengthDelimited)
  return reader.bytes()
}
const integer: Read = (reader, wire) => {
  expected(wire, WireType.Varint)
  return Number(reader.int64())
}

const typeMeta: Record<number, [string, Read]> = { 1: ['apiVersion', text], 2: ['kind', text] }
const envelope: Record<number, [string, Read]> = {
  1: ['head', (reader, wire) => fieldsIn(bytes(reader, wire) as Uint8Array, typeMeta)],
  2: ['raw', bytes],
}

function messageIn(body: Uint8Array, node: SchemaNode, numbers: FieldNumbers = {}): Record<string, unknown> {
  const object: Record<string, unknown> = {}
  const reader = new BinaryReader(body)
  while (reader.pos < reader.len) {
    const [number, wire] = reader.tag()
    const known = numbers[number]
    if (typeof known === 'object') {
      expected(wire, WireType.LengthDelimited)
      Object.assign(object, messageIn(reader.bytes(), node, known))
      continue
    }
    const field = known === undefined ? undefined : node.fields?.get(known)
    if (known !== undefined && field) object[known] = valueIn(reader, wire, field.node, object[known])
    else reader.skip(wire, number)
  }
  return object
}

/** One value; of a list or a map it is one entry more, beside those `before` it. */
function valueIn(reader: BinaryReader, wire: WireType, node: SchemaNode, before: unknown): unknown {
  if (node.type === 'list' && node.items) {
    const list = Array.isArray(before) ? before : []
    return [...list, valueIn(reader, wire, node.items, undefined)]
  }
  if (node.type === 'object' && node.values) {
    const { values } = node
    const entry = fieldsIn(bytes(reader, wire) as Uint8Array, {
      1: ['key', text],
      2: ['value', (inner, innerWire) => valueIn(inner, innerWire, values, undefined)],
    })
    return { ...(isObject(before) && before), [String(entry.key ?? '')]: entry.value ?? '' }
  }
  if (node.type === 'integer' || node.type === 'int64') return integer(reader, wire)
  if (node.type === 'boolean') return integer(reader, wire) !== 0
  if (node.type === 'string') return text(reader, wire)
  return leafIn(bytes(reader, wire) as Uint8Array, node)
}

/** What protobuf has as bytes or as a message, and JSON as a text, a number or an object. */
function leafIn(body: Uint8Array, node: SchemaNode): unknown {
  switch (node.type) {
    case 'bytes':
      return Buffer.from(body).toString('base64')
    case 'quantity':
      return fieldsIn(body, { 1: ['text', text] }).text ?? '0'
    case 'intOrString': {
      const {
        isText,
        number = 0,
        word = '',
      } = fieldsIn(body, {
        1: ['isText', integer],
        2: ['number', integer],
        3: ['word', text],
      })
      return isText === 1 ? word : number
    }
    case 'time':
    case 'microTime':
      return timeIn(body, node.type === 'time' ? 0 : 6)
    case 'object':
      return messageIn(body, node, node.numbers)
    default: {
      // FieldsV1: JSON within.
      const { raw } = fieldsIn(body, { 1: ['raw', bytes] })
      return raw instanceof Uint8Array ? JSON.parse(new TextDecoder().decode(raw)) : {}
    }
  }
}

/** RFC 3339 with so many digits of a second; null for the zero time, which is an empty message. */
function timeIn(body: Uint8Array, digits: number): string | null {
  const { seconds, nanos = 0 } = fieldsIn(body, { 1: ['seconds', integer], 2: ['nanos', integer] })
  if (seconds === undefined) return null
  const whole = new Date(Number(seconds) * 1000).toISOString().slice(0, -'.000Z'.length)
  const fraction = digits === 0 ? '' : `.${String(nanos).padStart(9, '0').slice(0, digits)}`
  return `${whole}${fraction}Z`
}
