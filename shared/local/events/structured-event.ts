import { isObject } from '../../kinds/object.ts'
import { MalformedEvent } from './malformed-event.ts'
import { isJsonType, mediaTypeOf, type WireEvent } from './wire-event.ts'

/** Attributes of the specification: text in JSON, and no extension may be called like one in another case. */
const ofTheSpecification = new Set([
  'specversion',
  'id',
  'source',
  'type',
  'subject',
  'time',
  'datacontenttype',
  'dataschema',
])
const strictBase64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/

/**
 * Reads an event from its JSON document. JSON data stays as it is written, byte for byte; an extension that is a
 * number becomes a whole one, as the specification has it. Throws {@link MalformedEvent} for what is no event.
 */
export function structuredEvent(text: string): WireEvent {
  const document = parsed(text)
  if (!isObject(document)) throw new MalformedEvent('The body is not a JSON object')
  const { data, data_base64: base64, ...rest } = document
  const old = rest.specversion === '0.3'
  if (old && rest.datacontentencoding !== undefined) {
    if (rest.datacontentencoding !== 'base64')
      throw new MalformedEvent('Attribute "datacontentencoding" may only be base64')
    delete rest.datacontentencoding
    return { attributes: attributesOf(rest), data: bytesOf(data) }
  }
  const attributes = attributesOf(rest)
  if (base64 !== undefined) return { attributes, data: bytesOf(base64) }
  if (data === undefined) return { attributes, data: new Uint8Array(0) }
  if (isJsonType(mediaTypeOf(attributes.datacontenttype ?? '')))
    return { attributes, data: encode(memberOf(text, 'data')) }
  if (typeof data !== 'string' && data !== null)
    throw new MalformedEvent(`Data of the type "${attributes.datacontenttype}" must be text or base64`)
  return { attributes, data: encode(data ?? '') }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function attributesOf(members: Record<string, unknown>): Record<string, string> {
  const attributes: Record<string, string> = {}
  for (const [written, value] of Object.entries(members)) {
    const name = written.toLowerCase()
    if (name !== written && ofTheSpecification.has(name))
      throw new MalformedEvent(`"${written}" is no attribute`)
    const text = ofTheSpecification.has(name) ? textual(value) : extension(value)
    if (text === undefined) throw new MalformedEvent(`Attribute "${written}" has a value of the wrong type`)
    if (name === 'datacontenttype' && value === '') throw new MalformedEvent(`Attribute "${name}" is empty`)
    if (value !== null) attributes[name] = text
  }
  return attributes
}

function textual(value: unknown): string | undefined {
  if (value === null) return ''
  return typeof value === 'string' ? value : undefined
}

function extension(value: unknown): string | undefined {
  if (typeof value !== 'number') return typeof value === 'boolean' ? String(value) : textual(value)
  return value >= -(2 ** 31) && value < 2 ** 31 ? String(Math.trunc(value)) : undefined
}

function bytesOf(value: unknown): Uint8Array<ArrayBuffer> {
  if (typeof value !== 'string' || !strictBase64.test(value))
    throw new MalformedEvent('The data is not base64')
  return new Uint8Array(Buffer.from(value, 'base64'))
}

function encode(text: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(text)
}

/** The last member of that name of a JSON object, as it is written. `text` is known to be an object. */
function memberOf(text: string, name: string): string {
  const piece = /\s*("(?:[^"\\]|\\.)*"|[{}[\]:,]|[^\s"{}[\]:,]+)/gy
  let depth = 0
  let key: string | undefined
  let start = 0
  let found = ''
  for (let match = piece.exec(text); match; match = piece.exec(text)) {
    const part = match[1] ?? ''
    if (depth === 1 && (part === ',' || part === '}') && key === name)
      found = text.slice(start, match.index + match[0].length - 1).trim()
    if (part === '{' || part === '[') depth++
    else if (part === '}' || part === ']') depth--
    if (depth !== 1) continue
    if (part === ',' || part === '{') key = undefined
    else if (part === ':') start = piece.lastIndex
    else if (key === undefined && part.startsWith('"')) key = JSON.parse(part)
  }
  return found
}
