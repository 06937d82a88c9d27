import { describe, expect, it } from 'vitest'
import { leadershipChanges, untilLeader } from '../../shared/runtime/leadership.ts'
import { microTime } from '../../shared/runtime/lease.ts'
import { settle, virtualClock } from '../support/clock.ts'
import { candidate, silentLog, timing } from './candidates.ts'
import { leaseWire } from './lease-wire.ts'

function world(seed = 1) {
  const clock = virtualClock({ seed })
  return { clock, wire: leaseWire(clock) }
}

describe('one process alone', () => {
  it('create: a Lease that does not exist is made with PUT, and its maker leads', async () => {
    const { clock, wire } = world()
    const a = candidate(clock, wire, 'a')
    await clock.advance(0)
    expect(a.elector.isLeader()).toBe(true)
    expect(wire.lease()?.spec).toEqual({
      holderIdentity: 'a',
      leaseDurationSeconds: 15,
      acquireTime: '2026-01-01T00:00:00.000000Z',
      renewTime: '2026-01-01T00:00:00.000000Z',
      leaseTransitions: 0,
    })
    expect(wire.requests.map(({ method, status }) => `${method} ${status}`)).toEqual(['GET 404', 'PUT 201'])
  })

  it('renew: keeps the Lease for an hour, with six digits, each time later, and at most one write per 1.6 s', async () => {
    const { clock, wire } = world()
    const a = candidate(clock, wire, 'a')
    const times: string[] = []
    for (let second = 0; second < 3600; second++) {
      await clock.advance(1000)
      expect(a.elector.isLeader()).toBe(true)
      times.push(wire.lease()?.spec?.renewTime ?? '')
    }
    for (const time of times) expect(time).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/)
    expect(times).toEqual(times.toSorted())
    expect(wire.requests.filter(({ method }) => method === 'PUT').length).toBeLessThan(3600 / 1.6)
    expect(a.counts).toEqual({ acquired: 1, lost: 0, error: 0, conflict: 0 })
  })

  it('renew keeps labels, annotations and fields of others as they are', async () => {
    const { clock, wire } = world()
    candidate(clock, wire, 'a')
    await clock.advance(0)
    wire.edit((lease) => ({
      ...lease,
      metadata: { ...lease.metadata, labels: { team: 'x' }, annotations: { why: 'y' } },
      spec: { ...lease.spec, strategy: 'OldestEmulationVersion', acquireTime: lease.spec?.acquireTime ?? '' },
    }))
    await clock.advance(10_000)
    expect(wire.lease()).toMatchObject({
      metadata: { labels: { team: 'x' }, annotations: { why: 'y' } },
      spec: { holderIdentity: 'a', strategy: 'OldestEmulationVersion' },
    })
    expect(wire.lease()?.spec?.acquireTime).toBe('2026-01-01T00:00:00.000000Z')
  })

  it('a Lease that somebody annotates between two renewals costs no leadership', async () => {
    const { clock, wire } = world()
    const a = candidate(clock, wire, 'a')
    for (let round = 0; round < 50; round++) {
      await clock.advance(777)
      wire.edit((lease) => ({
        ...lease,
        metadata: { ...lease.metadata, annotations: { round: `${round}` } },
      }))
    }
    expect(a.counts.lost).toBe(0)
  })
})

it('who waits says once whom it waits for, and again when that is another', async () => {
  const { clock, wire } = world()
  candidate(clock, wire, 'a')
  await clock.advance(0)
  const lines: string[] = []
  candidate(clock, wire, 'b', { log: silentLog(lines) })
  await clock.advance(30_000)
  wire.edit((lease) => ({ ...lease, spec: { ...lease.spec, holderIdentity: 'c' } }))
  await clock.advance(5_000)
  const waits = lines.map((line) => JSON.parse(line)).filter(({ msg }) => msg === 'another holds the lease')
  expect(waits.map(({ lease, holder }) => `${lease} ${holder}`)).toEqual(['test/work a', 'test/work c'])
})

