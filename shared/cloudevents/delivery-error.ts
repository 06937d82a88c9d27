import type { CloudEvent } from './event.ts'

/** What a broker tells, with an event that it gave up, of its last try. */
export interface DeliveryError {
  /** Where it was sent to. */
  destination?: string
  /** The HTTP status that was answered; absent when there was no answer (Knative says -1, or nothing). */
  code?: number
  /** What stood in the answer, as far as it came through. */
  text?: string
}

const textLengthMax = 500

/**
 * Reads the extensions `knativeerrordest`, `knativeerrorcode` and `knativeerrordata`. The data is base64 or plain text,
 * cut at 1,024 bytes wherever that falls. Nothing that stands there makes it throw: a dead letter is the last stop.
 */
export function deliveryErrorOf(event: CloudEvent): DeliveryError {
  const { knativeerrordest: destination, knativeerrorcode: code, knativeerrordata: data } = event.extensions
  const status = /^[1-5]\d\d$/.test(code?.trim() ?? '') ? Number(code) : undefined
  const text = data === undefined ? '' : shown(decoded(data))
  return {
    ...(destination !== undefined && { destination: shown(destination) }),
    ...(status !== undefined && { code: status }),
    ...(text !== '' && { text }),
  }
}

/** The text in base64 if that is what it is, else the value as it came. */
function decoded(data: string): string {
  const isBase64 = data.length >= 4 && /^[A-Za-z0-9+/]+={0,2}$/.test(data)
  if (!isBase64) return data
  try {
    // As a stream: a character that was cut off at the end is left out.
    const text = new TextDecoder('utf-8', { fatal: true }).decode(Buffer.from(data, 'base64'), {
      stream: true,
    })
    return /[^\s\x20-\x7e\u00a0-\u{10ffff}]/u.test(text) ? data : text
  } catch {
    return data
  }
}

/** In one line, without what a terminal would act on. */
function shown(text: string): string {
  const line = text
    .toWellFormed()
    .replace(/[\p{Cc}\p{Cf}\s]+/gu, ' ')
    .trim()
  return line.length <= textLengthMax ? line : `${line.slice(0, textLengthMax)}…`
}
