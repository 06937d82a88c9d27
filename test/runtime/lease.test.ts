import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import * as policy from '../../shared/runtime/lease.ts'

const settings: policy.LeaseSettings = {
  namespace: 'test',
  leaseName: 'work',
  identity: 'me',
  leaseDurationSeconds: 15,
  renewDeadlineSeconds: 10,
  retryPeriodSeconds: 2,
}
const wall = new Date('2026-03-04T05:06:07.089Z')

function leaseOf(spec: object, resourceVersion = '7'): policy.Lease {
  return { metadata: { name: 'work', namespace: 'test', resourceVersion }, spec: spec as policy.LeaseSpec }
}

describe('times', () => {
  it.each([
    [{}, []],
    [{ retryPeriodSeconds: 0 }, ['retryPeriodSeconds must be greater than 0']],
    [
      { retryPeriodSeconds: Number.NaN },
      [
        'retryPeriodSeconds must be greater than 0',
        'renewDeadlineSeconds must be greater than 1.2 × retryPeriodSeconds',
      ],
    ],
    [{ renewDeadlineSeconds: 2.4 }, ['renewDeadlineSeconds must be greater than 1.2 × retryPeriodSeconds']],
    [{ renewDeadlineSeconds: 2.5 }, []],
    [{ leaseDurationSeconds: 10 }, ['leaseDurationSeconds must be greater than renewDeadlineSeconds']],
    [{ leaseDurationSeconds: 3600 }, []],
    [{ leaseDurationSeconds: 3601 }, ['leaseDurationSeconds must not be greater than 3600']],
    [{ leaseDurationSeconds: 11.5 }, ['leaseDurationSeconds must be a whole number']],
  ])('%j: %j', (change, problems) => {
    expect(policy.timingProblems({ ...settings, ...change })).toEqual(problems)
  })

  it.each([
    [15, 10, 4_000],
    [60, 10, 10_000],
    [12, 11, 800],
  ])('lease %i s, renew %i s: tasks have %i ms to stop', (leaseDurationSeconds, renewDeadlineSeconds, ms) => {
    expect(policy.stopTimeoutMs({ ...settings, leaseDurationSeconds, renewDeadlineSeconds })).toBe(ms)
  })

  it('a stop is over before the gap is, for all valid times', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 3599 }), fc.integer({ min: 1, max: 600 }), (renew, gap) => {
        const timing = {
          leaseDurationSeconds: renew + gap,
          renewDeadlineSeconds: renew,
          retryPeriodSeconds: 1,
        }
        const ms = policy.stopTimeoutMs(timing)
        expect(ms).toBeGreaterThan(0)
        expect(ms).toBeLessThan(gap * 1000)
      }),
    )
  })

  it('a wait is never longer than the retry period and at most 20 % shorter', () => {
    fc.assert(
      fc.property(fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }), (random) => {
        const ms = policy.retryWaitMs(settings, random)
        expect(ms).toBeGreaterThanOrEqual(1_600)
        expect(ms).toBeLessThanOrEqual(2_000)
      }),
    )
  })
})

