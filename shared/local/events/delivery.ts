import { isoDurationMs } from './duration.ts'
import { announcesEvent, parseEvent } from './read-event.ts'
import { type WireEvent, withAttributes } from './wire-event.ts'

/**
 * What Knative does with a subscriber's answer, as pure functions. Source: knative/eventing, pkg/kncloudevents
 * (retries, event dispatcher) and pkg/broker/filter.
 */

/** A Trigger's or Broker's `spec.delivery`, read. */
export interface Delivery {
  /** How often it is tried again after the first try. */
  retries: number
  /** Undefined: the next try follows at once. */
  backoff: { policy: 'linear' | 'exponential'; delayMs: number } | undefined
  /** For one try. */
  timeoutMs: number | undefined
  /** How the subscriber gets the event; undefined is binary. */
  format?: 'binary' | 'json'
}

/** How a request goes: subscribers are reached through Knative's broker filter, which judges what they answer. */
export type Route = 'filter' | 'direct'

/** An event in an answer, and the answer's headers, some of which go on with it. */
export interface Reply {
  event: WireEvent
  headers: Headers
}

/** What a Broker without `spec.delivery` gives its Triggers (the ConfigMap `config-br-defaults` as shipped). */
export const defaultDelivery: Delivery = {
  retries: 10,
  backoff: { policy: 'exponential', delayMs: 200 },
  timeoutMs: undefined,
}

/** The answer of a subscriber, its body read; or why there was none. */
export type Answer =
  | { kind: 'answer'; status: number; headers: Headers; body: Uint8Array<ArrayBuffer> }
  /** The body ended before it was whole. */
  | { kind: 'cut off'; status: number }
  | { kind: 'timeout' }
  | { kind: 'none'; message: string }

/** What follows from an answer. `reply` goes back to the broker. */
export type Verdict =
  | { kind: 'delivered'; status: number; reply?: Reply }
  | { kind: 'failed'; again: boolean; failure: Failure }

/** A try that failed. `code` and `body` are what a dead letter tells of it; without them it tells nothing. */
export interface Failure {
  reason: string
  told?: { code: number; body: Uint8Array }
}

const errorDataLengthMax = 1024
const deliveryFields = new Set([
  'retry',
  'backoffPolicy',
  'backoffDelay',
  'timeout',
  'deadLetterSink',
  'retryAfterMax',
  'format',
])

/** Reads a `spec.delivery`. Throws, naming `what`, for what Knative's webhook refuses. */
export function deliveryOf(what: string, spec: Record<string, unknown>): Delivery {
  const { retry, backoffPolicy, backoffDelay, timeout, format } = spec
  const unknown = Object.keys(spec).find((key) => !deliveryFields.has(key))
  if (unknown) throw new Error(`${what}.${unknown}: no field of a delivery`)
  if (retry !== undefined && !(Number.isInteger(retry) && Number(retry) >= 0))
    throw new Error(`${what}.retry: ${retry} is no number of retries`)
  if (backoffPolicy !== undefined && backoffPolicy !== 'linear' && backoffPolicy !== 'exponential')
    throw new Error(`${what}.backoffPolicy: "${backoffPolicy}" is neither linear nor exponential`)
  if (spec.retryAfterMax !== undefined)
    throw new Error(`${what}.retryAfterMax: refused unless Knative's feature delivery-retryafter is on`)
  if (format !== undefined && format !== 'json' && format !== 'binary')
    throw new Error(`${what}.format: "${format}" is neither json nor binary`)
  const delayMs = backoffDelay === undefined ? undefined : isoDurationMs(`${what}.backoffDelay`, backoffDelay)
  return {
    retries: Number(retry ?? 0),
    backoff:
      backoffPolicy !== undefined && delayMs !== undefined ? { policy: backoffPolicy, delayMs } : undefined,
    timeoutMs: timeout === undefined ? undefined : timeoutOf(`${what}.timeout`, timeout),
    ...(format !== undefined && { format }),
  }
}

/** A negative timeout is none, as in Go. */
function timeoutOf(what: string, text: unknown): number | undefined {
  const timeoutMs = isoDurationMs(what, text)
  if (timeoutMs === 0) throw new Error(`${what}: "${text}" leaves no time at all`)
  return timeoutMs > 0 ? timeoutMs : undefined
}

/**
 * How long to wait after try number `attempt` (from 0) has failed, in ms; undefined when it was the last. Linear is
 * delay × attempt, so the first retry comes at once; exponential is delay × 2^attempt, without a cap. A `Retry-After`
 * of the subscriber counts for nothing.
 */
