import type { Clock } from '../clock.ts'
import type { Logger } from '../log.ts'
import type { Leadership, LeadershipChange } from './leadership.ts'
import { type ElectionState, initialElection, isLeading } from './lease.ts'

/** Holds what an elector knows, and tells each change of its belief, the end at the deadline included. */
export interface Belief extends Leadership {
  state(): ElectionState
  set(next: ElectionState): void
}

/**
 * `onChange` is told first, then each subscriber; one that throws is logged and does not keep the others from hearing.
 * The deadline is watched by a timer of its own, which needs no elector; `isLeader` needs no timer either.
 */
export function belief(clock: Clock, log: Logger, onChange: (change: LeadershipChange) => void): Belief {
  let state = initialElection
  /** What the subscribers were told last. */
  let told = false
  let timer = new AbortController()
  const listeners = new Set<(change: LeadershipChange) => void>()

  function tell(change: LeadershipChange): void {
    told = change.leading
    for (const listener of [onChange, ...listeners]) {
      try {
        listener(change)
      } catch (error) {
        log.error({ err: error }, 'a listener to the leadership has failed')
      }
    }
  }

  function review(untilMs: number): void {
    const nowMs = clock.monotonicMs()
    const leading = isLeading(state, nowMs)
    if (leading === told) return
    timer.abort()
    tell({ leading, atMs: leading ? nowMs : Math.min(untilMs, nowMs) })
    if (!leading) return
    timer = new AbortController()
    watchDeadline(timer.signal).catch(() => {})
  }

  async function watchDeadline(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await clock.sleep(Math.max(0, state.beliefUntilMs - clock.monotonicMs()), signal)
      review(state.beliefUntilMs)
    }
  }

  return {
    state: () => state,
    set(next) {
      const untilMs = state.beliefUntilMs
      // A deadline that passed while the timer was starved is told before a new belief begins.
      review(untilMs)
      state = next
      review(untilMs)
    },
    isLeader: () => isLeading(state, clock.monotonicMs()),
    subscribe(listener) {
      review(state.beliefUntilMs)
      listeners.add(listener)
      if (told) listener({ leading: true, atMs: clock.monotonicMs() })
      return () => listeners.delete(listener)
    },
  }
}