describe('when belief ends', () => {
  it('the API hangs: at the deadline, counted from when the last good write was sent', async () => {
    const { clock, wire } = world()
    const a = candidate(clock, wire, 'a')
    a.trouble = { thereMs: 100, backMs: 900 }
    await clock.advance(3000)
    expect(a.elector.isLeader()).toBe(true)
    const lastSentMs = Math.max(
      ...wire.requests.filter(({ method }) => method === 'PUT').map(({ atMs }) => atMs - 100),
    )
    a.trouble = { lost: 'there' }
    await clock.advance(lastSentMs + 9_999 - clock.monotonicMs())
    expect(a.elector.isLeader()).toBe(true)
    await clock.advance(1)
    expect(a.elector.isLeader()).toBe(false)
    expect(a.counts.lost).toBe(1)
  })

  it('the answers get lost: belief is not prolonged by writes that nobody confirmed', async () => {
    const { clock, wire } = world()
    const a = candidate(clock, wire, 'a')
    await clock.advance(0)
    a.trouble = { lost: 'back' }
    await clock.advance(10_000)
    expect(a.elector.isLeader()).toBe(false)
  })

  it('its timers are starved: isLeader() says no all the same', async () => {
    const { clock, wire } = world()
    let frozenMs: number | undefined
    const starved = { ...clock, monotonicMs: () => frozenMs ?? clock.monotonicMs() }
    const a = candidate(starved, wire, 'a')
    await clock.advance(0)
    expect(a.elector.isLeader()).toBe(true)
    // Time has gone on, and not one timer has been served.
    frozenMs = 10_000
    expect(a.elector.isLeader()).toBe(false)
  })

  it('the elector dies: at the deadline, and its subscribers are told', async () => {
    const { clock, wire } = world()
    const a = candidate(clock, wire, 'a')
    const told: boolean[] = []
    a.elector.subscribe(({ leading }) => told.push(leading))
    await clock.advance(0)
    a.kill()
    await clock.advance(9_999)
    expect(told).toEqual([true])
    await clock.advance(1)
    expect(told).toEqual([true, false])
    expect(a.elector.isLeader()).toBe(false)
  })

  it('another holder: at once', async () => {
    const { clock, wire } = world()
    const a = candidate(clock, wire, 'a')
    await clock.advance(0)
    wire.edit((lease) => ({ ...lease, spec: { ...lease.spec, holderIdentity: 'intruder' } }))
    await clock.advance(2000)
    expect(a.elector.isLeader()).toBe(false)
    expect(a.counts.error).toBe(0)
  })

  it('a conflict on the write: at once, counted as a conflict and not as an error', async () => {
    const { clock, wire } = world()
    const a = candidate(clock, wire, 'a')
    await clock.advance(0)
    const told: boolean[] = []
    a.elector.subscribe(({ leading }) => told.push(leading))
    a.trouble = {
      beforeWrite: () => {
        a.trouble = {}
        wire.edit((lease) => ({ ...lease, metadata: { ...lease.metadata, labels: { touched: 'yes' } } }))
      },
    }
    await clock.advance(1_900)
    expect(wire.requests.at(-1)).toMatchObject({ method: 'PUT', status: 409 })
    expect(told).toEqual([true, false])
    expect(a.counts).toMatchObject({ lost: 1, conflict: 1, error: 0 })
    await clock.advance(200)
    expect(told).toEqual([true, false, true])
  })

  it('the Lease is deleted: at once, and it is made again without a second leader', async () => {
    const { clock, wire } = world()
    const [a, b] = [candidate(clock, wire, 'a'), candidate(clock, wire, 'b')]
    await clock.advance(5000)
    wire.edit(() => undefined)
    for (let step = 0; step < 200; step++) {
      await clock.advance(100)
      expect([a, b].filter((c) => c.elector.isLeader()).length).toBeLessThan(2)
    }
    expect(a.elector.isLeader()).toBe(true)
    expect(wire.lease()?.spec?.holderIdentity).toBe('a')
  })
})

