import { describe, expect, it } from 'vitest'
import { type LeaderTask, leaderTasks } from '../../shared/runtime/leader-tasks.ts'
import { fixedLeadership } from '../../shared/runtime/leadership.ts'
import { stopTimeoutMs } from '../../shared/runtime/lease.ts'
import { virtualClock } from '../support/clock.ts'
import { candidate, silentLog, timing } from './candidates.ts'
import { leaseWire } from './lease-wire.ts'

const waitFor = (signal: AbortSignal) =>
  new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))

/** A process with one task, and the story of that task. */
function world() {
  const clock = virtualClock()
  const wire = leaseWire(clock)
  const story: string[] = []
  const say = (what: string) => story.push(`${clock.monotonicMs() / 1000}s ${what}`)
  const process = (name: string, run: LeaderTask['run']) => {
    const campaign = candidate(clock, wire, name)
    const tasks = leaderTasks({
      leadership: campaign.elector,
      clock,
      log: silentLog(),
      stopTimeoutMs: stopTimeoutMs(timing),
      tasks: [{ name: 'work', run }],
      onAbandoned: (task) => say(`${name}: ${task} abandoned`),
    })
    campaign.elector.subscribe(({ leading }) => say(`${name}: ${leading ? 'leads' : 'does not lead'}`))
    return { ...campaign, campaign, tasks }
  }
  return { clock, wire, story, say, process }
}

