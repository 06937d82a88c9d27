import { describe, expect, it } from 'vitest'
import { belief } from '../../shared/runtime/belief.ts'
import type { LeadershipChange } from '../../shared/runtime/leadership.ts'
import { initialElection } from '../../shared/runtime/lease.ts'
import { virtualClock } from '../support/clock.ts'
import { silentLog } from './candidates.ts'

/** A process whose timers are never served. */
function starved() {
  const clock = virtualClock()
  const lines: string[] = []
  const changes: LeadershipChange[] = []
  const never = { ...clock, sleep: () => new Promise<void>(() => {}) }
  const held = belief(never, silentLog(lines), (change) => changes.push(change))
  const until = (beliefUntilMs: number) => held.set({ ...initialElection, beliefUntilMs })
  return { clock, held, changes, lines, until }
}

describe('belief, when no timer is served', () => {
  it('a deadline that passed unseen is told with its own time before a new term begins', async () => {
    const { clock, changes, until } = starved()
    until(10_000)
    await clock.advance(15_000)
    until(25_000)
    expect(changes).toEqual([
      { leading: true, atMs: 0 },
      { leading: false, atMs: 10_000 },
      { leading: true, atMs: 15_000 },
    ])
  })

  it('one that subscribes after the deadline is not told of a term that is over', async () => {
    const { clock, held, changes, until } = starved()
    until(10_000)
    await clock.advance(10_000)
    const told: LeadershipChange[] = []
    held.subscribe((change) => told.push(change))
    expect(told).toEqual([])
    expect(changes.at(-1)).toEqual({ leading: false, atMs: 10_000 })
  })

  it('an end before the deadline is told with the time at which it was known', async () => {
    const { clock, changes, until } = starved()
    until(10_000)
    await clock.advance(3_000)
    until(Number.NEGATIVE_INFINITY)
    expect(changes.at(-1)).toEqual({ leading: false, atMs: 3_000 })
  })

  it('a failure of a listener is logged by its name', () => {
    const { held, lines, until } = starved()
    held.subscribe(() => {
      throw new Error('broken listener')
    })
    until(10_000)
    expect(lines.length).toBe(1)
    expect(lines[0]).toContain('a listener to the leadership has failed')
  })
})
