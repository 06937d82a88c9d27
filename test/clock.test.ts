import { describe, expect, it } from 'vitest'
import { systemClock, TimeoutError, untilAborted, withTimeout } from '../shared/clock.ts'
import { settle, virtualClock } from './support/clock.ts'

describe('withTimeout', () => {
  it('gives what the work gives', async () => {
    expect(await withTimeout(systemClock, 1000, 'the work', async () => 7)).toBe(7)
  })

  it('names what took too long, even when the work ignores its signal', async () => {
    const clock = virtualClock()
    const outcome = withTimeout(clock, 50, 'the work', () => new Promise(() => {})).catch(
      (error: unknown) => error,
    )
    await clock.advance(50)
    expect(await outcome).toEqual(new TimeoutError('the work took longer than 50 ms'))
  })

  it("throws the parent's reason when the parent is aborted first, and leaves no timer behind", async () => {
    const clock = virtualClock()
    const parent = new AbortController()
    const outcome = withTimeout(clock, 50, 'the work', () => new Promise(() => {}), parent.signal).catch(
      (e: unknown) => e,
    )
    parent.abort(new Error('stopped'))
    expect(await outcome).toEqual(new Error('stopped'))
    await settle()
    expect(clock.sleepers()).toBe(0)
  })
})

describe('systemClock.sleep', () => {
  it('rejects with the reason of a signal that is already aborted', async () => {
    await expect(systemClock.sleep(1, AbortSignal.abort(new Error('no')))).rejects.toThrow('no')
  })
})

describe('untilAborted', () => {
  it('gives what the promise gives, or the reason of the signal when that comes first', async () => {
    const { signal } = new AbortController()
    expect(await untilAborted(Promise.resolve(7), signal)).toBe(7)
    const stop = new AbortController()
    const waiting = untilAborted(new Promise(() => {}), stop.signal)
    stop.abort(new Error('stopped'))
    await expect(waiting).rejects.toThrow('stopped')
  })

  it('a rejection that comes after the end is nobody’s', async () => {
    const late = Promise.reject(new Error('late'))
    await expect(untilAborted(late, AbortSignal.abort(new Error('stopped')))).rejects.toThrow('stopped')
  })
})