export function backoffMs(delivery: Delivery, attempt: number): number | undefined {
  if (attempt >= delivery.retries) return undefined
  if (!delivery.backoff) return 0
  const { policy, delayMs } = delivery.backoff
  return Math.max(0, policy === 'linear' ? delayMs * attempt : delayMs * 2 ** attempt)
}

/** The whole time that trying again can take, the timeouts of the tries left out, in ms. */
export function retryTimeMs(delivery: Delivery): number {
  let sumMs = 0
  for (let attempt = 0; ; attempt++) {
    const waitMs = backoffMs(delivery, attempt)
    if (waitMs === undefined) return sumMs
    sumMs += waitMs
  }
}

/**
 * Judges an answer. A subscriber's 2xx with an empty body is delivered, and with a CloudEvent is a reply; with anything
 * else in the body it becomes 502. From a dead letter sink and the broker itself any 2xx will do. No answer, 5xx, 404,
 * 408, 409 and 429 are tried again; every other status is given up at once.
 */
export function verdictOf(answer: Answer, route: Route): Verdict {
  if (answer.kind === 'timeout') return timedOut(route)
  if (answer.kind === 'none')
    return failed(500, `no answer (${answer.message})`, `dispatch error: ${answer.message}`)
  const { status } = answer
  const isSuccess = status >= 200 && status <= 299
  if (isSuccess && route === 'direct') return { kind: 'delivered', status }
  if (answer.kind === 'cut off') {
    if (isSuccess) return untold(`answer ${status} whose body was cut off`)
    return failed(status, `answer ${status}`, `dispatch error: the body of the answer ${status} was cut off`)
  }
  if (isSuccess) return received(answer)
  // A 304 has no body, so the filter cannot pass on what happened.
  if (status === 304 && route === 'filter') return { ...untold('answer 304'), again: false }
  return failed(status, `answer ${status}`, answer.body)
}

function received({ status, headers, body }: Answer & { kind: 'answer' }): Verdict {
  if (!announcesEvent(headers)) {
    if (body.length === 0) return { kind: 'delivered', status }
    return untold(`answer ${status} with a body that is no CloudEvent, which counts as 502`)
  }
  try {
    const event = parseEvent(headers, body)
    return { kind: 'delivered', status, reply: { event: withContentType(event), headers } }
  } catch {
    return untold(`answer ${status} with a malformed CloudEvent, which counts as 502`)
  }
}

/** The filter writes a reply out anew, and Go's HTTP server guesses a content type where there is none. */
function withContentType(event: WireEvent): WireEvent {
  if (event.attributes.datacontenttype !== undefined || event.data.length === 0) return event
  const isText = event.data.every((byte) => byte >= 0x20 || [0x09, 0x0a, 0x0c, 0x0d, 0x1b].includes(byte))
  return withAttributes(event, {
    datacontenttype: isText ? 'text/plain; charset=utf-8' : 'application/octet-stream',
  })
}

function failed(code: number, reason: string, told: string | Uint8Array): Verdict & { kind: 'failed' } {
  const body = typeof told === 'string' ? new TextEncoder().encode(told) : told
  const again = code >= 500 || [404, 408, 409, 429].includes(code)
  return { kind: 'failed', again, failure: { reason, told: { code, body } } }
}

/** It is the channel's own clock that runs out: of the way through the filter it then learns nothing. */
function timedOut(route: Route): Verdict {
  const reason = 'no answer in time'
  return route === 'filter' ? untold(reason) : failed(500, reason, `dispatch error: ${reason}`)
}

/** The filter answers with an empty body then, from which the channel can tell the dead letter nothing. */
function untold(reason: string): Verdict & { kind: 'failed' } {
  return { kind: 'failed', again: true, failure: { reason } }
}

/**
 * The dead letter of an event: the event and the extensions `knativeerrordest` (where it went), `knativeerrorcode` and
 * `knativeerrordata` (the body in base64, cut at 1,024 characters wherever that falls). An extension the event has
 * already is kept. After a timeout and after an answer that became 502 Knative adds none of them. (Knative 1.12 to 1.22
 * ends its whole channel process on a body over 768 bytes, instead of cutting it.)
 */
export function deadLetter(event: WireEvent, destination: string, failure: Failure): WireEvent {
  if (!failure.told) return event
  const { code, body } = failure.told
  const extensions = {
    knativeerrordest: destination,
    knativeerrorcode: String(code),
    knativeerrordata: Buffer.from(body).toString('base64').slice(0, errorDataLengthMax),
  }
  const missing = Object.entries(extensions).filter(([name]) => !event.attributes[name])
  return withAttributes(event, Object.fromEntries(missing))
}
