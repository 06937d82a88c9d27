import type { Clock } from '../clock.ts'
import type { CloudEvent } from './event.ts'

/** How a tape is bent before it is played. What is not given is not done. */
export interface Disorder {
  /** Whether the order is thrown away. */
  shuffle?: boolean
  /** How probable it is that an event comes once more, 0 to 1. */
  repeat?: number
  /** How probable it is that an event does not come at all, 0 to 1. */
  drop?: number
  /** The same seed bends the same tape in the same way. Default 1. */
  seed?: number
}

export interface ReplayOptions extends Disorder {
  /** Delivers one event; gives the status it was answered with, throws when no answer came. */
  send(event: CloudEvent, call: { signal?: AbortSignal }): Promise<{ status: number }>
  clock: Clock
  /** Times as fast as it was recorded, by the events' own times. Default: as fast as the answers come. */
  speed?: number
  signal?: AbortSignal
}

export interface ReplayReport {
  sent: number
  dropped: number
  repeated: number
  /** What was not answered with 2xx, in order; `status` is 0 where no answer came. */
  refused: { id: string; status: number; message?: string }[]
}

/**
 * Plays a tape: each event is sent once the one before it has been answered, or failed. Which events are lost, repeated
 * and in which order is decided by the seed alone. Throws `signal.reason` when that is aborted, and a RangeError for a
 * probability or a speed that is none.
 */
export async function replay(events: readonly CloudEvent[], options: ReplayOptions): Promise<ReplayReport> {
  const { clock, signal, speed } = options
  if (speed !== undefined && !(speed > 0)) throw new RangeError('speed must be above 0')
  const { played, dropped, repeated } = disordered(events, options)
  const report: ReplayReport = { sent: 0, dropped, repeated, refused: [] }
  let before: CloudEvent | undefined
  for (const event of played) {
    signal?.throwIfAborted()
    if (speed !== undefined) await clock.sleep(gapMs(before, event) / speed, signal)
    before = event
    report.sent++
    try {
      const { status } = await options.send(event, signal ? { signal } : {})
      if (status < 200 || status > 299) report.refused.push({ id: event.id, status })
    } catch (error) {
      signal?.throwIfAborted()
      report.refused.push({ id: event.id, status: 0, message: error instanceof Error ? error.message : '' })
    }
  }
  return report
}

/** The time from one event to the next as recorded, in ms; none backwards, as in a shuffled tape, or unknown. */
function gapMs(before: CloudEvent | undefined, event: CloudEvent): number {
  if (before?.time === undefined || event.time === undefined) return 0
  return Math.max(0, Date.parse(event.time) - Date.parse(before.time))
}

/** What is played of a tape, and how many events of it were lost and repeated. Pure: the seed decides. */
export function disordered(
  events: readonly CloudEvent[],
  { shuffle = false, repeat = 0, drop = 0, seed = 1 }: Disorder,
): { played: CloudEvent[]; dropped: number; repeated: number } {
  for (const [name, value] of Object.entries({ repeat, drop }))
    if (!(value >= 0 && value <= 1)) throw new RangeError(`${name} must be from 0 to 1`)
  const random = seededRandom(seed)
  const kept = events.filter(() => random() >= drop)
  const played = kept.flatMap((event) => (random() < repeat ? [event, event] : [event]))
  if (shuffle) shuffleInPlace(played, random)
  return { played, dropped: events.length - kept.length, repeated: played.length - kept.length }
}

function shuffleInPlace(events: CloudEvent[], random: () => number): void {
  for (let end = events.length - 1; end > 0; end--) {
    const at = Math.floor(random() * (end + 1))
    const [one, other] = [events[at], events[end]]
    if (!one || !other) continue
    events[at] = other
    events[end] = one
  }
}

/** From 0 (included) to 1 (excluded): a Weyl sequence through a 32-bit mixer, the same on every machine. */
function seededRandom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x9e3779b9) >>> 0
    let mixed = Math.imul(state ^ (state >>> 16), 0x21f0aaad)
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97)
    return ((mixed ^ (mixed >>> 15)) >>> 0) / 2 ** 32
  }
}
