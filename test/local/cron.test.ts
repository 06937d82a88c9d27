import { describe, expect, it } from 'vitest'
import { type CronReport, cronJobs } from '../../shared/local/cron.ts'
import type { Ping } from '../../shared/local/manifests/manifests.ts'
import { virtualClock } from '../support/clock.ts'

const minuteMs = 60_000
const ping = (changes: Partial<Ping> = {}): Ping => ({
  namespace: 'mutantops',
  name: 'resync',
  schedule: '*/5 * * * *',
  timezone: 'UTC',
  contentType: 'application/json',
  data: '{"mode":"needed"}',
  extensions: {},
  sinkUrl: 'http://sink',
  ...changes,
})

/** Cron jobs in virtual time, from midnight; `answers` are the sink's, the last of which is repeated. */
function world(pings: Ping[], answers: number[] = [202]) {
  const clock = virtualClock()
  const sent: { atMs: number; headers: Record<string, string>; body: string }[] = []
  const reports: CronReport[] = []
  const jobs = cronJobs({
    pings,
    clock,
    report: (report) => reports.push(report),
    async post(_, init) {
      const body = await new Response(init.body ?? null).text()
      sent.push({ atMs: clock.monotonicMs(), headers: init.headers as Record<string, string>, body })
      const status = answers.length > 1 ? answers.shift() : answers[0]
      if (status === 0) throw new Error('refused')
      return new Response(null, { status: status ?? 202 })
    },
  })
  return { clock, sent, reports, jobs }
}

describe('cronJobs', () => {
  it('fires at each minute of the schedule, within half a second, with an event as Knative makes it', async () => {
    const w = world([ping()])
    await w.clock.advance(16 * minuteMs)
    expect(w.sent.map(({ atMs }) => Math.floor(atMs / minuteMs))).toEqual([5, 10, 15])
    for (const { atMs } of w.sent) expect(atMs % minuteMs).toBeLessThan(500)
    expect(w.sent[0]).toMatchObject({
      body: '{"mode":"needed"}',
      headers: {
        'ce-specversion': '1.0',
        'ce-type': 'dev.knative.sources.ping',
        'ce-source': '/apis/v1/namespaces/mutantops/pingsources/resync',
        'content-type': 'application/json',
      },
    })
    expect(new Set(w.sent.map(({ headers }) => headers['ce-id'])).size).toBe(3)
    await w.jobs.stop()
    expect(w.clock.sleepers()).toBe(0)
  })

  it('minds the timezone', async () => {
    const w = world([ping({ schedule: '30 5 * * *', timezone: 'Asia/Kolkata' })])
    expect(w.jobs.next()).toEqual([{ ping: 'resync', at: new Date('2026-01-02T00:00:00Z') }])
    await w.jobs.stop()
  })

  it('follows a wall clock that jumps ahead, without firing for what was jumped over', async () => {
    const w = world([ping()])
    await w.clock.advance(minuteMs)
    w.clock.jumpWallClock(60 * minuteMs)
    await w.clock.advance(minuteMs)
    expect(w.sent).toHaveLength(1)
    await w.jobs.stop()
  })

  it('tries five times more, quickly, and then says that the event is lost', async () => {
    const w = world([ping()], [0, 503])
    await w.clock.advance(6 * minuteMs)
    const [first = { atMs: 0 }] = w.sent
    expect(w.sent.map(({ atMs }) => Math.round(atMs - first.atMs))).toEqual([0, 50, 150, 350, 750, 1550])
    expect(w.reports).toEqual([{ kind: 'lost', ping: 'resync', reason: 'answer: 503' }])
    await w.jobs.stop()
  })

  it.each([
    [{ schedule: '* * *' }, /PingSource resync: schedule "\* \* \*"/],
    [{ timezone: 'Nowhere/Land' }, /PingSource resync: .*Nowhere\/Land/],
  ])('refuses %j', (changes, message) => {
    expect(() => world([ping(changes)])).toThrow(message)
  })
})
