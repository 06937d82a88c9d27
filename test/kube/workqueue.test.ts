import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Outcome, type WorkqueueOptions, workqueue } from '../../shared/kube/workqueue.ts'
import { settle, virtualClock } from '../support/clock.ts'

interface Try {
  key: string
  item: number
  atMs: number
  end: (outcome?: Outcome) => Promise<void>
  signal: AbortSignal
}

/** A queue whose work ends when the test says so (or after `takesMs`, well or badly as `answers` tells). */
function world(
  options: Partial<WorkqueueOptions<number>> & { takesMs?: number; answers?: (t: Try) => Outcome } = {},
) {
  const clock = virtualClock()
  const stop = new AbortController()
  const tries: Try[] = []
  const dropped: string[] = []
  const queue = workqueue<number>({
    clock,
    signal: stop.signal,
    onDrop: (key) => dropped.push(key),
    work: (key, item, signal) =>
      new Promise((resolve) => {
        const end = async (outcome: Outcome = { done: true }) => {
          resolve(outcome)
          await settle()
        }
        const mine = { key, item, atMs: clock.monotonicMs(), end, signal }
        tries.push(mine)
        if (options.takesMs !== undefined)
          clock.sleep(options.takesMs).then(
            () => resolve(options.answers?.(mine) ?? { done: true }),
            () => {},
          )
      }),
    ...options,
  })
  const last = () => tries.at(-1) as Try
  const sent = () => tries.map(({ key, item }) => `${key}${item}`).join(' ')
  return { clock, stop, queue, tries, dropped, last, sent }
}

describe('one key', () => {
  it('is worked on at once; what follows within 50 ms makes one more piece of work', async () => {
    const { clock, queue, sent, tries } = world({ takesMs: 1 })
    queue.add('a', 1)
    expect(sent()).toBe('a1')
    for (let item = 2; item <= 4; item++) {
      await clock.advance(10)
      queue.add('a', item)
    }
    await clock.advance(1_000)
    expect(sent()).toBe('a1 a4')
    expect(tries[1]?.atMs).toBe(50)
    queue.add('a', 5)
    expect(sent()).toBe('a1 a4 a5')
    expect(queue.state()).toMatchObject({ waiting: 0, folded: 2 })
  })

  it('is never worked on twice at once; what comes meanwhile follows', async () => {
    const { clock, queue, sent, last } = world()
    queue.add('a', 1)
    await clock.advance(1_000)
    queue.add('a', 2)
    queue.add('a', 3)
    await clock.advance(1_000)
    expect(sent()).toBe('a1')
    await last().end()
    expect(sent()).toBe('a1 a3')
  })

  it('that fails comes again after 200 ms, then later and later, at most a minute apart, others undisturbed', async () => {
    const { clock, queue, tries } = world({ takesMs: 1, answers: ({ key }) => ({ done: key !== 'a' }) })
    queue.add('a', 1)
    await clock.advance(600_000)
    const at = tries.map((one) => one.atMs)
    const gaps = at.slice(1).map((ms, index) => ms - (at[index] ?? 0))
    expect(gaps[0]).toBeGreaterThanOrEqual(160)
    expect(gaps[0]).toBeLessThanOrEqual(210)
    expect(Math.max(...gaps)).toBeLessThanOrEqual(60_001)
    expect(tries.length).toBeGreaterThan(15)
    expect(tries.length).toBeLessThan(24)
    queue.add('b', 1)
    expect(tries.at(-1)).toMatchObject({ key: 'b' })
  })

  it('that fails keeps the newer item, waits as long as it is asked to, and starts over after a success', async () => {
    const { clock, queue, sent, tries, last } = world()
    queue.add('a', 1)
    queue.add('a', 2)
    await last().end({ done: false, notBeforeMs: 10_000 })
    await clock.advance(9_999)
    expect(sent()).toBe('a1')
    await clock.advance(1)
    expect(sent()).toBe('a1 a2')
    await last().end()
    await clock.advance(100)
    queue.add('a', 3)
    await last().end({ done: false })
    await clock.advance(200)
    expect(sent()).toBe('a1 a2 a3 a3')
    expect(tries).toHaveLength(4)
  })

  it('whose work throws is tried again', async () => {
    let count = 0
    const { clock, queue } = world({
      work: async () => {
        if (++count === 1) throw new Error('a bug')
        return { done: true }
      },
    })
    queue.add('a', 1)
    await clock.advance(1_000)
    expect(count).toBe(2)
  })
})

describe('many keys', () => {
  it('are worked on as many at once as may be, in the order in which they came', async () => {
    const { queue, sent, tries } = world({ concurrency: () => 2 })
    for (const key of 'abcd') queue.add(key, 1)
    expect(sent()).toBe('a1 b1')
    await tries[1]?.end()
    await tries[0]?.end()
    expect(sent()).toBe('a1 b1 c1 d1')
    expect(queue.state()).toMatchObject({ inFlight: 2, waiting: 0 })
  })

  it('found at start are all worked on in bounded time, however busy fifty others are (case 9)', async () => {
    const { clock, queue, tries } = world({ concurrency: () => 4, takesMs: 10 })
    for (let index = 0; index < 2_000; index++) queue.add(`start-${index}`, 1, { lane: 'start' })
    // Four slots of 10 ms are 400 starts a second, of which at least 100 are of the start lane: 20 s for 2,000.
    let item = 0
    for (let ms = 0; ms < 20_500; ms += 20) {
      for (let index = 0; index < 50; index++) queue.add(`busy-${index}`, item++)
      await clock.advance(20)
    }
    const started = new Set(tries.filter(({ key }) => key.startsWith('start')).map(({ key }) => key))
    expect(started.size).toBe(2_000)
    expect(queue.state().oldestAgeMs).toBeLessThan(1_000)
  }, 30_000)

  it('past the limit lose the oldest hint, which is told; what is pinned or at work stays', async () => {
    const { queue, dropped, last, sent } = world({ concurrency: () => 1, lengthMax: 3 })
    queue.add('working', 1)
    queue.add('pinned', 1, { pinned: true })
    for (const key of 'abcd') queue.add(key, 1)
    expect(dropped).toEqual(['a', 'b'])
    expect(queue.state()).toMatchObject({ waiting: 3, dropped: 2 })
    for (let index = 0; index < 4; index++) await last().end()
    expect(sent()).toBe('working1 pinned1 c1 d1')
  })
})