describe('taking over', () => {
  it('a dead holder: after the duration on our own clock, not before and at most one retry later', async () => {
    for (const seed of [1, 2, 3, 4, 5]) {
      const { clock, wire } = world(seed)
      const a = candidate(clock, wire, 'a')
      await clock.advance(0)
      const b = candidate(clock, wire, 'b')
      await clock.advance(7_000)
      a.kill()
      const lastMs = Math.max(
        ...wire.requests.filter(({ method }) => method === 'PUT').map(({ atMs }) => atMs),
      )
      await clock.advance(lastMs + 14_999 - clock.monotonicMs())
      expect(b.elector.isLeader()).toBe(false)
      await clock.advance(2_001)
      expect(b.elector.isLeader()).toBe(true)
      expect(wire.lease()?.spec).toMatchObject({ holderIdentity: 'b', leaseTransitions: 1 })
    }
  })

  it.each([
    ['an hour ago by its own clock', -3600_000],
    ['with a clock one day ahead', 24 * 3600_000],
  ])('a holder that died %s is waited for one duration, on our clock', async (_, offsetMs) => {
    const { clock, wire } = world()
    const first = candidate(clock, wire, 'dead')
    await clock.advance(0)
    first.kill()
    wire.edit((lease) => ({
      ...lease,
      spec: { ...lease.spec, renewTime: microTime(new Date(clock.now().getTime() + offsetMs)) },
    }))
    const b = candidate(clock, wire, 'b')
    await clock.advance(14_999)
    expect(b.elector.isLeader()).toBe(false)
    await clock.advance(2_001)
    expect(b.elector.isLeader()).toBe(true)
  })

  it('our own wall clock may jump as it likes', async () => {
    const { clock, wire } = world()
    const [a, b] = [candidate(clock, wire, 'a'), candidate(clock, wire, 'b')]
    for (let hour = 0; hour < 10; hour++) {
      clock.jumpWallClock(hour % 2 === 0 ? -86_400_000 : 7 * 86_400_000)
      await clock.advance(30_000)
    }
    expect(a.elector.isLeader()).toBe(true)
    expect(b.counts.acquired).toBe(0)
    expect(a.counts).toEqual({ acquired: 1, lost: 0, error: 0, conflict: 0 })
  })

  it('a wall clock that stands still does not make a living holder look dead', async () => {
    const { clock, wire } = world()
    const still = { ...clock, now: () => new Date('2026-01-01T00:00:00Z') }
    const a = candidate(still, wire, 'a')
    const b = candidate(clock, wire, 'b')
    await clock.advance(300_000)
    expect(a.elector.isLeader()).toBe(true)
    expect(b.counts.acquired).toBe(0)
  })

  it('two processes with one and the same identity never lead together', async () => {
    const { clock, wire } = world()
    const a = candidate(clock, wire, 'twin')
    await clock.advance(500)
    const b = candidate(clock, wire, 'twin')
    for (let step = 0; step < 600; step++) {
      await clock.advance(100)
      expect([a, b].filter((c) => c.elector.isLeader()).length).toBe(1)
    }
    a.kill()
    await clock.advance(17_000)
    expect(b.elector.isLeader()).toBe(true)
  })
})

describe('after trouble', () => {
  it('an outage of 90 s: one leader within one duration and one retry, logged once, and no restart', async () => {
    const { clock, wire } = world()
    const [a, b] = [candidate(clock, wire, 'a'), candidate(clock, wire, 'b')]
    await clock.advance(5_000)
    a.trouble = b.trouble = { status: 503 }
    await clock.advance(90_000)
    expect([a, b].some((c) => c.elector.isLeader())).toBe(false)
    expect(a.elector.state()).toEqual({ leading: false, holder: 'a', reachable: false })
    a.trouble = b.trouble = {}
    await clock.advance(17_000)
    expect([a, b].filter((c) => c.elector.isLeader()).length).toBe(1)
    expect(a.counts.error).toBeGreaterThan(10)
  })

  it('a write whose answer was lost is recognised as our own, and we lead', async () => {
    const { clock, wire } = world()
    const a = candidate(clock, wire, 'a')
    a.trouble = { lost: 'back' }
    await clock.advance(3_000)
    a.trouble = {}
    await clock.advance(7_000)
    expect(a.elector.isLeader()).toBe(true)
  })
})

describe('what is said', () => {
  const said = (lines: string[]) =>
    lines.map((line) => {
      const { msg, lease, identity } = JSON.parse(line)
      return [msg, lease, identity].filter(Boolean).join(' ')
    })

  it('each term and each outage, once', async () => {
    const { clock, wire } = world()
    const lines: string[] = []
    const a = candidate(clock, wire, 'a', { log: silentLog(lines) })
    expect(a.elector.state().reachable).toBe(false)
    await clock.advance(5_000)
    expect(a.elector.state()).toEqual({ leading: true, holder: 'a', reachable: true })
    for (let outage = 0; outage < 2; outage++) {
      a.trouble = { status: 500 }
      await clock.advance(20_000)
      expect(a.elector.state().reachable).toBe(false)
      a.trouble = {}
      await clock.advance(20_000)
    }
    const outage = [
      'cannot campaign for the lease work',
      'no longer leading work a',
      'leading work a',
      'campaigning for the lease again work',
    ]
    expect(said(lines)).toEqual(['leading work a', ...outage, ...outage])
  })

  it('nothing of the requests that a stop breaks off', async () => {
    const { clock, wire } = world()
    const lines: string[] = []
    const a = candidate(clock, wire, 'a', { log: silentLog(lines) })
    a.trouble = { lost: 'there' }
    await clock.advance(1_000)
    a.trouble = {}
    const stopped = a.elector.stop()
    await clock.advance(0)
    await stopped
    expect(said(lines)).toEqual([])
    expect(a.counts.error).toBe(0)
  })

  it('metrics are not needed', async () => {
    const { clock, wire } = world()
    const a = candidate(clock, wire, 'a', { metrics: undefined })
    const b = candidate(clock, wire, 'b', { metrics: undefined })
    await clock.advance(5_000)
    a.trouble = { status: 500 }
    await clock.advance(40_000)
    expect([a.elector.isLeader(), b.elector.isLeader()]).toEqual([false, true])
  })
})

