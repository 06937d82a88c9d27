import { isObject } from '../kinds/object.ts'
import { attributeError, type CloudEvent, isAttributeName, isJsonType, UnreadableEvent } from './event.ts'

/**
 * Reads CloudEvents out of HTTP messages (spec 1.0.2, HTTP binding and JSON format), both modes, strictly. The SDK
 * writes (see write.ts) but does not read here: it makes up a missing id, time or version, takes a batch for its first
 * element, and looks headers up as spelled. The tests hold both against each other.
 */

/** An HTTP message as far as an event is concerned. */
export interface Message {
  headers: Iterable<[string, string]>
  body: Uint8Array
}

const structuredType = 'application/cloudevents'
const requiredAttributes = ['specversion', 'id', 'source', 'type'] as const
const standardAttributes = new Set([
  ...requiredAttributes,
  'subject',
  'time',
  'datacontenttype',
  'dataschema',
])

/**
 * Reads one event, in binary or in structured mode. Throws an {@link UnreadableEvent}: 415 for a batch, for an event
 * format other than JSON and for a body that is encoded; 400, naming the attribute, for all else.
 */
export function readEvent(message: Message): CloudEvent {
  const headers = new Map<string, string>()
  for (const [name, value] of message.headers) headers.set(name.toLowerCase(), value)
  const encoding = headers.get('content-encoding')?.trim().toLowerCase() || 'identity'
  if (encoding !== 'identity') throw notTaken(`An encoded body (${printable(encoding)}) is not taken`)
  const contentType = headers.get('content-type')?.trim() ?? ''
  if (contentType.toLowerCase().startsWith(structuredType)) return readStructured(contentType, message.body)
  return readBinary(headers, contentType, message.body)
}

/** Whether a message shows any sign of being meant as a CloudEvent. */
export function looksLikeEvent(headers: Iterable<[string, string]>): boolean {
  for (const [name, value] of headers) {
    const lower = name.toLowerCase()
    if (lower.startsWith('ce-')) return true
    if (lower === 'content-type' && value.trim().toLowerCase().startsWith(structuredType)) return true
  }
  return false
}

function readBinary(headers: Map<string, string>, contentType: string, body: Uint8Array): CloudEvent {
  const attributes: Record<string, string> = {}
  for (const [header, raw] of headers) {
    const name = header.slice('ce-'.length)
    if (header.startsWith('ce-') && isAttributeName(name) && name !== 'datacontenttype')
      attributes[name] = headerValue(name, raw)
  }
  if (contentType !== '') attributes.datacontenttype = contentType
  const event = eventOf(attributes)
  if (body.byteLength === 0) return event
  const isJson = contentType === '' || isJsonType(contentType)
  return { ...event, data: isJson ? parseJson(utf8(body, 'data'), 'data') : body }
}

function readStructured(contentType: string, body: Uint8Array): CloudEvent {
  const [mediaType = '', ...parameters] = contentType.toLowerCase().split(/\s*;\s*/)
  if (mediaType !== `${structuredType}+json`) throw notTaken(`${printable(mediaType)} is not taken`)
  const charset = parameters.find((parameter) => parameter.startsWith('charset='))?.replace(/"/g, '')
  if (charset !== undefined && charset !== 'charset=utf-8' && charset !== 'charset=us-ascii')
    throw notTaken('Only UTF-8 is taken')
  const value = parseJson(utf8(body, 'body'), 'body')
  if (Array.isArray(value)) throw notTaken('A batch is not taken')
  if (!isObject(value)) throw new UnreadableEvent('The body is not a CloudEvent')
  const { data, data_base64: base64, ...rest } = value
  const attributes: Record<string, string> = {}
  for (const [name, attribute] of Object.entries(rest)) {
    if (attribute === null || !isAttributeName(name)) continue
    if (standardAttributes.has(name) ? typeof attribute !== 'string' : typeof attribute === 'object')
      throw attributeError(name, 'is not a string')
    attributes[name] = String(attribute)
  }
  const event = eventOf(attributes)
  if (base64 !== undefined && base64 !== null) {
    if (data !== undefined) throw attributeError('data_base64', 'stands beside data')
    return { ...event, data: bytesOf(base64) }
  }
  return data === undefined ? event : { ...event, data }
}

/** Checks the attributes and puts the extensions apart. */
function eventOf(attributes: Record<string, string>): CloudEvent {
  for (const name of requiredAttributes) {
    if (attributes[name] === undefined) throw attributeError(name, 'is missing')
    if (attributes[name] === '') throw attributeError(name, 'is empty')
  }
  const { specversion, id = '', source = '', type = '', ...optional } = attributes
  if (specversion !== '1.0') throw attributeError('specversion', 'is not 1.0')
  if (/\s/.test(source) || !URL.canParse(source, 'http://localhost'))
    throw attributeError('source', 'is not a URI reference')
  const { subject, time, datacontenttype, dataschema, ...extensions } = optional
  if (subject === '') throw attributeError('subject', 'is empty')
  if (time !== undefined && !isTimestamp(time)) throw attributeError('time', 'is not an RFC 3339 timestamp')
  return {
    specversion,
    id,
    source,
    type,
    ...(subject !== undefined && { subject }),
    ...(time !== undefined && { time }),
    ...(datacontenttype !== undefined && { datacontenttype }),
    ...(dataschema !== undefined && { dataschema }),
    extensions,
  }
}

const timestamp = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/i

function isTimestamp(value: string): boolean {
  return timestamp.test(value) && !Number.isNaN(Date.parse(value))
}

/**
 * An attribute's value out of its header: unquoted, and percent-decoded once (HTTP binding 3.1.3.2). Half of the
 * SDKs do not encode, so a value that cannot be decoded is kept as it came; but not a subject, which must be exact.
 */
function headerValue(name: string, raw: string): string {
  const value =
    raw.length > 1 && raw.startsWith('"') && raw.endsWith('"')
      ? raw.slice(1, -1).replace(/\\(.)/g, '$1')
      : raw
  const isStandard = standardAttributes.has(name)
  if (isStandard && !/^[\x20-\x7e]*$/.test(value))
    throw attributeError(name, 'has a character that must be encoded')
  try {
    return value.includes('%') ? decodeURIComponent(value) : value
  } catch (cause) {
    if (name === 'subject') throw attributeError(name, 'is not valid UTF-8 in percent-encoding', cause)
    return value
  }
}

function utf8(bytes: Uint8Array, what: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (cause) {
    throw new UnreadableEvent(`The ${what} is not UTF-8`, { attribute: what, cause })
  }
}

function parseJson(text: string, what: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new UnreadableEvent(`The ${what} is not JSON`, { attribute: what, cause })
  }
}

function bytesOf(base64: unknown): Uint8Array {
  if (typeof base64 !== 'string' || !/^[A-Za-z0-9+/]*={0,2}$/.test(base64) || base64.length % 4 !== 0)
    throw attributeError('data_base64', 'is not base64')
  return new Uint8Array(Buffer.from(base64, 'base64'))
}

function notTaken(message: string): UnreadableEvent {
  return new UnreadableEvent(message, { status: 415 })
}

/** A stranger's word, fit for an answer of ours. */
function printable(text: string): string {
  return text.replace(/[^\x20-\x7e]/g, '?').slice(0, 100)
}
