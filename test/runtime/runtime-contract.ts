import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../shared/clock.ts'
import { configMaps, events, leases, namespaces, type StoredObject } from '../../shared/kinds/object.ts'
import type { KubeClient } from '../../shared/kube/client.ts'
import { configMapStore } from '../../shared/runtime/config-maps.ts'
import { type Elector, elector } from '../../shared/runtime/elector.ts'
import type { Lease } from '../../shared/runtime/lease.ts'
import { recorder } from '../../shared/runtime/recorder.ts'
import { eventually } from '../support/eventually.ts'
import { silentLog } from './candidates.ts'

/** An API to run the runtime's parts on. */
export interface RuntimeApi {
  /** The administrator's. */
  client(): KubeClient
  newNamespace(): Promise<string>
  /** A client that may not list or watch ConfigMaps in a namespace before `allow` is called. */
  deniedConfigMaps(namespace: string): Promise<{ client: KubeClient; allow(): Promise<void> }>
}

const timing = { leaseDurationSeconds: 5, renewDeadlineSeconds: 3, retryPeriodSeconds: 0.3 }
const sixDigits = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/

/** What the runtime relies on, in real time; the same on the embedded API and on a real one. */
export function runtimeContract(name: string, api: RuntimeApi): void {
  describe(`the runtime on ${name}`, () => {
    let namespace: string
    let stop: AbortController
    beforeEach(async () => {
      namespace = await api.newNamespace()
      stop = new AbortController()
    })
    afterEach(() => stop.abort())

    const lease = () => api.client().get<Lease & StoredObject>(leases, { namespace, name: 'work' })
    function candidate(identity: string): Elector {
      const options = { namespace, leaseName: 'work', identity, ...timing }
      const made = elector({ client: api.client(), clock: systemClock, log: silentLog(), ...options })
      made.run(stop.signal).catch(() => {})
      return made
    }
    const leads = (one: Elector) => eventually(() => expect(one.isLeader()).toBe(true))
    const configMap = (data: Record<string, string>, more = {}) => ({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'settings', namespace },
      data,
      ...more,
    })

    describe('elections', () => {
      it('AC4: create, renew with six fraction digits, release, take over at once', async () => {
        const a = candidate('a')
        await leads(a)
        const made = (await lease())?.spec
        expect(made).toMatchObject({ holderIdentity: 'a', leaseDurationSeconds: 5, leaseTransitions: 0 })
        expect(made?.acquireTime).toMatch(sixDigits)
        const b = candidate('b')
        await eventually(async () => {
          const renewed = (await lease())?.spec
          expect(renewed?.renewTime).not.toBe(made?.renewTime)
          expect(renewed?.renewTime).toMatch(sixDigits)
          expect(renewed?.acquireTime).toBe(made?.acquireTime)
        })
        expect(b.isLeader()).toBe(false)
        await a.stop()
        await leads(b)
        expect((await lease())?.spec).toMatchObject({ holderIdentity: 'b', leaseTransitions: 1 })
        expect(a.isLeader()).toBe(false)
      })

      it('AC5: of three that start together one leads, and the races they lose are no errors', async () => {
        const errors = { count: 0 }
        const all = ['a', 'b', 'c'].map((identity) => {
          const options = { namespace, leaseName: 'work', identity, ...timing }
          const metrics = { acquired() {}, lost() {}, conflict() {}, error: () => errors.count++ }
          const client = api.client()
          const made = elector({ client, clock: systemClock, log: silentLog(), metrics, ...options })
          made.run(stop.signal).catch(() => {})
          return made
        })
        await eventually(() => expect(all.some((one) => one.isLeader())).toBe(true))
        const untilMs = systemClock.monotonicMs() + 1_500
        while (systemClock.monotonicMs() < untilMs) {
          expect(all.filter((one) => one.isLeader()).length).toBe(1)
          await systemClock.sleep(20)
        }
        expect(errors.count).toBe(0)
      })

      it('case 40: a renewal leaves the fields of a Go client as they were, byte for byte', async () => {
        const a = candidate('a')
        await leads(a)
        const before = await eventually(async () => {
          const live = await lease()
          if (!live) throw new Error('There is no Lease')
          return api.client().replace<Lease & StoredObject>(leases, {
            ...live,
            metadata: { ...live.metadata, annotations: { note: 'ours' }, labels: { team: 'x' } },
            spec: { ...live.spec, renewTime: '2026-01-02T03:04:05.123456Z' },
          })
        })
        const after = await eventually(async () => {
          const live = await lease()
          expect(live?.spec?.renewTime).not.toBe(before.spec?.renewTime)
          return live
        })
        expect({ ...after?.spec, renewTime: '' }).toEqual({ ...before.spec, renewTime: '' })
        expect(after?.metadata.annotations).toEqual({ note: 'ours' })
        expect(after?.metadata.labels).toEqual({ team: 'x' })
      })

      it('case 40: a time with three fraction digits is refused', async () => {
        await leads(candidate('a'))
        const live = await lease()
        const short = { ...live, spec: { ...live?.spec, renewTime: '2026-01-02T03:04:05.123Z' } }
        await expect(api.client().replace(leases, short)).rejects.toMatchObject({ code: 400 })
      })

      it('case 45: the Lease is released although somebody annotated it just now', async () => {
        const a = candidate('a')
        await leads(a)
        const annotate = { op: 'add' as const, path: '/metadata/annotations', value: { a: 'b' } }
        await api.client().patchJson(leases, { namespace, name: 'work' }, [annotate])
        await a.stop()
        const released = await lease()
        expect(released?.spec).toMatchObject({ holderIdentity: '', leaseDurationSeconds: 1 })
        expect(released?.metadata.annotations).toEqual({ a: 'b' })
      })

      it('case 43: the Lease is deleted: one leads again, never two', async () => {
        const both = [candidate('a'), candidate('b')]
        const leading = () => both.filter((one) => one.isLeader()).length
        await eventually(() => expect(leading()).toBe(1))
        await api.client().delete(leases, { namespace, name: 'work' })
        await eventually(async () => {
          expect(leading()).toBeLessThan(2)
          expect((await lease())?.spec?.holderIdentity).toMatch(/^[ab]$/)
          expect(leading()).toBe(1)
        })
      })

      it('case 43: the whole namespace is deleted and made anew: none leads, then one, never two', async () => {
        const both = [candidate('a'), candidate('b')]
        const leading = () => both.filter((one) => one.isLeader()).length
        const becomes = (count: number, check: () => Promise<unknown>) =>
          eventually(async () => {
            expect(leading()).toBeLessThan(2)
            await check()
            expect(leading()).toBe(count)
          }, 30_000)
        await becomes(1, lease)
        await api.client().delete(namespaces, { name: namespace })
        await becomes(0, async () =>
          expect(await api.client().get(namespaces, { name: namespace })).toBeUndefined(),
        )
        // Once the holder's time is over, too, both try to make the Lease, and cannot.
        await eventually(() => expect(both.map((one) => one.state().reachable)).toEqual([false, false]))
        expect(leading()).toBe(0)
        const metadata = { name: namespace }
        await api.client().create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata })
        await becomes(1, lease)
        expect(both.map((one) => one.state().leading).filter(Boolean).length).toBe(1)
      }, 90_000)

      it('the Lease of a holder that is gone is taken after its own duration, on our clock', async () => {
        const spec = {
          holderIdentity: 'gone',
          leaseDurationSeconds: 1,
          renewTime: '2030-01-01T00:00:00.000000Z',
        }
        const metadata = { name: 'work', namespace }
        const object = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata, spec }
        await api.client().create(leases, object)
        const startMs = systemClock.monotonicMs()
        const a = candidate('a')
        await leads(a)
        const tookMs = systemClock.monotonicMs() - startMs
        expect(tookMs).toBeGreaterThanOrEqual(1_000)
        expect(tookMs).toBeLessThan(1_000 + 300 + 1_000)
        await a.stop()
      })
    })

    describe('ConfigMaps', () => {
      function store(client = api.client(), names = ['settings']) {
        const counts = { updates: 0, errors: 0 }
        const lines: string[] = []
        const made = configMapStore({
          client,
          clock: systemClock,
          log: silentLog(lines),
          namespace,
          names,
          metrics: () => ({ update: () => counts.updates++, error: () => counts.errors++ }),
        })
        made.run(stop.signal).catch(() => {})
        return { ...made, counts, lines }
      }

      it('AC7: missing, made, changed, deleted and made anew: the store knows within moments', async () => {
        const live = store()
        const changes: string[] = []
        live.subscribe((changed) => changes.push(changed))
        await eventually(() => expect(live.states()).toEqual({ settings: 'missing' }))
        expect(live.isSynced()).toBe(true)
        await api.client().create(configMaps, configMap({ color: 'red' }))
        await eventually(() => expect(live.value('settings', 'color')).toBe('red'))
        const current = await api.client().get(configMaps, { namespace, name: 'settings' })
        const binaryData = { logo: Buffer.from([0, 255]).toString('base64') }
        await api.client().replace(configMaps, { ...current, data: { color: 'blue' }, binaryData })
        await eventually(() => expect(live.value('settings', 'color')).toBe('blue'))
        expect(live.get('settings')?.binaryData.logo).toEqual(Buffer.from([0, 255]))
        await api.client().delete(configMaps, { namespace, name: 'settings' })
        await eventually(() => expect(live.states()).toEqual({ settings: 'missing' }))
        expect(live.value('settings', 'color')).toBeUndefined()
        await api.client().create(configMaps, configMap({ color: 'green' }))
        await eventually(() => expect(live.value('settings', 'color')).toBe('green'))
        expect(new Set(changes)).toEqual(new Set(['settings']))
        expect(live.counts).toEqual({ updates: 5, errors: 0 })
      })

      it('AC7: other ConfigMaps of the namespace do not touch it', async () => {
        await api.client().create(configMaps, configMap({ color: 'red' }))
        const other = configMap({ color: 'black' })
        const live = store()
        await eventually(() => expect(live.value('settings', 'color')).toBe('red'))
        await api.client().create(configMaps, { ...other, metadata: { name: 'another', namespace } })
        const again = await api.client().get(configMaps, { namespace, name: 'settings' })
        await api.client().replace(configMaps, { ...again, data: { color: 'blue' } })
        await eventually(() => expect(live.value('settings', 'color')).toBe('blue'))
        expect(live.states()).toEqual({ settings: 'present' })
        expect(live.counts.updates).toBe(2)
      })

      it('AC7: a watch that is denied is counted, warned of once, and works when it is allowed', async () => {
        await api.client().create(configMaps, configMap({ color: 'red' }))
        const { client, allow } = await api.deniedConfigMaps(namespace)
        const live = store(client)
        await eventually(() => expect(live.counts.errors).toBeGreaterThan(0))
        expect(live.isSynced()).toBe(false)
        await allow()
        await eventually(() => expect(live.value('settings', 'color')).toBe('red'), 15_000)
        const warnings = live.lines.filter((line) => line.includes('cannot watch the ConfigMap'))
        expect(warnings.length).toBe(1)
        expect(warnings[0]).toContain('list and watch on configmaps with resourceNames [settings]')
      }, 30_000)
    })

    describe('Kubernetes Events', () => {
      const note = {
        type: 'Warning' as const,
        reason: 'Tested',
        action: 'Test',
        note: 'It was tested',
      }
      const eventsOf = async () => (await api.client().list<StoredObject>(events, { namespace })).items
      const options = () => ({
        client: api.client(),
        clock: systemClock,
        log: silentLog(),
        controller: 'neiam.org/test',
        instance: 'one',
      })
      const regarding = (object: string) => ({
        apiVersion: 'v1',
        kind: 'Pod',
        namespace,
        name: object,
        uid: '11111111-2222-3333-4444-555555555555',
      })

      it('AC8: one is written as the API wants it', async () => {
        expect(await recorder(options()).record({ ...note, regarding: regarding('web-1') })).toBe('written')
        const [event] = await eventsOf()
        expect(event).toMatchObject({
          regarding: { kind: 'Pod', name: 'web-1', namespace },
          type: 'Warning',
          reason: 'Tested',
          action: 'Test',
          note: 'It was tested',
          reportingController: 'neiam.org/test',
          reportingInstance: 'one',
        })
        expect(event?.eventTime).toMatch(sixDigits)
      })

      it('case 48: the same again within ten minutes writes nothing; after them it is a series', async () => {
        let aheadMs = 0
        const clock = {
          ...systemClock,
          now: () => new Date(systemClock.now().getTime() + aheadMs),
        }
        const { record } = recorder({ ...options(), clock })
        const event = { ...note, regarding: regarding('web-1') }
        expect(await record(event)).toBe('written')
        expect(await record(event)).toBe('skipped')
        for (const count of [2, 3]) {
          aheadMs += 11 * 60_000
          expect(await record(event)).toBe('repeated')
          expect(await eventsOf()).toMatchObject([{ series: { count } }])
        }
        expect(await record(event)).toBe('skipped')
      })

      it.each([
        ['a long note of two-byte letters', { note: 'ä'.repeat(5_000) }],
        ['a long note of four-byte letters', { note: `x${'😀'.repeat(2_000)}` }],
        ['half a letter', { note: 'broken \ud83d' }],
        ['a reason with spaces and over the limit', { reason: 'so many words '.repeat(20) }],
        ['an empty note', { note: '' }],
      ])('case 48: %s is taken by the API', async (_, change) => {
        expect(await recorder(options()).record({ ...note, ...change, regarding: regarding('web-1') })).toBe(
          'written',
        )
      })

      it.each([
        ['of 253 letters', 'a'.repeat(253)],
        ['with dots at the place of the cut', `${'a'.repeat(230)}${'.b'.repeat(11)}`],
      ])('case 48: the name of an event on an object %s is valid', async (_, object) => {
        expect(await recorder(options()).record({ ...note, regarding: regarding(object) })).toBe('written')
      })

      it('AC8: one that is refused is counted and told, and throws nothing', async () => {
        const counts = { published: 0, failed: 0 }
        const metrics = { published: () => counts.published++, failed: () => counts.failed++ }
        const { record } = recorder({ ...options(), metrics })
        const elsewhere = { ...regarding('web-1'), namespace: 'no-such-namespace' }
        expect(await record({ ...note, regarding: elsewhere })).toBe('failed')
        expect(counts).toEqual({ published: 0, failed: 1 })
      })
    })
  })
}