describe('a lost race', () => {
  it('for a free Lease is run again after a retry period, not at once', async () => {
    const { clock, wire } = world()
    const a = candidate(clock, wire, 'a')
    await clock.advance(0)
    const stopped = a.elector.stop()
    await clock.advance(0)
    await stopped
    const b = candidate(clock, wire, 'b')
    b.trouble = { beforeWrite: () => wire.edit((lease) => lease) }
    await clock.advance(16_000)
    expect(b.counts.conflict).toBeGreaterThanOrEqual(8)
    expect(b.counts.conflict).toBeLessThanOrEqual(11)
    expect(b.counts).toMatchObject({ acquired: 0, error: 0 })
  })
})

describe('release', () => {
  it('is tried three times when somebody writes at each moment, then left, and said so', async () => {
    for (const [writes, holder, tries] of [
      [2, '', 3],
      [9, 'a', 3],
    ] as const) {
      const { clock, wire } = world()
      const lines: string[] = []
      const a = candidate(clock, wire, 'a', { log: silentLog(lines) })
      await clock.advance(1_000)
      let left: number = writes
      const before = wire.requests.length
      a.trouble = {
        beforeWrite: () => {
          if (left-- > 0) wire.edit((lease) => lease)
        },
      }
      const stopped = a.elector.stop()
      await clock.advance(0)
      await stopped
      expect(wire.lease()?.spec?.holderIdentity).toBe(holder)
      expect(wire.requests.slice(before).filter(({ method }) => method === 'PUT').length).toBe(tries)
      const warnings = lines.filter((line) => line.includes('lease not released'))
      expect(warnings.length).toBe(holder === '' ? 0 : 1)
      if (warnings[0]) expect(JSON.parse(warnings[0])).toMatchObject({ lease: 'work', level: 'warn' })
    }
  })

  it('asks nothing of the API when this process never tried to lead', async () => {
    const { clock, wire } = world()
    const a = candidate(clock, wire, 'a', { mayCampaign: () => false })
    await clock.advance(5_000)
    const before = wire.requests.length
    const stopped = a.elector.stop()
    await clock.advance(0)
    await stopped
    expect(wire.requests.length).toBe(before)
  })

  it('at shutdown the Lease is emptied, and the next leads within one retry', async () => {
    const { clock, wire } = world()
    const a = candidate(clock, wire, 'a')
    await clock.advance(0)
    const b = candidate(clock, wire, 'b')
    await clock.advance(5_000)
    const stopped = a.elector.stop()
    await clock.advance(0)
    await stopped
    expect(a.elector.isLeader()).toBe(false)
    expect(wire.lease()?.spec).toMatchObject({ holderIdentity: '', leaseDurationSeconds: 1 })
    await clock.advance(2_000)
    expect(b.elector.isLeader()).toBe(true)
  })

  it('comes through although somebody annotated the Lease just now', async () => {
    const { clock, wire } = world()
    const a = candidate(clock, wire, 'a')
    await clock.advance(1_000)
    wire.edit((lease) => ({ ...lease, metadata: { ...lease.metadata, annotations: { a: 'b' } } }))
    const stopped = a.elector.stop()
    await clock.advance(0)
    await stopped
    expect(wire.lease()?.spec?.holderIdentity).toBe('')
    expect(wire.lease()?.metadata?.annotations).toEqual({ a: 'b' })
  })

  it('never touches the Lease of another holder, nor one when this process had not won', async () => {
    const { clock, wire } = world()
    const a = candidate(clock, wire, 'a')
    await clock.advance(0)
    const b = candidate(clock, wire, 'b')
    await clock.advance(5_000)
    const stopped = b.elector.stop()
    await clock.advance(0)
    await stopped
    expect(wire.lease()?.spec?.holderIdentity).toBe('a')
    wire.edit((lease) => ({ ...lease, spec: { ...lease.spec, holderIdentity: 'c' } }))
    const alsoStopped = a.elector.stop()
    await clock.advance(0)
    await alsoStopped
    expect(wire.lease()?.spec?.holderIdentity).toBe('c')
  })

  it.each([
    ['releaseOnShutdown is off', { releaseOnShutdown: false }, {}],
    ['work may still be going on', {}, { release: false }],
  ])('the Lease is left to expire when %s', async (_, options, stop) => {
    const { clock, wire } = world()
    const a = candidate(clock, wire, 'a', options)
    await clock.advance(0)
    const stopped = a.elector.stop(stop)
    await clock.advance(0)
    await stopped
    expect(a.elector.isLeader()).toBe(false)
    expect(wire.lease()?.spec?.holderIdentity).toBe('a')
  })

  it('gives up after 2 s when the API hangs, and says so; a second stop is the same stop', async () => {
    const { clock, wire } = world()
    const lines: string[] = []
    const a = candidate(clock, wire, 'a', { log: silentLog(lines) })
    await clock.advance(0)
    a.trouble = { lost: 'there' }
    const stopped = a.elector.stop()
    expect(a.elector.stop()).toBe(stopped)
    await clock.advance(2_000)
    await stopped
    expect(a.elector.isLeader()).toBe(false)
    expect(lines.at(-1)).toContain('Releasing the Lease took longer than 2000 ms')
  })
})