describe('what may change meanwhile', () => {
  it('what waited for leave starts when it is woken, folded', () => {
    let may = false
    const { queue, sent } = world({ mayStart: () => may })
    queue.add('a', 1)
    queue.add('b', 1)
    queue.add('a', 2)
    expect(sent()).toBe('')
    may = true
    queue.wake()
    expect(sent()).toBe('a2 b1')
  })

  it('more start at once when more may', () => {
    let concurrency = 1
    const { queue, sent } = world({ concurrency: () => concurrency })
    for (const key of 'abc') queue.add(key, 1)
    expect(sent()).toBe('a1')
    concurrency = 3
    queue.wake()
    expect(sent()).toBe('a1 b1 c1')
  })

  it('the time within which changes fold is the one at the start of the work', async () => {
    let foldWithinMs = 1_000
    const { clock, queue, sent, last } = world({ foldWithinMs: () => foldWithinMs })
    queue.add('a', 1)
    foldWithinMs = 0
    await last().end()
    queue.add('a', 2)
    await clock.advance(999)
    expect(sent()).toBe('a1')
    await clock.advance(1)
    expect(sent()).toBe('a1 a2')
    await last().end()
    queue.add('a', 3)
    expect(sent()).toBe('a1 a2 a3')
  })
})

describe('slow work', () => {
  it('gives its slot back after 5 s, and its key may go again at once', async () => {
    const { clock, queue, sent, tries } = world({ concurrency: () => 1 })
    queue.add('a', 1)
    queue.add('b', 1)
    await clock.advance(4_999)
    expect(sent()).toBe('a1')
    await clock.advance(1)
    expect(sent()).toBe('a1 b1')
    expect(queue.state()).toMatchObject({ slow: 1, inFlight: 1 })
    await tries[1]?.end()
    queue.add('a', 2)
    expect(sent()).toBe('a1 b1 a2')
    await tries[0]?.end({ done: false })
    await tries[2]?.end()
    await clock.advance(600_000)
    // The slow one failed, but had been overtaken.
    expect(sent()).toBe('a1 b1 a2')
    expect(queue.state()).toMatchObject({ slow: 0, inFlight: 0, waiting: 0 })
  })

  it('that fails and was not overtaken is tried again', async () => {
    const { clock, queue, sent, tries } = world()
    queue.add('a', 1)
    await clock.advance(100_000)
    await tries[0]?.end({ done: false })
    await clock.advance(200)
    expect(sent()).toBe('a1 a1')
  })

  it('is bounded: past a thousand it keeps its slot', async () => {
    const { clock, queue, tries } = world({ concurrency: () => 8 })
    for (let index = 0; index < 2_000; index++) queue.add(`k${index}`, 1)
    await clock.advance(5_000 * 200)
    expect(queue.state()).toMatchObject({ slow: 1_000, inFlight: 8 })
    expect(tries).toHaveLength(1_008)
  })
})

describe('stopping', () => {
  it('starts nothing more and aborts what is in flight', async () => {
    const { clock, stop, queue, sent, last } = world({ concurrency: () => 1 })
    queue.add('a', 1)
    queue.add('b', 1)
    stop.abort()
    expect(last().signal.aborted).toBe(true)
    await last().end({ done: false })
    queue.add('c', 1)
    await clock.advance(60_000)
    expect(sent()).toBe('a1')
  })

  it('starts nothing once it may not, before any signal has come', async () => {
    let mayStart = true
    const { queue, sent, last } = world({ concurrency: () => 1, mayStart: () => mayStart })
    queue.add('a', 1)
    queue.add('b', 1)
    mayStart = false
    await last().end()
    expect(sent()).toBe('a1')
  })
})

it('whatever comes whenever, the last item of each key is done in the end, one at a time', async () => {
  const step = fc.record({
    key: fc.constantFrom('a', 'b', 'c'),
    waitMs: fc.nat(120),
    lane: fc.constantFrom('fresh' as const, 'start' as const),
  })
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { maxLength: 30 }),
      fc.infiniteStream(fc.boolean()),
      async (steps, fails) => {
        const done = new Map<string, number>()
        const working = new Set<string>()
        const clock = virtualClock()
        const queue = workqueue<number>({
          clock,
          concurrency: () => 2,
          signal: new AbortController().signal,
          work: async (key, item) => {
            expect(working.has(key)).toBe(false)
            working.add(key)
            await clock.sleep(30)
            working.delete(key)
            if (fails.next().value) return { done: false }
            done.set(key, item)
            return { done: true }
          },
        })
        const added = new Map<string, number>()
        for (const [index, { key, waitMs, lane }] of steps.entries()) {
          added.set(key, index)
          queue.add(key, index, { lane })
          await clock.advance(waitMs)
        }
        await clock.advance(3_600_000)
        expect(done).toEqual(added)
        expect(queue.state()).toMatchObject({ waiting: 0, inFlight: 0, slow: 0, oldestAgeMs: 0 })
      },
    ),
    { numRuns: 25 },
  )
})
