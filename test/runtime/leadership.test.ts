import { describe, expect, it } from 'vitest'
import {
  fixedLeadership,
  type Leadership,
  type LeadershipChange,
  leadershipChanges,
  untilLeader,
} from '../../shared/runtime/leadership.ts'
import { settle } from '../support/clock.ts'

/** A leadership that the test gives and takes. */
function given() {
  let leading = false
  const listeners = new Set<(change: LeadershipChange) => void>()
  const leadership: Leadership = {
    isLeader: () => leading,
    subscribe(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
  const tell = (change: boolean) => {
    leading = change
    for (const listener of listeners) listener({ leading, atMs: 0 })
  }
  return { leadership, tell, listeners }
}

describe('a wait for leadership', () => {
  it('ends at once for a leader, and leaves no listener', async () => {
    const { leadership, tell, listeners } = given()
    tell(true)
    await untilLeader(leadership)
    expect(listeners.size).toBe(0)
  })

  it('goes on while others lead, ends with the first term, and leaves no listener', async () => {
    const { leadership, tell, listeners } = given()
    let over = false
    const signal = new AbortController().signal
    const waiting = untilLeader(leadership, signal).then(() => {
      over = true
    })
    tell(false)
    await settle()
    expect(over).toBe(false)
    tell(true)
    await waiting
    expect(listeners.size).toBe(0)
  })

  it('leaves no listener when it is given up', async () => {
    const { leadership, listeners } = given()
    const giveUp = new AbortController()
    const waiting = untilLeader(leadership, giveUp.signal)
    giveUp.abort(new Error('enough'))
    await expect(waiting).rejects.toThrow('enough')
    expect(listeners.size).toBe(0)
  })
})

describe('the stream of changes', () => {
  it('begins with the present state, skips what is not news, and leaves no listener', async () => {
    const { leadership, tell, listeners } = given()
    const stop = new AbortController()
    const seen: boolean[] = []
    const reading = (async () => {
      for await (const leading of leadershipChanges(leadership, stop.signal)) seen.push(leading)
    })()
    await settle()
    for (const change of [false, true, true, false]) {
      tell(change)
      await settle()
    }
    expect(seen).toEqual([false, true, false])
    stop.abort()
    await reading
    expect(listeners.size).toBe(0)
  })

  it('a reader that leaves the loop leaves no listener', async () => {
    const { leadership, listeners } = given()
    for await (const leading of leadershipChanges(leadership, new AbortController().signal)) {
      expect(leading).toBe(false)
      break
    }
    expect(listeners.size).toBe(0)
  })
})

describe('a leadership that never changes', () => {
  it('tells a listener once that it leads, or nothing', () => {
    for (const leading of [true, false]) {
      const told: LeadershipChange[] = []
      fixedLeadership(leading).subscribe((change) => told.push(change))()
      expect(told).toEqual(leading ? [{ leading: true, atMs: 0 }] : [])
    }
  })
})
