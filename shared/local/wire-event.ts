import { isObject } from '../kinds/object.ts'

/**
 * A CloudEvent as a broker sees it: attributes as strings, data as bytes it does not look into. `datacontenttype` is
 * the content type; empty data means none.
 */
export interface WireEvent {
  attributes: Readonly<Record<string, string>>
  data: Uint8Array<ArrayBuffer>
}

/** What was wrong with a request that should have carried an event. */
export class MalformedEvent extends Error {
  override readonly name = 'MalformedEvent'
}

const structuredType = 'application/cloudevents+json'
const versions = new Set(['0.3', '1.0'])
const attributeName = /^[a-z0-9]+$/
const rfc3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/i
const mediaType = /^[\w!#$&^.+-]+\/[\w!#$&^.+-]+\s*(;.*)?$/
/** An escape that is none, which a URI reference cannot hold. */
const brokenEscape = /%(?![0-9A-Fa-f]{2})/

const noData = new Uint8Array(0)

/** Whether the headers announce an event, binary or structured, as Knative recognises one. */
export function announcesEvent(headers: Headers): boolean {
  return mediaTypeOf(headers) === structuredType || versions.has(headers.get('ce-specversion') ?? '')
}

/**
 * Reads an event in binary or structured mode, as strictly as Knative's broker ingress: throws {@link MalformedEvent}
 * for a batch, a version other than 0.3 and 1.0, a missing or empty id, source or type, and a malformed time, source,
 * content type or attribute name.
 */
export function readEvent(headers: Headers, body: Uint8Array<ArrayBuffer>): WireEvent {
  if (!announcesEvent(headers)) throw new MalformedEvent('Not a CloudEvent (no ce-specversion 1.0 or 0.3)')
  const event = mediaTypeOf(headers) === structuredType ? structured(body) : binary(headers, body)
  validate(event.attributes)
  return event
}

/** The headers of the event in binary mode. */
export function headersOf(event: WireEvent): Record<string, string> {
  const headers: Record<string, string> = {}
  for (const [name, value] of Object.entries(event.attributes))
    headers[name === 'datacontenttype' ? 'content-type' : `ce-${name}`] = toByteString(value)
  return headers
}

/** The same event with some attributes set; undefined takes one away. */
export function withAttributes(event: WireEvent, changes: Record<string, string | undefined>): WireEvent {
  const attributes: Record<string, string> = { ...event.attributes }
  for (const [name, value] of Object.entries(changes)) {
    if (value === undefined) delete attributes[name]
    else attributes[name] = value
  }
  return { attributes, data: event.data }
}

function binary(headers: Headers, body: Uint8Array<ArrayBuffer>): WireEvent {
  const attributes: Record<string, string> = {}
  for (const [header, value] of headers) {
    if (header === 'content-type') attributes.datacontenttype = fromByteString(value)
    else if (header.startsWith('ce-')) attributes[header.slice(3)] = fromByteString(value)
  }
  return { attributes, data: body }
}

function structured(body: Uint8Array): WireEvent {
  let parsed: unknown
  try {
    parsed = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body))
  } catch {
    throw new MalformedEvent('The body is not JSON')
  }
  if (!isObject(parsed)) throw new MalformedEvent('The body is not a JSON object')
  const { data, data_base64: base64, ...rest } = parsed
  const attributes: Record<string, string> = {}
  for (const [name, value] of Object.entries(rest)) {
    if (value === null) continue
    if (!['string', 'number', 'boolean'].includes(typeof value))
      throw new MalformedEvent(`Attribute "${name}" is neither text, number nor boolean`)
    attributes[name] = String(value)
  }
  if (typeof base64 === 'string') return { attributes, data: new Uint8Array(Buffer.from(base64, 'base64')) }
  if (data === undefined) return { attributes, data: noData }
  attributes.datacontenttype ??= 'application/json'
  const isText = typeof data === 'string' && !/[/+]json\s*(;|$)/i.test(attributes.datacontenttype)
  return { attributes, data: new TextEncoder().encode(isText ? data : JSON.stringify(data)) }
}

function validate(attributes: Record<string, string>): void {
  if (!versions.has(attributes.specversion ?? ''))
    throw new MalformedEvent('Attribute "specversion" is neither 1.0 nor 0.3')
  for (const name of ['id', 'source', 'type'])
    if (!attributes[name]?.trim()) throw new MalformedEvent(`Attribute "${name}" is missing or empty`)
  for (const [name, value] of Object.entries(attributes)) {
    if (!attributeName.test(name)) throw new MalformedEvent(`"${name}" is no attribute name`)
    if (hasControlCharacter(value))
      throw new MalformedEvent(`Attribute "${name}" holds a control character, which no header can carry`)
  }
  const { source = '', time, datacontenttype, subject } = attributes
  if (brokenEscape.test(source)) throw new MalformedEvent('Attribute "source" is no URI reference')
  if (time !== undefined && !(rfc3339.test(time) && Number.isFinite(Date.parse(time))))
    throw new MalformedEvent('Attribute "time" is no RFC 3339 time')
  if (subject !== undefined && subject.trim() === '') throw new MalformedEvent('Attribute "subject" is empty')
  if (datacontenttype !== undefined && !mediaType.test(datacontenttype))
    throw new MalformedEvent('Attribute "datacontenttype" is no media type')
}

function hasControlCharacter(value: string): boolean {
  for (const character of value) {
    const code = character.codePointAt(0) ?? 0
    if (code < 0x20 || code === 0x7f) return true
  }
  return false
}

function mediaTypeOf(headers: Headers): string {
  return (headers.get('content-type') ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? ''
}

/** HTTP libraries show header bytes as Latin-1; events mean UTF-8 by them. */
function fromByteString(value: string): string {
  return Buffer.from(value, 'latin1').toString('utf8')
}

function toByteString(value: string): string {
  return Buffer.from(value, 'utf8').toString('latin1')
}