describe('the handle', () => {
  it('a listener that throws is logged, and the others hear', async () => {
    const { clock, wire } = world()
    const lines: string[] = []
    const a = candidate(clock, wire, 'a', { log: silentLog(lines) })
    const heard: boolean[] = []
    a.elector.subscribe(() => {
      throw new Error('broken listener')
    })
    const unsubscribe = a.elector.subscribe(({ leading }) => heard.push(leading))
    await clock.advance(0)
    expect(heard).toEqual([true])
    expect(lines.filter((line) => line.includes('broken listener')).length).toBe(1)
    unsubscribe()
    a.trouble = { status: 500 }
    await clock.advance(20_000)
    expect(heard).toEqual([true])
  })

  it('whoever subscribes while it leads is told at once', async () => {
    const { clock, wire } = world()
    const a = candidate(clock, wire, 'a')
    await clock.advance(1_000)
    const told: unknown[] = []
    a.elector.subscribe((change) => told.push(change))
    expect(told).toEqual([{ leading: true, atMs: 1_000 }])
    a.trouble = { status: 500 }
    await clock.advance(20_000)
    expect(told.length).toBe(2)
    const late: unknown[] = []
    a.elector.subscribe((change) => late.push(change))
    expect(late).toEqual([])
  })

  it('waits for leadership, and tells its changes as a stream', async () => {
    const { clock, wire } = world()
    const a = candidate(clock, wire, 'a')
    const waited = untilLeader(a.elector)
    const ended = new AbortController()
    const seen: boolean[] = []
    const reading = (async () => {
      for await (const leading of leadershipChanges(a.elector, ended.signal)) seen.push(leading)
    })()
    await clock.advance(0)
    await waited
    await settle()
    a.trouble = { status: 500 }
    await clock.advance(10_000)
    a.trouble = {}
    await clock.advance(2_000)
    expect(seen).toEqual([false, true, false, true])
    ended.abort()
    await reading
  })

  it('a wait ends with the reason of its signal', async () => {
    const { clock, wire } = world()
    candidate(clock, wire, 'a')
    await clock.advance(0)
    const b = candidate(clock, wire, 'b')
    const giveUp = new AbortController()
    const waited = untilLeader(b.elector, giveUp.signal)
    giveUp.abort(new Error('enough'))
    await expect(waited).rejects.toThrow('enough')
    await expect(untilLeader(b.elector, giveUp.signal)).rejects.toThrow('enough')
  })

  it('refuses times and names that cannot work, and says which', () => {
    const { clock, wire } = world()
    const wrong = { leaseDurationSeconds: 10, leaseName: '', identity: '' }
    expect(() => candidate(clock, wire, 'a', wrong)).toThrow(
      'Cannot elect a leader: leaseDurationSeconds must be greater than renewDeadlineSeconds; leaseName must not be empty; identity must not be empty',
    )
    expect(timing.leaseDurationSeconds).toBe(15)
  })

  it('a process that may not campaign never takes the Lease, keeps the one that it holds, and once lost lets it go', async () => {
    const { clock, wire } = world()
    let may = false
    const a = candidate(clock, wire, 'a', { mayCampaign: () => may })
    await clock.advance(20_000)
    expect(a.elector.isLeader()).toBe(false)
    may = true
    await clock.advance(2_000)
    expect(a.elector.isLeader()).toBe(true)
    may = false
    await clock.advance(60_000)
    expect(a.elector.isLeader()).toBe(true)
    a.trouble = { status: 500 }
    await clock.advance(12_000)
    a.trouble = {}
    await clock.advance(12_000)
    expect(a.elector.isLeader()).toBe(false)
  })
})