describe("another holder's record", () => {
  it.each([
    ['missing', undefined, 15_000],
    ['zero', 0, 15_000],
    ['negative', -5, 15_000],
    ['a string', '20', 15_000],
    ['not a number', Number.NaN, 15_000],
    ['huge', 10 ** 12, 3_600_000],
    ['its own', 30, 30_000],
  ])('whose duration is %s is waited for', (_, leaseDurationSeconds, ms) => {
    const lease = leaseOf({ holderIdentity: 'other', leaseDurationSeconds, renewTime: 'x' })
    const state = policy.saw(policy.initialElection, lease, 1_000, settings)
    expect(policy.decide(state, settings, 1_000, wall)).toEqual({ kind: 'wait', waitMs: ms })
    const before = policy.decide(policy.saw(state, lease, ms + 999, settings), settings, ms + 999, wall)
    expect(before).toEqual({ kind: 'wait', waitMs: 1 })
    const after = policy.decide(policy.saw(state, lease, ms + 1_000, settings), settings, ms + 1_000, wall)
    expect(after.kind).toBe('acquire')
  })

  it.each(['holderIdentity', 'leaseDurationSeconds', 'acquireTime', 'renewTime', 'leaseTransitions'])(
    'a changed %s begins the wait anew',
    (field) => {
      const spec = { holderIdentity: 'other', leaseDurationSeconds: 15, renewTime: 'x', leaseTransitions: 1 }
      const first = policy.saw(policy.initialElection, leaseOf(spec), 0, settings)
      const changed = { ...spec, [field]: field.startsWith('lease') ? 15.5 : 'changed' }
      const later = policy.saw(first, leaseOf(changed), 14_000, settings)
      expect(later.rival?.sinceMs).toBe(14_000)
    },
  )

  it('a changed annotation or version does not', () => {
    const spec = { holderIdentity: 'other', leaseDurationSeconds: 15, renewTime: 'x' }
    const first = policy.saw(policy.initialElection, leaseOf(spec, '7'), 0, settings)
    expect(policy.saw(first, leaseOf(spec, '8'), 14_000, settings).rival?.sinceMs).toBe(0)
  })

  it.each([
    ['no spec', undefined],
    ['a spec of a wrong type', 'x'],
    ['an empty holder', { holderIdentity: '' }],
    ['a holder of a wrong type', { holderIdentity: 5, leaseTransitions: -3 }],
    ['a count of a wrong type', { holderIdentity: '', leaseTransitions: '7' }],
    ['null fields', { holderIdentity: null, renewTime: null, leaseTransitions: null }],
  ])('a Lease with %s is free, and what is written is well formed', (_, spec) => {
    const lease = { metadata: { name: 'work', resourceVersion: '7' }, spec } as policy.Lease
    const step = policy.decide(policy.saw(policy.initialElection, lease, 0, settings), settings, 0, wall)
    expect(step).toMatchObject({
      kind: 'acquire',
      lease: {
        metadata: { resourceVersion: '7' },
        spec: {
          holderIdentity: 'me',
          leaseDurationSeconds: 15,
          acquireTime: '2026-03-04T05:06:07.089000Z',
          renewTime: '2026-03-04T05:06:07.089000Z',
          leaseTransitions: 1,
        },
      },
    })
  })

  it('the count of transitions does not overflow', () => {
    const lease = leaseOf({ holderIdentity: '', leaseTransitions: 2 ** 31 - 1 })
    const step = policy.decide(policy.saw(policy.initialElection, lease, 0, settings), settings, 0, wall)
    expect(step).toMatchObject({ lease: { spec: { leaseTransitions: 2 ** 31 - 1 } } })
  })

  it('a Lease that vanished under its holder is not made anew before its time is over', () => {
    const lease = leaseOf({ holderIdentity: 'other', leaseDurationSeconds: 15, renewTime: 'x' })
    const seen = policy.saw(policy.initialElection, lease, 0, settings)
    const gone = policy.saw(seen, undefined, 1_000, settings)
    expect(policy.decide(gone, settings, 1_000, wall)).toEqual({ kind: 'wait', waitMs: 14_000 })
    expect(policy.decide(gone, settings, 15_000, wall).kind).toBe('create')
  })
})

