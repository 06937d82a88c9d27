import { HTTP, CloudEvent as SdkEvent } from 'cloudevents'
import { type CloudEvent, isJsonType } from './event.ts'

/**
 * Writes CloudEvents into HTTP messages by the SDK, which also validates them: nothing leaves that is no event. It is
 * loaded where something is sent, and not at the cold start of a function that only receives.
 */

/** An event in binary mode. Without data there is no body and no content type. Throws what the SDK finds invalid. */
export function binaryOf(event: CloudEvent): {
  headers: Record<string, string>
  body: Uint8Array | string | null
} {
  const { headers } = HTTP.binary(validated(event))
  const encoded: Record<string, string> = {}
  for (const [name, value] of Object.entries(headers))
    if (name.startsWith('ce-')) encoded[name] = encodeHeader(String(value))
  // The SDK stamps an event that has no time, and a resend would then be another event.
  if (event.time === undefined) delete encoded['ce-time']
  else encoded['ce-time'] = event.time
  return { ...bodyOf(event, encoded) }
}

/** An event in structured mode, as one line of JSON; its content type is `application/cloudevents+json`. */
export function structuredOf(event: CloudEvent): string {
  validated(event)
  const { extensions, data, ...attributes } = event
  const body = data instanceof Uint8Array ? { data_base64: Buffer.from(data).toString('base64') } : { data }
  return JSON.stringify({ ...attributes, ...extensions, ...body })
}

/** The SDK's event of ours; its constructor is strict. */
function validated({ extensions, ...event }: CloudEvent): SdkEvent<unknown> {
  return new SdkEvent<unknown>({ ...extensions, ...event }, true)
}

/** The body is ours: the SDK leaves a text unquoted though the content type says JSON. */
function bodyOf({ data, datacontenttype }: CloudEvent, headers: Record<string, string>) {
  if (data === undefined) return { headers, body: null }
  if (data instanceof Uint8Array)
    return {
      headers: { ...headers, 'content-type': datacontenttype ?? 'application/octet-stream' },
      body: data,
    }
  const isText = typeof data === 'string' && datacontenttype !== undefined && !isJsonType(datacontenttype)
  return {
    headers: { ...headers, 'content-type': datacontenttype ?? 'application/json' },
    body: isText ? data : JSON.stringify(data),
  }
}

/** Percent-encodes what a header may not hold: space, quote, percent, and all but printable ASCII. */
function encodeHeader(value: string): string {
  return value
    .toWellFormed()
    .replace(/[^\x21\x23\x24\x26-\x7e]+/g, (part) =>
      [...Buffer.from(part)].map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`).join(''),
    )
}
