import type { Clock } from '../clock.ts'
import { alarm } from './alarm.ts'

/** `start`: found by a list at start or after a gap; it must neither starve nor be starved by what changes now. */
export type Lane = 'fresh' | 'start'

/** What became of a piece of work: done, or to be tried again, not sooner than asked. */
export type Outcome = { done: true } | { done: false; notBeforeMs?: number }

export interface WorkqueueOptions<T> {
  clock: Clock
  /** Works on one key; never for one key twice at once, but for the slow lane. A throw counts as not done. */
  work(key: string, item: T, signal: AbortSignal): Promise<Outcome>
  /** Stops everything: nothing starts any more, and what is in flight is aborted. */
  signal: AbortSignal
  /** How many are worked on at once; asked before each start. */
  concurrency?: () => number
  /** What follows the first addition within this time is one more piece of work, in ms; asked at each start. */
  foldWithinMs?: () => number
  /** Asked before each start, so that one who has lost the leadership starts nothing, however late the signal comes. */
  mayStart?: () => boolean
  /** What to keep of two items for one key; default: the later. */
  fold?: (earlier: T, later: T) => T
  /** How many keys may wait; past it the oldest is dropped. */
  lengthMax?: number
  /** Told of what was dropped. */
  onDrop?: (key: string, item: T) => void
}

export interface WorkqueueState {
  waiting: number
  /** What holds one of the slots. */
  inFlight: number
  /** What takes so long that it gave its slot back. */
  slow: number
  /** How long the item that has waited longest has done so, in ms; 0 when none waits. */
  oldestAgeMs: number
  /** Since the start: additions that cost no work of their own, because the key waited already. */
  folded: number
  dropped: number
  retried: number
}

export interface Workqueue<T> {
  add(key: string, item: T, options?: { lane?: Lane; pinned?: boolean }): void
  /** Starts what may start now: for when an answer of `mayStart` or `concurrency` has changed. */
  wake(): void
  state(): WorkqueueState
}

export const foldWithinMsDefault = 50
export const concurrencyDefault = 32
const lengthMaxDefault = 10_000
/** Work that lasts longer gives its slot back, in ms. */
export const slowAfterMs = 5_000
/** So many may be slow; what comes then keeps its slot. */
export const slowMax = 1_000
export const backoffFirstMs = 200
export const backoffMaxMs = 60_000
/** Where both lanes wait, one of so many slots goes to `start`. */
const startShare = 4

interface Entry<T> {
  key: string
  lane: Lane
  /** Never dropped. */
  pinned: boolean
  /** What waits. */
  item: { value: T; sinceMs: number } | undefined
  /** Where the entry stands: in a lane, in the alarm, at work, or nowhere. */
  place: 'lane' | 'alarm' | 'work' | 'none'
  /** The latest work on the key, so that an earlier, slow one knows that it has been overtaken. */
  latest: object | undefined
  foldUntilMs: number
  failures: number
}

/**
 * A queue with one entry per key, level-triggered: the first addition is worked on at once, what follows within 50 ms or
 * while the key is at work folds into one more piece of work. Failures back off per key (200 ms to 60 s, with jitter) and
 * hold up no other key. Work that lasts over 5 s moves to a slow lane and gives its slot back; its key may then be worked
 * on again, and only the later outcome counts. Nothing is remembered across processes.
 */