describe('tasks of the leader', () => {
  it('run only while this process leads, and again in each term', async () => {
    const { clock, story, say, process } = world()
    const a = process('a', async (signal) => {
      say('work begins')
      await waitFor(signal)
      say('work ends')
    })
    await clock.advance(3_000)
    a.campaign.trouble = { status: 500 }
    await clock.advance(12_000)
    a.campaign.trouble = {}
    await clock.advance(2_000)
    expect(story.map((line) => line.replace(/^\S+ /, ''))).toEqual([
      'a: leads',
      'work begins',
      'a: does not lead',
      'work ends',
      'a: leads',
      'work begins',
    ])
  })

  it('do not run in a process that does not lead', async () => {
    const { clock, process } = world()
    const runs = { a: 0, b: 0 }
    const counting = (name: 'a' | 'b') => async (signal: AbortSignal) => {
      runs[name]++
      await waitFor(signal)
    }
    process('a', counting('a'))
    process('b', counting('b'))
    await clock.advance(60_000)
    expect(runs).toEqual({ a: 1, b: 0 })
  })

  it('one that returns waits for the next term', async () => {
    const { clock, process } = world()
    let runs = 0
    const a = process('a', async () => {
      runs++
    })
    await clock.advance(60_000)
    expect(runs).toBe(1)
    a.campaign.trouble = { status: 500 }
    await clock.advance(20_000)
    a.campaign.trouble = {}
    await clock.advance(2_000)
    expect(runs).toBe(2)
  })

  it('one that throws is run again in the same term, ever more slowly', async () => {
    const { clock, process } = world()
    const atMs: number[] = []
    process('a', async () => {
      atMs.push(clock.monotonicMs())
      throw new Error('broken')
    })
    await clock.advance(100_000)
    expect(atMs).toEqual([0, 1_000, 3_000, 7_000, 15_000, 31_000, 61_000, 91_000])
  })

  it('one that ignores its signal is abandoned 4 s after belief ended, before another leads', async () => {
    const { clock, story, process } = world()
    const a = process('a', () => new Promise<void>(() => {}))
    await clock.advance(0)
    process('b', waitFor)
    a.campaign.trouble = { lost: 'there' }
    await clock.advance(30_000)
    expect(story.slice(0, 3)).toEqual(['0s a: leads', '10s a: does not lead', '14s a: work abandoned'])
    expect(story[3]).toMatch(/^1[5-6](\.\d+)?s b: leads$/)
    expect(a.tasks.stuck()).toEqual(['work'])
  })

  it('when the end is noticed late, the stop time still counts from the end', async () => {
    const clock = virtualClock()
    let end: (change: { leading: boolean; atMs: number }) => void = () => {}
    const abandoned: number[] = []
    leaderTasks({
      leadership: {
        isLeader: () => true,
        subscribe(listener) {
          listener({ leading: true, atMs: 0 })
          end = listener
          return () => {}
        },
      },
      clock,
      log: silentLog(),
      stopTimeoutMs: 4_000,
      tasks: [{ name: 'stuck', run: () => new Promise(() => {}) }],
      onAbandoned: () => abandoned.push(clock.monotonicMs()),
    })
    await clock.advance(13_000)
    end({ leading: false, atMs: 10_000 })
    await clock.advance(1_000)
    expect(abandoned).toEqual([14_000])
  })

  it('one that is stuck from an earlier term is not started beside itself; when it ends it is', async () => {
    const { clock, process } = world()
    const ends: (() => void)[] = []
    const a = process('a', () => new Promise<void>((resolve) => ends.push(resolve)))
    await clock.advance(0)
    a.campaign.trouble = { status: 500 }
    await clock.advance(20_000)
    a.campaign.trouble = {}
    await clock.advance(5_000)
    expect(a.elector.isLeader()).toBe(true)
    expect(ends.length).toBe(1)
    ends[0]?.()
    await clock.advance(0)
    expect(ends.length).toBe(2)
    expect(a.tasks.stuck()).toEqual([])
  })

  it('a dropped runtime does not free the Lease while tasks run', async () => {
    const { clock, wire, process } = world()
    const a = process('a', () => new Promise<void>(() => {}))
    await clock.advance(1_000)
    a.kill()
    await clock.advance(3_000)
    expect(wire.lease()?.spec?.holderIdentity).toBe('a')
    expect(a.elector.isLeader()).toBe(true)
  })

  it('says which task failed or was abandoned, once, and nothing of one that fails after its term', async () => {
    const clock = virtualClock()
    const wire = leaseWire(clock)
    const lines: string[] = []
    const a = candidate(clock, wire, 'a')
    leaderTasks({
      leadership: a.elector,
      clock,
      log: silentLog(lines),
      stopTimeoutMs: stopTimeoutMs(timing),
      tasks: [
        { name: 'stuck', run: () => new Promise<void>(() => {}) },
        {
          name: 'late',
          run: async (signal) => {
            await waitFor(signal)
            throw signal.reason
          },
        },
        {
          name: 'weak',
          run: async (signal) => {
            if (!lines.some((line) => line.includes('too weak'))) throw new Error('too weak')
            await waitFor(signal)
          },
        },
      ],
    })
    for (let term = 0; term < 3; term++) {
      a.trouble = {}
      await clock.advance(10_000)
      a.trouble = { status: 500 }
      await clock.advance(20_000)
    }
    expect(a.counts.lost).toBe(3)
    const said = lines.map((line) => JSON.parse(line)).map(({ task, msg }) => `${task}: ${msg}`)
    expect(said).toEqual(['weak: leader task failed', 'stuck: leader task abandoned: it did not end in time'])
  })

  it('the reason of the signal tells that the term has ended', async () => {
    const { clock, process } = world()
    let reason: unknown
    const a = process('a', async (signal) => {
      await waitFor(signal)
      reason = signal.reason
    })
    await clock.advance(1_000)
    await a.tasks.stop()
    expect(reason).toMatchObject({ name: 'TermEnded', message: 'This process no longer leads' })
    // And after the stop no term begins any more.
    a.campaign.trouble = { status: 500 }
    await clock.advance(20_000)
    a.campaign.trouble = {}
    reason = undefined
    await clock.advance(20_000)
    a.kill()
    await clock.advance(20_000)
    expect(reason).toBeUndefined()
  })

  it('stop waits for the tasks, tells which it abandoned, and a second stop is the same stop', async () => {
    const { clock, process } = world()
    const a = process('a', () => new Promise<void>(() => {}))
    const b = process('b', waitFor)
    await clock.advance(1_000)
    const stopped = a.tasks.stop()
    expect(a.tasks.stop()).toBe(stopped)
    await clock.advance(4_000)
    expect(await stopped).toEqual({ abandoned: ['work'] })
    expect(await b.tasks.stop()).toEqual({ abandoned: [] })
    await clock.advance(60_000)
    expect(b.elector.isLeader()).toBe(false)
  })
})

describe('a leadership that never changes', () => {
  it.each([
    [true, 1],
    [false, 0],
  ])('%s: the task runs %i times', async (leading, times) => {
    const clock = virtualClock()
    let runs = 0
    const tasks = leaderTasks({
      leadership: fixedLeadership(leading),
      clock,
      log: silentLog(),
      stopTimeoutMs: 4_000,
      tasks: [
        {
          name: 'work',
          run: async (signal) => {
            runs++
            await waitFor(signal)
          },
        },
      ],
    })
    await clock.advance(1_000)
    expect(runs).toBe(times)
    expect(await tasks.stop()).toEqual({ abandoned: [] })
  })
})
