import { describe, expect, it } from 'vitest'
import * as policy from '../../shared/runtime/lease.ts'
import { explore, type Model, type ProcessModel, type Rules } from './lease-model.ts'

/**
 * Every run of the election, as far as the adversary's means go (see `lease-model.ts`), over the real policy functions:
 * message delay and loss, an API that does not answer, starved and dead electors, crashes, shutdowns, writes that arrive
 * after they were given up, clock offsets, standing wall clocks, clock rates. Time goes in steps of one second, with a
 * lease of 3 s and a renew deadline of 2 s.
 *
 * A row is explored completely: no state is left out. Then each of the wrong rules is put in, and must be caught.
 */

const timing = { leaseDurationSeconds: 3, renewDeadlineSeconds: 2, retryPeriodSeconds: 1 }
const statesMax = 600_000

function processes(count: number, changes: (Partial<ProcessModel> | undefined)[] = []): ProcessModel[] {
  return Array.from({ length: count }, (_, i) => ({
    settings: { namespace: 'n', leaseName: 'l', identity: `p${i}`, ...timing },
    offsetMs: i * 1_000_000,
    rate: 1,
    wallOffsetMs: i * 3_600_001,
    ...changes[i],
  }))
}

function model(change: Partial<Model> = {}): Model {
  const means = { crashes: 0, releases: 0, lateWrites: 0 }
  return { processes: processes(2), rules: policy, ...means, ...change }
}

const withSettings = (change: Partial<policy.LeaseSettings>): Partial<ProcessModel> => ({
  settings: { namespace: 'n', leaseName: 'l', identity: 'p0', ...timing, ...change },
})

interface Row {
  what: string
  model: Model
  /** What was explored when this was written, so that a change of it is noticed. */
  states: number
  depth: number
}

const rows: Row[] = [
  { what: 'two candidates and a crash', model: model({ crashes: 1 }), states: 24_119, depth: 52 },
  {
    what: 'two candidates and a write that comes late',
    model: model({ lateWrites: 1 }),
    states: 71_132,
    depth: 60,
  },
  {
    what: 'two candidates, a crash and a write that comes late',
    model: model({ crashes: 1, lateWrites: 1, promptReads: true }),
    states: 94_193,
    depth: 47,
  },
  {
    what: 'two candidates and a shutdown whose release comes at any time or never',
    model: model({ releases: 1, promptReads: true }),
    states: 20_150,
    depth: 35,
  },
  {
    what: 'two candidates with different times, as in a rolling change of them',
    model: model({
      processes: processes(2, [withSettings({ leaseDurationSeconds: 5, renewDeadlineSeconds: 4 })]),
      promptReads: true,
    }),
    states: 6_524,
    depth: 30,
  },
  {
    what: 'two candidates whose clocks run 5 % apart',
    model: model({ processes: processes(2, [{ rate: 0.95 }]), promptReads: true }),
    states: 4_233,
    depth: 28,
  },
  {
    what: 'two candidates of which one has a wall clock that stands still',
    model: model({ processes: processes(2, [{ wallOffsetMs: undefined }]) }),
    states: 10_809,
    depth: 39,
  },
  {
    what: 'two candidates with one identity',
    model: model({ processes: processes(2, [withSettings({ identity: 'p1' })]), promptReads: true }),
    states: 1_811,
    depth: 26,
  },
  {
    what: 'three candidates',
    model: model({ processes: processes(3), promptReads: true }),
    states: 102_596,
    depth: 46,
  },
]

describe('in every run', () => {
  it.each(rows)(
    'of $what: never two believers, no takeover before the old tasks have stopped',
    (row) => {
      const found = explore(row.model, statesMax)
      expect(found.violation).toBeUndefined()
      expect(found).toMatchObject({ complete: true, states: row.states, depth: row.depth })
      expect(found.led).toBeGreaterThan(found.states / 10)
      // From each state, once nothing fails any more: at most the longest lease and one retry.
      const longest = Math.max(...row.model.processes.map(({ settings }) => settings.leaseDurationSeconds))
      expect(found.slowestTakeoverTicks).toBeLessThanOrEqual(Math.ceil(longest / 0.95) + 1)
    },
    120_000,
  )
})

const rules = (change: Partial<Rules>): Rules => ({ ...policy, ...change })

