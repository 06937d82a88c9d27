import { textOf } from './byte-string.ts'
import { MalformedEvent } from './malformed-event.ts'
import { structuredEvent } from './structured-event.ts'
import { isAbsolute, uriReference } from './uri-reference.ts'
import { utcTime } from './utc-time.ts'
import { batchType, mediaTypeOf, structuredType, type WireEvent } from './wire-event.ts'

const versions = new Set(['0.3', '1.0'])
const attributeName = /^[a-z0-9]+$/

/** Whether the headers announce events: binary, structured or a batch, as Knative recognises them. */
export function announcesEvent(headers: Headers): boolean {
  const type = mediaTypeOf(headers.get('content-type') ?? '')
  return type === structuredType || type === batchType || versions.has(headers.get('ce-specversion') ?? '')
}

/**
 * Reads an event in binary or structured mode, as strictly as Knative's broker ingress: throws {@link MalformedEvent}
 * for what {@link parseEvent} refuses, a missing or empty source or type, a missing id, a content type that is none
 * and a `dataschema` that is not absolute. `source`, `dataschema` and `time` come out as Knative writes them.
 */
export function readEvent(headers: Headers, body: Uint8Array<ArrayBuffer>): WireEvent {
  const event = parseEvent(headers, body)
  const { datacontenttype, dataschema } = event.attributes
  for (const name of ['id', 'source', 'type'])
    if (!event.attributes[name]?.trim()) throw new MalformedEvent(`Attribute "${name}" is missing or empty`)
  if (datacontenttype !== undefined && !isMediaType(datacontenttype))
    throw new MalformedEvent('Attribute "datacontenttype" is no media type')
  if (dataschema !== undefined && !isAbsolute(dataschema))
    throw new MalformedEvent('Attribute "dataschema" is not absolute')
  for (const [name, value] of Object.entries(event.attributes))
    if (hasControlCharacter(value))
      throw new MalformedEvent(
        `Attribute "${name}" holds a control character, which no header can carry`,
        500,
      )
  return event
}

/**
 * Reads an event as Knative's broker filter reads a reply, which does not look whether it is complete (the ingress
 * will). Throws {@link MalformedEvent} for no event, a batch, an unknown version, an attribute that is malformed, an
 * empty id, and a body that is not what it says.
 */
export function parseEvent(headers: Headers, body: Uint8Array<ArrayBuffer>): WireEvent {
  if (!announcesEvent(headers)) throw new MalformedEvent('Not a CloudEvent (no ce-specversion 1.0 or 0.3)')
  const type = mediaTypeOf(headers.get('content-type') ?? '')
  if (type === batchType) throw new MalformedEvent('A batch of events is not taken')
  const event = type === structuredType ? structuredEvent(textOf(body)) : binaryEvent(headers, body)
  if (!versions.has(event.attributes.specversion ?? ''))
    throw new MalformedEvent('Attribute "specversion" is neither 1.0 nor 0.3')
  return { attributes: canonical(event.attributes), data: event.data }
}

function binaryEvent(headers: Headers, body: Uint8Array<ArrayBuffer>): WireEvent {
  const attributes: Record<string, string> = {}
  for (const [header, value] of headers) {
    if (header === 'ce-datacontenttype')
      throw new MalformedEvent('"datacontenttype" goes as the header content-type')
    if (header === 'content-type') attributes.datacontenttype = textOf(value)
    else if (header.startsWith('ce-')) attributes[header.slice(3)] = textOf(value)
  }
  if (attributes.id?.trim() === '') throw new MalformedEvent('Attribute "id" is empty')
  return { attributes, data: body }
}

/** Checks the form of the attributes, and writes those that Knative writes anew. */
function canonical(attributes: Record<string, string>): Record<string, string> {
  const found: Record<string, string> = {}
  for (const [name, value] of Object.entries(attributes)) {
    if (!attributeName.test(name)) throw new MalformedEvent(`"${name}" is no attribute name`)
    const written = writtenAnew(name, value)
    if (written === undefined) throw new MalformedEvent(`Attribute "${name}" is malformed`)
    if (written !== '' || !emptyIsAbsent.has(name)) found[name] = written
  }
  return found
}

const emptyIsAbsent = new Set(['subject', 'time', 'dataschema', 'datacontenttype'])

function writtenAnew(name: string, value: string): string | undefined {
  if (name === 'source' || name === 'dataschema') return uriReference(value)
  if (name === 'time') return utcTime(value)
  return emptyIsAbsent.has(name) ? value.trim() : value
}

const token = "[\\w!#$%&'*+.^`{|}~-]+"
const mediaType = new RegExp(
  `^${token}(?:/${token})?(?:\\s*;\\s*(?:${token}=(?:${token}|"(?:[^"\\\\]|\\\\.)*"))?)*\\s*$`,
)

/** As Go reads one: the second half may be missing, each parameter has a value and stands once. */
function isMediaType(text: string): boolean {
  const names = [...text.matchAll(new RegExp(`;\\s*(${token})=`, 'g'))].map((match) =>
    match[1]?.toLowerCase(),
  )
  return mediaType.test(text) && new Set(names).size === names.length
}

function hasControlCharacter(value: string): boolean {
  return [...value].some((character) => (character < ' ' && character !== '\t') || character === '\x7f')
}