export function workqueue<T>(options: WorkqueueOptions<T>): Workqueue<T> {
  const { clock, signal, mayStart = () => true, fold = (_, later) => later } = options
  const { concurrency = () => concurrencyDefault, foldWithinMs = () => foldWithinMsDefault } = options
  const lengthMax = options.lengthMax ?? lengthMaxDefault
  const entries = new Map<string, Entry<T>>()
  const lanes: Record<Lane, Lined<T>> = { fresh: line(), start: line() }
  const delayed = alarm<Entry<T>>(clock, signal, (entry) => {
    entry.place = 'none'
    settle(entry)
    pump()
  })
  const count = { waiting: 0, inFlight: 0, slow: 0, folded: 0, dropped: 0, retried: 0 }
  let starts = 0

  function add(
    key: string,
    value: T,
    { lane = 'fresh', pinned = false }: { lane?: Lane; pinned?: boolean } = {},
  ) {
    if (signal.aborted) return
    const entry = entries.get(key) ?? newEntry<T>(key)
    entries.set(key, entry)
    entry.pinned ||= pinned
    if (entry.item) {
      entry.item.value = fold(entry.item.value, value)
      count.folded++
    } else {
      entry.lane = lane
      wait(entry, value, clock.monotonicMs())
    }
    if (entry.place === 'none') settle(entry)
    if (count.waiting > lengthMax) dropOldest()
    pump()
  }

  function wait(entry: Entry<T>, value: T, sinceMs: number): void {
    entry.item = { value, sinceMs }
    count.waiting++
  }

  function take(entry: Entry<T>): T | undefined {
    const value = entry.item?.value
    if (entry.item) count.waiting--
    entry.item = undefined
    return value
  }

  /** Puts an entry that stands nowhere where it belongs now; one with nothing to do is forgotten once nothing can fold. */
  function settle(entry: Entry<T>, notBeforeMs = 0): void {
    const dueMs = Math.max(entry.foldUntilMs, notBeforeMs)
    if (dueMs > clock.monotonicMs()) {
      entry.place = 'alarm'
      delayed.set(dueMs, entry)
    } else if (entry.item) {
      entry.place = 'lane'
      lanes[entry.lane].push(entry)
    } else {
      entries.delete(entry.key)
    }
  }

  function pump(): void {
    while (count.inFlight < concurrency() && !signal.aborted && mayStart()) {
      const entry = next()
      if (!entry) return
      const value = take(entry)
      if (value !== undefined) start(entry, value)
      else {
        entry.place = 'none'
        settle(entry)
      }
    }
  }

  function next(): Entry<T> | undefined {
    const [first, second] =
      starts % startShare === 0 ? [lanes.start, lanes.fresh] : [lanes.fresh, lanes.start]
    return first.shift() ?? second.shift()
  }

  function start(entry: Entry<T>, value: T): void {
    const sinceMs = clock.monotonicMs()
    const mine = {}
    const quick = new AbortController()
    let isSlow = false
    starts++
    count.inFlight++
    Object.assign(entry, { place: 'work', latest: mine, foldUntilMs: sinceMs + foldWithinMs() })
    const giveBack = () => {
      if (count.slow >= slowMax || signal.aborted) return
      isSlow = true
      count.slow++
      count.inFlight--
      entry.place = 'none'
      settle(entry)
      pump()
    }
    clock.sleep(slowAfterMs, quick.signal).then(giveBack, () => {})
    const onEnd = (outcome: Outcome) => {
      quick.abort()
      if (isSlow) count.slow--
      else count.inFlight--
      if (signal.aborted) return
      if (!isSlow) end(entry, value, sinceMs, outcome)
      else if (!outcome.done && !isOvertaken(entry, mine)) again(entry, value, sinceMs, outcome)
      pump()
    }
    worked(entry.key, value).then(onEnd, () => onEnd({ done: false }))
  }

  /** Whether the key has been worked on, or added anew, since the slow work `mine` began. */
  function isOvertaken(entry: Entry<T>, mine: object): boolean {
    return entry.latest !== mine || (entries.get(entry.key) ?? entry) !== entry
  }

  /** Async, so that what throws at once counts as what rejects. */
  async function worked(key: string, value: T): Promise<Outcome> {
    return options.work(key, value, signal)
  }

  function end(entry: Entry<T>, value: T, sinceMs: number, outcome: Outcome): void {
    entry.place = 'none'
    if (outcome.done) {
      entry.failures = 0
      settle(entry)
    } else again(entry, value, sinceMs, outcome)
  }

  /** Tries again later, with what has come meanwhile, or with the same. */
  function again(
    entry: Entry<T>,
    value: T,
    sinceMs: number,
    { notBeforeMs = 0 }: { notBeforeMs?: number },
  ): void {
    count.retried++
    if (!entry.item) wait(entry, value, sinceMs)
    entries.set(entry.key, entry)
    const backoffMs =
      Math.min(backoffFirstMs * 2 ** entry.failures, backoffMaxMs) * (0.8 + 0.2 * clock.random())
    entry.failures = Math.min(entry.failures + 1, 30)
    if (entry.place === 'none') settle(entry, clock.monotonicMs() + Math.max(backoffMs, notBeforeMs))
  }

  function dropOldest(): void {
    for (const entry of entries.values()) {
      if (!entry.item || entry.pinned || entry.place === 'work') continue
      const value = take(entry)
      count.dropped++
      if (value !== undefined) options.onDrop?.(entry.key, value)
      return
    }
  }

  function state(): WorkqueueState {
    let oldestMs = clock.monotonicMs()
    for (const { item } of entries.values()) if (item && item.sinceMs < oldestMs) oldestMs = item.sinceMs
    return { ...count, oldestAgeMs: clock.monotonicMs() - oldestMs }
  }

  return { add, wake: pump, state }
}

function newEntry<T>(key: string): Entry<T> {
  return {
    key,
    lane: 'fresh',
    pinned: false,
    item: undefined,
    place: 'none',
    latest: undefined,
    foldUntilMs: 0,
    failures: 0,
  }
}

interface Lined<T> {
  push(entry: Entry<T>): void
  shift(): Entry<T> | undefined
}

/** First in, first out; an array's own shift would move all that is behind. */
function line<T>(): Lined<T> {
  let waiting: (Entry<T> | undefined)[] = []
  let head = 0
  return {
    push: (entry) => waiting.push(entry),
    shift() {
      const entry = waiting[head]
      waiting[head++] = undefined
      if (head >= waiting.length) {
        waiting = []
        head = 0
      }
      return entry
    },
  }
}
