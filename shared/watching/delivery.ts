import type { Clock } from '../clock.ts'
import type { CloudEvent } from '../cloudevents/event.ts'
import { type Sink, SinkError } from '../cloudevents/sink.ts'
import type { Outcome } from '../kube/workqueue.ts'
import type { Logger } from '../log.ts'

export interface DeliveryOptions {
  sink: Sink
  clock: Clock
  log: Logger
  /** Told of each answer: its status, 0 when none came. */
  onAnswer: (status: number) => void
}

/** A 4xx is mostly somebody's mistake and stays, but brokers have answered 400 for a cold cache, in ms. */
export const refusedWaitMs = 10_000
const askedWaitMaxMs = 60_000
/** Trouble that comes and goes is told at most so often, in ms. */
const logApartMs = 10_000

/**
 * Sends events and judges the answers: only a 2xx is done. A 4xx is tried again slowly; what the sink asks to wait is
 * waited. Trouble is logged when it begins, changes and ends, not for each event.
 */
export function delivery({ sink, clock, log, onAnswer }: DeliveryOptions) {
  let state = 'well'
  let loggedAtMs = Number.NEGATIVE_INFINITY

  function note(now: string, type: string): void {
    if (now === state || (now !== 'well' && clock.monotonicMs() - loggedAtMs < logApartMs)) return
    if (now === 'well') log.info({ was: state }, 'sink takes events again')
    else log.warn({ answer: now, type, hint: hintFor(now) }, 'sink does not take events')
    state = now
    loggedAtMs = clock.monotonicMs()
  }

  return {
    async send(event: CloudEvent, signal: AbortSignal): Promise<Outcome> {
      try {
        const { status, retryAfterSeconds } = await sink.send(event, { signal })
        onAnswer(status)
        const outcome = outcomeOf(status, retryAfterSeconds)
        note(outcome.done ? 'well' : String(status), event.type)
        return outcome
      } catch (error) {
        if (signal.aborted) return { done: false }
        onAnswer(0)
        note(error instanceof SinkError ? error.reason : 'failed', event.type)
        return { done: false }
      }
    },
    isWell: () => state === 'well',
  }
}

const hints: Record<string, string> = {
  refused: 'nobody listens there: does the broker run, and does K_SINK name it?',
  timeout: 'no answer in time: is the broker overloaded, or does a NetworkPolicy hold the connection up?',
  failed: 'no connection: is the name in K_SINK right, and does it resolve from here?',
  '401': 'the sink wants a token of its audience: see the overlay oidc',
  '403': 'the sink does not let this account send: see its EventPolicies',
  '404': 'there is no such broker: does K_SINK name one that there is?',
  '422': 'a broker takes every event, a single function only its own: does K_SINK name a broker?',
}

/** What to look at when events are not taken. */
function hintFor(answer: string): string {
  return hints[answer] ?? 'it is tried again until it is taken'
}

/** What an answer means for the queue. */
export function outcomeOf(status: number, retryAfterSeconds = 0): Outcome {
  if (status >= 200 && status < 300) return { done: true }
  const askedMs = Math.min(Math.max(0, retryAfterSeconds) * 1_000, askedWaitMaxMs)
  const isRefusal = status < 500 && ![408, 425, 429].includes(status)
  return { done: false, notBeforeMs: isRefusal ? Math.max(refusedWaitMs, askedMs) : askedMs }
}
