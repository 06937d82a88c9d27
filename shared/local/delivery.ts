import { isoDurationMs } from './duration.ts'
import { announcesEvent, readEvent, type WireEvent, withAttributes } from './wire-event.ts'

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
  | { kind: 'timeout' }
  | { kind: 'none'; message: string }

/** What follows from an answer. `reply` goes back to the broker. */
export type Verdict =
  | { kind: 'delivered'; status: number; reply?: WireEvent }
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
  const { retry, backoffPolicy, backoffDelay, timeout } = spec
  const unknown = Object.keys(spec).find((key) => !deliveryFields.has(key))
  if (unknown) throw new Error(`${what}.${unknown}: no field of a delivery`)
  if (retry !== undefined && !(Number.isInteger(retry) && Number(retry) >= 0))
    throw new Error(`${what}.retry: ${retry} is no number of retries`)
  if (backoffPolicy !== undefined && backoffPolicy !== 'linear' && backoffPolicy !== 'exponential')
    throw new Error(`${what}.backoffPolicy: "${backoffPolicy}" is neither linear nor exponential`)
  if (spec.retryAfterMax !== undefined)
    throw new Error(`${what}.retryAfterMax: refused unless Knative's feature delivery-retryafter is on`)
  const delayMs = backoffDelay === undefined ? undefined : isoDurationMs(`${what}.backoffDelay`, backoffDelay)
  return {
    retries: Number(retry ?? 0),
    backoff:
      backoffPolicy !== undefined && delayMs !== undefined ? { policy: backoffPolicy, delayMs } : undefined,
    timeoutMs: timeout === undefined ? undefined : isoDurationMs(`${what}.timeout`, timeout),
  }
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
  return policy === 'linear' ? delayMs * attempt : delayMs * 2 ** attempt
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
 * Judges an answer. 2xx with an empty body is delivered, and with a CloudEvent is a reply; with anything else in the
 * body it becomes 502. No answer, 5xx, 404, 408, 409 and 429 are tried again; every other status is given up at once.
 */
export function verdictOf(answer: Answer): Verdict {
  if (answer.kind === 'timeout')
    return { kind: 'failed', again: true, failure: { reason: 'no answer in time' } }
  if (answer.kind === 'none') {
    const body = new TextEncoder().encode(`dispatch error: ${answer.message}`)
    const failure = { reason: `no answer (${answer.message})`, told: { code: 500, body } }
    return { kind: 'failed', again: true, failure }
  }
  const { status, headers, body } = answer
  if (status < 200 || status > 299) {
    const again = status >= 500 || [404, 408, 409, 429].includes(status)
    return { kind: 'failed', again, failure: { reason: `answer ${status}`, told: { code: status, body } } }
  }
  if (!announcesEvent(headers)) {
    if (body.length === 0) return { kind: 'delivered', status }
    return badGateway(`answer ${status} with a body that is no CloudEvent, which counts as 502`)
  }
  try {
    return { kind: 'delivered', status, reply: readEvent(headers, body) }
  } catch {
    return badGateway(`answer ${status} with a malformed CloudEvent, which counts as 502`)
  }
}

/** The filter answers 502 with an empty body then, from which the channel can tell the dead letter nothing. */
function badGateway(reason: string): Verdict {
  return { kind: 'failed', again: true, failure: { reason } }
}

/**
 * The dead letter of an event: the event and the extensions `knativeerrordest` (where it went), `knativeerrorcode` and
 * `knativeerrordata` (the body in base64, cut at 1,024 characters wherever that falls). An extension the event has
 * already is kept. After a timeout and after an answer that became 502 Knative adds none of them.
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