/** Rules that look reasonable and are wrong, and which promise each breaks. */
const wrong: { what: string; model: Model; promise: string }[] = [
  {
    what: "the holder's renewTime is compared with the local wall clock",
    promise: 'never two believers',
    model: model({
      rules: rules({
        decide(state, settings, nowMs, wallNow) {
          const renewed = Date.parse(state.lease?.spec?.renewTime ?? '')
          const dead = wallNow.getTime() - renewed > settings.leaseDurationSeconds * 1000
          return policy.decide(dead ? { ...state, rival: undefined } : state, settings, nowMs, wallNow)
        },
      }),
    }),
  },
  {
    what: 'belief counts from when the answer came',
    promise: 'no takeover before the old tasks have stopped',
    model: model({
      // The model hands in the time of sending; the time of the answer is later by as much as the answer took.
      rules: rules({
        wrote: (state, stored, sentMs, settings) => policy.wrote(state, stored, sentMs + 1_000, settings),
      }),
    }),
  },
  {
    what: 'the lease is not longer than the renew deadline',
    promise: 'never two believers',
    model: model({
      processes: processes(
        2,
        [0, 1].map((i) => withSettings({ identity: `p${i}`, leaseDurationSeconds: 1 })),
      ),
    }),
  },
  {
    what: 'a write does not carry the version that was read',
    promise: 'never two believers',
    model: model({ unconditional: true }),
  },
  {
    what: "only a new holder, and not the same one's renewal, begins the wait anew",
    promise: 'never two believers',
    model: model({
      rules: rules({
        saw(state, lease, nowMs, settings) {
          const next = policy.saw(state, lease, nowMs, settings)
          const holderOf = (record = '[]') => (JSON.parse(record) as string[])[0]
          const same = holderOf(next.rival?.record) === holderOf(state.rival?.record)
          return next.rival && state.rival && same
            ? { ...next, rival: { ...next.rival, sinceMs: state.rival.sinceMs } }
            : next
        },
      }),
    }),
  },
  {
    what: "our own duration is waited for and not the holder's",
    promise: 'never two believers',
    model: model({
      processes: processes(2, [withSettings({ leaseDurationSeconds: 6, renewDeadlineSeconds: 5 })]),
      rules: rules({
        saw(state, lease, nowMs, settings) {
          const next = policy.saw(state, lease, nowMs, settings)
          const durationMs = settings.leaseDurationSeconds * 1000
          return next.rival ? { ...next, rival: { ...next.rival, durationMs } } : next
        },
      }),
    }),
  },
  {
    what: 'a renewal may bear the same time as the one before',
    promise: 'never two believers',
    model: model({
      processes: processes(2, [{ wallOffsetMs: undefined }]),
      rules: rules({
        decide(state, settings, nowMs, wallNow) {
          const step = policy.decide(state, settings, nowMs, wallNow)
          if (step.kind !== 'renew') return step
          const renewTime = policy.microTime(wallNow)
          return { ...step, lease: { ...step.lease, spec: { ...step.lease.spec, renewTime } } }
        },
      }),
    }),
  },
  {
    what: 'a record with our identity is taken for our own',
    promise: 'never two believers',
    model: model({
      processes: processes(2, [withSettings({ identity: 'p1' })]),
      rules: rules({
        saw(state, lease, nowMs, settings) {
          const acquireTime = lease?.spec?.acquireTime
          const mine = policy.holderOf(lease) === settings.identity && acquireTime !== undefined
          const attempt = mine ? { version: state.attempt?.version ?? '', acquireTime } : state.attempt
          return policy.saw({ ...state, attempt }, lease, nowMs, settings)
        },
      }),
    }),
  },
  {
    what: 'the Lease is released while tasks run',
    promise: 'no takeover before the old tasks have stopped',
    model: model({ releases: 1, careless: true }),
  },
  {
    what: 'tasks have more time to stop than there is until the lease runs out',
    promise: 'no takeover before the old tasks have stopped',
    model: model({ rules: rules({ stopTimeoutMs: () => 1_500 }) }),
  },
  {
    what: 'the clocks run too far apart for the tasks',
    promise: 'no takeover before the old tasks have stopped',
    model: model({ processes: processes(2, [{ rate: 0.8 }]) }),
  },
  {
    what: 'the clocks run further apart than lease and renew deadline',
    promise: 'never two believers',
    model: model({ processes: processes(2, [{ rate: 0.5 }]), rules: rules({ stopTimeoutMs: () => 0 }) }),
  },
  {
    what: 'the record of another holder is not waited for',
    promise: 'never two believers',
    model: model({
      rules: rules({
        saw: (state, lease, nowMs, settings) => ({
          ...policy.saw(state, lease, nowMs, settings),
          rival: undefined,
        }),
      }),
    }),
  },
]

describe('a wrong rule is caught', () => {
  it.each(wrong)(
    '$what',
    ({ model: spoiled, promise }) => {
      const { violation } = explore(spoiled, statesMax)
      expect(violation?.promise, violation?.run.join('\n')).toBe(promise)
      expect(violation?.run.length).toBeGreaterThan(0)
    },
    120_000,
  )
})
