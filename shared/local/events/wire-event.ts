import { byteStringOf } from './byte-string.ts'

/**
 * A CloudEvent as a broker sees it: attributes as strings, data as bytes it does not look into. `datacontenttype` is
 * the content type; empty data means none.
 */
export interface WireEvent {
  attributes: Readonly<Record<string, string>>
  data: Uint8Array<ArrayBuffer>
}

/** The headers of the event in binary mode. */
export function headersOf(event: WireEvent): Record<string, string> {
  const headers: Record<string, string> = {}
  for (const [name, value] of Object.entries(event.attributes))
    headers[name === 'datacontenttype' ? 'content-type' : `ce-${name}`] = byteStringOf(value)
  return headers
}

/** The event as one JSON document: what a Trigger with `delivery.format: json` sends. */
export function structuredOf(event: WireEvent): { contentType: string; body: string } {
  const { attributes, data } = event
  const text = () => new TextDecoder('utf-8', { ignoreBOM: true }).decode(data)
  const type = mediaTypeOf(attributes.datacontenttype ?? '')
  const members = Object.entries(attributes).map(
    ([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`,
  )
  if (data.length > 0) {
    if (isJsonType(type)) members.push(`"data":${text()}`)
    else if (type.startsWith('text/')) members.push(`"data":${JSON.stringify(text())}`)
    else members.push(`"data_base64":"${Buffer.from(data).toString('base64')}"`)
  }
  return { contentType: structuredType, body: `{${members.join(',')}}` }
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

export const structuredType = 'application/cloudevents+json'
export const batchType = 'application/cloudevents-batch+json'

/** The media type of a Content-Type, without parameters, in lower case. */
export function mediaTypeOf(contentType: string): string {
  return contentType.split(';', 1)[0]?.trim().toLowerCase() ?? ''
}

/** Whether data of this media type is JSON, as Knative takes it: no type is JSON, and `application/x+json` is not. */
export function isJsonType(mediaType: string): boolean {
  return ['', 'application/json', 'text/json', structuredType, batchType].includes(mediaType)
}
