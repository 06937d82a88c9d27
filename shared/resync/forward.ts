import { type Clock, untilAborted } from '../clock.ts'
import type { CloudEvent } from '../cloudevents/event.ts'
import type { Sink } from '../cloudevents/sink.ts'
import type { Logger } from '../log.ts'

/** Sends many events, some at a time. */
export interface Forwarder {
  /** Resolves when the event's send has begun; waits for a free slot until then. Throws {@link SinkTrouble}. */
  send(event: CloudEvent): Promise<void>
  /** Resolves when every send has ended or is slow. */
  quick(): Promise<void>
  /** Resolves when every send has ended. Never rejects. */
  all(): Promise<void>
  /** How many were begun, taken longer than `slowAfterMs`, and were given up. */
  counts(): { begun: number; slow: number; failed: number }
}

/** The sink refuses one event after the other; more would only be refused too. */
export class SinkTrouble extends Error {
  override readonly name = 'SinkTrouble'
}

export interface ForwarderOptions {
  sink: Sink
  clock: Clock
  log: Logger
  /** Ends the waiting for a slot, not what is being sent. */
  signal: AbortSignal
  /** Told what became of each event. */
  onResult?: (result: 'sent' | 'slow' | 'failed') => void
}

const concurrency = 16
/**
 * A broker may hold a POST until the function has answered, retries included. A send that takes longer than this gives
 * its slot back and ends by itself, in ms.
 */
const slowAfterMs = 3_000
/** So many slow ones at a time; then it waits for one to end. */
const slowMax = 1_000
const triesMax = 3
const firstBackoffMs = 100
/** After so many failures in a row, with none sent in between, nothing more is sent. */
const failuresInRowMax = 2 * concurrency
/** What Knative itself would try again. */
const retriedStatuses = new Set([404, 408, 409, 429])

/**
 * Makes a forwarder: at most 16 sends at a time, besides those that the sink holds. A send that fails is tried three
 * times in all; then the event is counted as failed (the next resync finds its object again).
 */
export function forwarder(options: ForwarderOptions): Forwarder {
  const { sink, clock, log, signal, onResult } = options
  const counts = { begun: 0, slow: 0, failed: 0 }
  const inSlots = new Set<Promise<void>>()
  const isSlow = new Set<Promise<void>>()
  let failuresInRow = 0

  async function deliver(event: CloudEvent): Promise<boolean> {
    for (let attempt = 1; ; attempt++) {
      const status = await sink.send(event).then(
        (answer) => answer.status,
        (error: Error) => error.message,
      )
      if (typeof status === 'number' && status >= 200 && status < 300) return true
      const isRetried = typeof status !== 'number' || status >= 500 || retriedStatuses.has(status)
      if (isRetried && attempt < triesMax) {
        await clock.sleep(firstBackoffMs * 2 ** attempt * (1 + clock.random()))
        continue
      }
      log.warn({ event: event.id, status, attempt }, 'event not sent')
      return false
    }
  }

  async function begin(event: CloudEvent): Promise<void> {
    const isSent = await deliver(event)
    failuresInRow = isSent ? 0 : failuresInRow + 1
    if (!isSent) counts.failed++
    onResult?.(isSent ? 'sent' : 'failed')
  }

  function occupy(event: CloudEvent): void {
    const ended = new AbortController()
    const sending = begin(event).finally(() => {
      ended.abort()
      isSlow.delete(sending)
    })
    const slot: Promise<void> = Promise.race([
      sending,
      clock.sleep(slowAfterMs, ended.signal).then(
        () => {
          if (ended.signal.aborted) return
          counts.slow++
          onResult?.('slow')
          isSlow.add(sending)
        },
        () => {},
      ),
    ]).finally(() => inSlots.delete(slot))
    inSlots.add(slot)
  }

  return {
    async send(event) {
      while (inSlots.size >= concurrency) await untilAborted(Promise.race(inSlots), signal)
      while (isSlow.size >= slowMax) await untilAborted(Promise.race(isSlow), signal)
      signal.throwIfAborted()
      if (failuresInRow >= failuresInRowMax) throw new SinkTrouble('The sink takes no events')
      counts.begun++
      occupy(event)
    },
    async quick() {
      await Promise.all(inSlots)
    },
    async all() {
      while (inSlots.size + isSlow.size > 0) await Promise.all([...inSlots, ...isSlow])
    },
    counts: () => ({ ...counts }),
  }
}
