import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { apiServer } from '../../shared/apiserver/server.ts'
import { events, type StoredObject } from '../../shared/kinds/object.ts'
import { cutToBytes } from '../../shared/kinds/text.ts'
import { kubeClient } from '../../shared/kube/client.ts'
import { faultyWire } from '../../shared/runtime/faulty-wire.ts'
import { type EventNote, eventObject, recorder } from '../../shared/runtime/recorder.ts'
import { virtualClock } from '../support/clock.ts'
import { silentLog } from './candidates.ts'

const note: EventNote = {
  regarding: { apiVersion: 'v1', kind: 'Pod', namespace: 'default', name: 'web-1', uid: 'u-1' },
  type: 'Warning',
  reason: 'Tested',
  action: 'Test',
  note: 'It was tested',
}
const clock = virtualClock()
const objectOf = (change: Partial<EventNote>) =>
  eventObject({ ...note, ...change }, { clock, controller: 'neiam.org/test', instance: 'one' })

describe('notes', () => {
  it('are cut to whole letters within the limit, and say that they were cut', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: 'binary', maxLength: 60 }),
        fc.integer({ min: 3, max: 40 }),
        (text, max) => {
          const cut = cutToBytes(text, max)
          expect(Buffer.byteLength(cut)).toBeLessThanOrEqual(max)
          expect(cut.isWellFormed()).toBe(true)
          if (cut !== text.toWellFormed()) {
            expect(cut.endsWith('…')).toBe(true)
            expect(text.toWellFormed().startsWith(cut.slice(0, -1))).toBe(true)
          }
        },
      ),
    )
  })
})

describe('names', () => {
  it('are the same for the same event, and differ by object, reason and note', () => {
    const name = (change: Partial<EventNote>) => objectOf(change).metadata.name
    expect(name({})).toBe(name({ action: 'Other', type: 'Normal' }))
    const other = { ...note.regarding, uid: 'u-2' }
    const names = [name({}), name({ reason: 'R' }), name({ note: 'n' }), name({ regarding: other })]
    expect(new Set([...names, name({ sameness: 's' })]).size).toBe(5)
    expect(name({ sameness: 's', note: 'a' })).toBe(name({ sameness: 's', note: 'b' }))
  })

  it.each([
    ['web-1', 'web-1'],
    ['a'.repeat(253), 'a'.repeat(236)],
    [`${'a'.repeat(233)}...${'b'.repeat(17)}`, 'a'.repeat(233)],
    ['a.b-c.d', 'a.b-c.d'],
  ])('begin with as much of the name as fits: %s', (name, start) => {
    const object = objectOf({ regarding: { ...note.regarding, name } })
    expect(object.metadata.name.slice(0, -17)).toBe(start)
    expect(object.metadata.name.slice(-17)).toMatch(/^\.[0-9a-f]{16}$/)
    expect(object).toMatchObject({ apiVersion: 'events.k8s.io/v1', kind: 'Event' })
  })

  it('are valid for every name of an object', () => {
    const label = fc.stringMatching(/^[a-z0-9]([-a-z0-9]{0,20}[a-z0-9])?$/)
    const names = fc
      .array(label, { minLength: 1, maxLength: 20 })
      .map((labels) => labels.join('.').slice(0, 253))
    fc.assert(
      fc.property(names, (text) => {
        const name = objectOf({
          regarding: { ...note.regarding, name: text.replace(/[-.]+$/, '') || 'a' },
        }).metadata.name
        expect(name).toMatch(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/)
        expect(name.length).toBeLessThanOrEqual(253)
      }),
    )
  })

  it('an event on an object without a namespace stands in default', () => {
    const { namespace: _, ...regarding } = note.regarding
    expect(objectOf({ regarding }).metadata.namespace).toBe('default')
  })
})

describe('repeats', () => {
  function world() {
    const time = virtualClock()
    const wire = faultyWire(apiServer({ clock: time }).transport(), time)
    const client = kubeClient({ transport: wire, clock: time, userAgent: 'test', retries: 0 })
    const lines: string[] = []
    const counts = { published: 0, failed: 0 }
    const { record } = recorder({
      client,
      clock: time,
      log: silentLog(lines),
      controller: 'neiam.org/test',
      instance: 'one',
      metrics: { published: () => counts.published++, failed: () => counts.failed++ },
    })
    const all = () => client.list<StoredObject>(events, { namespace: 'default' })
    return { time, wire, record, lines, counts, client, all }
  }

  it('fifty times the same is one event, counted at most every ten minutes', async () => {
    const { time, record, all, counts } = world()
    for (let minute = 0; minute < 50; minute++) {
      await record(note)
      await time.advance(60_000)
    }
    const { items } = await all()
    expect(items.length).toBe(1)
    expect(items[0]).toMatchObject({ series: { count: 5 } })
    expect(counts).toEqual({ published: 5, failed: 0 })
  })

  it('one that another process has just counted, or that is gone again, is skipped', async () => {
    const { time, wire, record, client, all } = world()
    await record(note)
    await time.advance(601_000)
    wire.fault = ({ method }) => (method === 'PUT' ? { status: 409 } : undefined)
    expect(await record(note)).toBe('skipped')
    wire.fault = () => undefined
    const [event] = (await all()).items
    const under = wire.fetch
    wire.fetch = async (url, init) => {
      const answer = await under(url, init)
      if (init.method === 'POST')
        await client.delete(events, { namespace: 'default', name: event?.metadata.name ?? '' })
      return answer
    }
    expect(await record(note)).toBe('skipped')
  })

  it('a write that fails is counted and logged, and the caller goes on', async () => {
    const { wire, record, counts, lines } = world()
    wire.fault = () => ({ status: 500 })
    expect(await record(note)).toBe('failed')
    expect(counts).toEqual({ published: 0, failed: 1 })
    expect(lines.length).toBe(1)
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({
      msg: 'Kubernetes Event not written',
      reason: 'Tested',
      err: { code: 500 },
    })
  })

  it('each outcome has its word, and exactly ten minutes are enough for a repeat', async () => {
    const { time, record } = world()
    expect(await record(note)).toBe('written')
    await time.advance(600_000 - 1)
    expect(await record(note)).toBe('skipped')
    await time.advance(1)
    expect(await record(note)).toBe('repeated')
  })

  it('needs no metrics', async () => {
    const { client, time, wire } = world()
    const { record } = recorder({
      client,
      clock: time,
      log: silentLog(),
      controller: 'neiam.org/test',
      instance: 'one',
    })
    expect(await record(note)).toBe('written')
    wire.fault = () => ({ status: 500 })
    expect(await record({ ...note, note: 'other' })).toBe('failed')
  })
})