describe('our own record', () => {
  const first = policy.decide(policy.initialElection, settings, 0, wall)
  if (first.kind !== 'create') throw new Error('The first step should create the Lease')
  const tried = policy.attempted(policy.initialElection, first)
  const stored = { ...first.lease, metadata: { ...first.lease.metadata, resourceVersion: '7' } }
  const led = policy.wrote(tried, stored, 100, settings)

  it('is created with a resourceVersion, so that a lost race is a conflict', () => {
    expect(first.lease).toMatchObject({
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { name: 'work', namespace: 'test', resourceVersion: '1' },
    })
  })

  it('a renewal is no new acquisition; a try on another version is one', () => {
    const renewal = policy.decide(led, settings, 200, wall)
    expect(policy.attempted(led, renewal)).toBe(led)
    const freed = policy.saw(led, leaseOf({ holderIdentity: '' }, '9'), 5_000, settings)
    const later = new Date(wall.getTime() + 5_000)
    expect(policy.decide(freed, settings, 5_000, later)).toMatchObject({
      kind: 'acquire',
      lease: { spec: { acquireTime: '2026-03-04T05:06:12.089000Z' } },
    })
  })

  it('belief counts from when the write was sent, and the deadline itself is no longer leading', () => {
    expect(policy.isLeading(led, 10_099)).toBe(true)
    expect(policy.isLeading(led, 10_100)).toBe(false)
  })

  it.each([
    [wall, '2026-03-04T05:06:07.089001Z'],
    [new Date(wall.getTime() - 1e9), '2026-03-04T05:06:07.089001Z'],
    [new Date(wall.getTime() + 1), '2026-03-04T05:06:07.090000Z'],
  ])('renewed at %s by the wall clock, its time grows to %s', (now, renewTime) => {
    const step = policy.decide(led, settings, 200, now)
    expect(step).toMatchObject({ kind: 'renew', lease: { spec: { renewTime } } })
  })

  it('a microsecond carries over into the next second', () => {
    const full = { ...stored, spec: { ...stored.spec, renewTime: '2026-12-31T23:59:59.999999Z' } }
    const step = policy.decide({ ...led, lease: full }, settings, 200, wall)
    expect(step).toMatchObject({ lease: { spec: { renewTime: '2027-01-01T00:00:00.000000Z' } } })
  })

  it('a renew time that nobody can read is replaced by now', () => {
    for (const renewTime of ['soon', '9999-99-99T00:00:00.000000Z', 7]) {
      const odd = { ...stored, spec: { ...stored.spec, renewTime } } as policy.Lease
      const step = policy.decide({ ...led, lease: odd }, settings, 200, wall)
      expect(step).toMatchObject({ lease: { spec: { renewTime: '2026-03-04T05:06:07.089000Z' } } })
    }
  })

  it('with our identity but from another process is a rival', () => {
    const twin = { ...stored, spec: { ...stored.spec, acquireTime: '2020-01-01T00:00:00.000000Z' } }
    const state = policy.saw(led, twin, 200, settings)
    expect(policy.isLeading(state, 200)).toBe(false)
    expect(policy.decide(state, settings, 200, wall).kind).toBe('wait')
  })

  it('a second try on the same version is the same acquisition', () => {
    const again = policy.decide(tried, settings, 2_000, new Date(wall.getTime() + 2_000))
    expect(again).toMatchObject({
      kind: 'create',
      lease: { spec: { acquireTime: first.lease.spec?.acquireTime } },
    })
  })

  it('a conflict, another holder, an emptied or a vanished Lease ends belief at once', () => {
    expect(policy.isLeading(policy.refused(led), 200)).toBe(false)
    for (const lease of [leaseOf({ holderIdentity: 'other' }), leaseOf({ holderIdentity: '' }), undefined])
      expect(policy.isLeading(policy.saw(led, lease, 200, settings), 200)).toBe(false)
    expect(policy.isLeading(policy.saw(led, stored, 200, settings), 200)).toBe(true)
  })

  it('is released with an empty holder and a duration that the API takes; no other is', () => {
    expect(policy.released(led, settings, wall)?.spec).toMatchObject({
      holderIdentity: '',
      leaseDurationSeconds: 1,
      acquireTime: stored.spec?.acquireTime,
      leaseTransitions: 0,
    })
    const other = policy.saw(led, leaseOf({ holderIdentity: 'other' }), 200, settings)
    expect(policy.released(other, settings, wall)).toBeUndefined()
    expect(policy.released(policy.initialElection, settings, wall)).toBeUndefined()
  })
})
