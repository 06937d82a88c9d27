import type { Clock } from '../clock.ts'
import type { Target, Verb } from './http/request.ts'
import { failure } from './status.ts'

/** Trouble on demand, for tests of whoever talks to the server. With a seed the same requests meet the same trouble. */

/** Which requests a fault is about; what is not named is any. */
export interface FaultTarget {
  verb?: Verb | readonly Verb[]
  /** The plural: `deployments`. */
  resource?: string
  namespace?: string
  name?: string
  subresource?: string
}

export type Trouble =
  /** Waits before the request is looked at. */
  | { latencyMs: number }
  /** Refuses with this status, without doing anything. */
  | { status: number; reason?: string; message?: string; retryAfterSeconds?: number }
  /** Breaks the connection, `before` anything is done, or `after` it was done and before the answer. */
  | { reset: 'before' | 'after' }
  /** Of a watch: breaks it after so many events. */
  | { cutAfterEvents: number }
  /** Of a watch: tells no more after so many events, and keeps the connection open. */
  | { stallAfterEvents: number }
  /** Of a watch: tells each event so much later, in order. */
  | { delayEventsMs: number }
  /** Of a watch: tells each bookmark so much later, and what follows it behind it. */
  | { delayBookmarksMs: number }

export interface Fault {
  on?: FaultTarget
  trouble: Trouble
  /** For how many requests it stands. Default: until it is taken away. */
  times?: number
  /** How likely it meets a request, from 0 to 1. Default 1. */
  probability?: number
}

export interface Faults {
  /** Adds a fault; gives what takes it away. */
  add(fault: Fault): () => void
  clear(): void
}

/** What the server asks of the faults. */
export interface FaultSource extends Faults {
  /** Those that meet a request; each counts as one of its `times`. */
  meeting(target: Target): Trouble[]
}

/** A connection that is to break instead of carrying an answer. */
export class ConnectionReset extends Error {
  override readonly name = 'ConnectionReset'
  readonly code = 'ECONNRESET'
}

export function createFaults(random: () => number): FaultSource {
  const faults = new Map<Fault, number>()
  return {
    add(fault) {
      const own = { ...fault }
      faults.set(own, fault.times ?? Number.POSITIVE_INFINITY)
      return () => faults.delete(own)
    },
    clear: () => faults.clear(),
    meeting(target) {
      const met: Trouble[] = []
      for (const [fault, left] of faults) {
        if (left <= 0 || !isMeant(fault.on ?? {}, target)) continue
        if (random() >= (fault.probability ?? 1)) continue
        faults.set(fault, left - 1)
        met.push(fault.trouble)
      }
      return met
    },
  }
}

function isMeant(on: FaultTarget, target: Target): boolean {
  const verbs = on.verb === undefined ? [target.verb] : [on.verb].flat()
  return (
    verbs.includes(target.verb) &&
    (on.resource ?? target.resource.plural) === target.resource.plural &&
    (on.namespace === undefined || on.namespace === target.namespace) &&
    (on.name === undefined || on.name === target.name) &&
    (on.subresource === undefined || on.subresource === target.subresource)
  )
}

/** Answers a request through the trouble that meets it. Throws what the trouble throws. */
export async function withTrouble(
  clock: Clock,
  troubles: readonly Trouble[],
  signal: AbortSignal,
  answer: () => Promise<Response>,
): Promise<Response> {
  for (const trouble of troubles) {
    if ('latencyMs' in trouble) await clock.sleep(trouble.latencyMs, signal)
    if ('status' in trouble) throw refusalOf(trouble)
    if ('reset' in trouble && trouble.reset === 'before')
      throw new ConnectionReset('reset before the request')
  }
  const response = await answer()
  if (troubles.some((trouble) => 'reset' in trouble)) throw new ConnectionReset('reset after the request')
  return response.body ? streamTrouble(clock, troubles, response) : response
}

function refusalOf(trouble: Extract<Trouble, { status: number }>) {
  const { status, reason = '', message = 'trouble on demand', retryAfterSeconds } = trouble
  return failure(status, reason, message, retryAfterSeconds === undefined ? {} : { retryAfterSeconds })
}

function streamTrouble(clock: Clock, troubles: readonly Trouble[], response: Response): Response {
  const gates = troubles.flatMap((trouble) => gateFor(clock, trouble) ?? [])
  if (gates.length === 0) return response
  const events = gates.reduce<Events>((through, gate) => gate(through), response.body as Events)
  return new Response(ReadableStream.from(events) as ReadableStream<Uint8Array>, response)
}

/** A watch's events, each of which is one chunk. */
type Events = AsyncIterable<Uint8Array>
type Gate = (events: Events) => Events

function gateFor(clock: Clock, trouble: Trouble): Gate | undefined {
  if ('cutAfterEvents' in trouble) return (events) => cut(events, trouble.cutAfterEvents)
  if ('stallAfterEvents' in trouble) return (events) => stalled(events, trouble.stallAfterEvents)
  if ('delayEventsMs' in trouble) return (events) => delayed(events, clock, trouble.delayEventsMs, () => true)
  if ('delayBookmarksMs' in trouble)
    return (events) => delayed(events, clock, trouble.delayBookmarksMs, isBookmark)
  return undefined
}

async function* cut(events: Events, afterEvents: number): Events {
  let left = afterEvents
  if (left > 0)
    for await (const event of events) {
      yield event
      left -= 1
      if (left === 0) break
    }
  if (left === 0) throw new ConnectionReset('the watch was cut')
}

async function* stalled(events: Events, afterEvents: number): Events {
  let count = 0
  for await (const event of events) {
    if (count < afterEvents) yield event
    count += 1
  }
  // The other side is not told of the end either.
  await new Promise(() => {})
}

async function* delayed(
  events: Events,
  clock: Clock,
  ms: number,
  isLate: (event: Uint8Array) => boolean,
): Events {
  for await (const event of events) {
    if (isLate(event)) await clock.sleep(ms)
    yield event
  }
}

const bookmarkHead = '{"type":"BOOKMARK"'

function isBookmark(chunk: Uint8Array): boolean {
  return new TextDecoder().decode(chunk.subarray(0, bookmarkHead.length)) === bookmarkHead
}
