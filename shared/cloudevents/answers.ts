import { isObject } from '../kinds/object.ts'
import { cutToBytes } from '../kinds/text.ts'
import type { CloudEvent } from './event.ts'

/**
 * The answers that a function gives to a broker. Knative delivers again after 5xx, 404, 408, 409, 429 and no answer;
 * any other 4xx goes to the dead letter sink at once; a 2xx whose body is no CloudEvent it turns into 502 and delivers
 * again. So there are few, each built here, and none can put anything but an event into a 2xx.
 */
export type Answer =
  | { status: 204; fields?: LogFields }
  | { status: 200; event: CloudEvent; fields?: LogFields }
  | { status: 400 | 401 | 413 | 415 | 422 | 500; message: string; fields?: LogFields }
  | { status: 503; message: string; retryAfterSeconds: number; fields?: LogFields }

/** What the log line of the event shall tell besides. */
export type LogFields = Record<string, unknown>

/** Done, or nothing to do; also when something is wrong with the object itself, which its status tells. */
export function settled(fields?: LogFields): Answer {
  return { status: 204, ...(fields && { fields }) }
}

/** Done, and the broker is told by an event. */
export function settledWith(event: CloudEvent, fields?: LogFields): Answer {
  return { status: 200, event, ...(fields && { fields }) }
}

/** Not an event that can be read: the same again would not be either. */
export function unreadable(message: string, status: 400 | 413 | 415 = 400): Answer {
  return { status, message }
}

/** Nobody whom we know (RFC 6750). */
export function unauthorized(message: string): Answer {
  return { status: 401, message }
}

/** An event for somebody else. */
export function notHandled(message: string): Answer {
  return { status: 422, message }
}

/** The API server, a conflict or the shutdown is in the way: the same again, later, may do. */
export function notNow(message: string, retryAfterSeconds: number, fields?: LogFields): Answer {
  return { status: 503, message, retryAfterSeconds, ...(fields && { fields }) }
}

/** A bug. What went wrong is for the log, not for strangers. */
export function bug(fields?: LogFields): Answer {
  return { status: 500, message: 'Internal error', ...(fields && { fields }) }
}

/**
 * Longest body of an answer that tells what went wrong, in bytes. What goes with a dead letter is this much in base64
 * (1,024 characters), and the in-memory channel of Knative 1.12 to 1.22 does not cut what is longer: its process ends,
 * and every event that it held is lost.
 */
const messageBytesMax = 768

const statusesWithMessage = new Set<unknown>([400, 401, 413, 415, 422, 500, 503])

/**
 * Whether a value is an answer. Work in plain JavaScript may return anything; what is none is taken for "settled",
 * and never reaches a body.
 */
export function isAnswer(value: unknown): value is Answer {
  if (!isObject(value)) return false
  if (value.status === 200) return isObject(value.event)
  return value.status === 204 || (statusesWithMessage.has(value.status) && typeof value.message === 'string')
}

/** The HTTP answer. Rejects with a TypeError for a 200 whose event lacks what makes it one. */
export async function responseOf(answer: Answer): Promise<Response> {
  if (answer.status === 204) return new Response(null, { status: 204 })
  if (answer.status === 200) {
    const { specversion, id, source, type } = answer.event
    if (specversion !== '1.0' || !id || !source || !type) throw new TypeError('The reply is not a CloudEvent')
    // With the first event only: a cold start shall not pay for it.
    const { binaryOf } = await import('./write.ts')
    const { headers, body } = binaryOf(answer.event)
    return new Response(body as string | Uint8Array<ArrayBuffer> | null, { status: 200, headers })
  }
  const headers: Record<string, string> = { 'content-type': 'text/plain; charset=utf-8' }
  if (answer.status === 401) headers['www-authenticate'] = 'Bearer'
  if (answer.status === 503) headers['retry-after'] = String(Math.max(1, Math.ceil(answer.retryAfterSeconds)))
  return new Response(`${cutToBytes(answer.message, messageBytesMax - 1)}\n`, {
    status: answer.status,
    headers,
  })
}
