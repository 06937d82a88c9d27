import { describe, expect, it } from 'vitest'
import { events } from '../../../shared/kinds/object.ts'
import { objectEventRecorder } from '../../../shared/reconcile/object-events.ts'
import { mutation } from '../../support/builders.ts'
import { type TestApi, type World, world } from '../../support/world.ts'

/** What is told of an object: states, conditions, Kubernetes Events. */
export function reports(api: TestApi): void {
  describe('the state of a variant', () => {
    const shop = mutation('shop').with('red', 3)
    const rolledOut = { replicas: 3, updatedReplicas: 3, readyReplicas: 3, availableReplicas: 3 }
    const isFailed = {
      type: 'Progressing',
      status: 'False',
      reason: 'ProgressDeadlineExceeded',
      message: 'Too slow',
    }

    it.each([
      [
        'Progressing before its controller has seen it',
        { ...rolledOut, observedGeneration: 0 },
        'Progressing',
      ],
      [
        'Ready when all wanted pods are updated and available',
        { ...rolledOut, observedGeneration: 1 },
        'Ready',
      ],
      [
        'Progressing while pods of the old template run',
        { ...rolledOut, replicas: 4, observedGeneration: 1 },
        'Progressing',
      ],
      [
        'Progressing while not all are available',
        { ...rolledOut, availableReplicas: 2, observedGeneration: 1 },
        'Progressing',
      ],
      [
        'Progressing while not all are updated',
        { ...rolledOut, updatedReplicas: 2, observedGeneration: 1 },
        'Progressing',
      ],
      [
        'Degraded when its rollout has failed',
        { replicas: 1, observedGeneration: 1, conditions: [isFailed] },
        'Degraded',
      ],
    ])('is %s', async (_, childStatus, state) => {
      const w = await world(api)
      await w.create(shop)
      await w.reconcile(shop)
      await w.setChildStatus('web-red', childStatus)
      await w.reconcile(shop)
      expect(await w.variant(shop, 'red')).toMatchObject({
        label: 'red',
        name: 'web-red',
        state,
        instances: 3,
      })
    })
  })

  describe('the conditions', () => {
    const shop = mutation('shop').with('red', 1)
    const briefly = async (w: World) =>
      ((await w.status(shop)).conditions ?? []).map(
        ({ type, status, observedGeneration }) => `${type}=${status}@${observedGeneration}`,
      )

    it('say that an object nobody has looked at is in progress', async () => {
      const w = await world(api)
      await w.create(shop)
      expect(await w.status(shop)).toEqual({ observedGeneration: -1 })
    })

    it('follow the newest spec, one of each type, and keep the time of what did not change', async () => {
      const w = await world(api)
      await w.create(shop)
      await w.reconcile(shop)
      expect(await briefly(w)).toEqual(['Ready=False@1', 'Reconciling=True@1'])
      await w.makeReady('web-red')
      await w.reconcile(shop)
      expect(await briefly(w)).toEqual(['Ready=True@1'])
      const readySince = (await w.status(shop)).conditions?.[0]?.lastTransitionTime

      await w.change(shop.with('blue', 0))
      await w.reconcile(shop)
      expect(await briefly(w)).toEqual(['Ready=True@2'])
      expect((await w.status(shop)).conditions?.[0]?.lastTransitionTime).toBe(readySince)

      await w.change(mutation('shop').with('red', 1, { NEW: '1' }))
      await w.reconcile(shop)
      expect(await briefly(w)).toEqual(['Ready=False@3', 'Reconciling=True@3'])
      await w.change(mutation('shop').with('red', -1))
      await w.reconcile(shop)
      expect(await briefly(w)).toEqual(['Ready=False@4', 'Stalled=True@4'])
    })

    it('are ready at once with no instances or no variants', async () => {
      const w = await world(api)
      await w.create(mutation('shop').with('red', 0))
      await w.reconcile(shop)
      expect(await briefly(w)).toEqual(['Ready=True@1'])
      await w.change(mutation('shop'))
      await w.reconcile(shop)
      expect(await briefly(w)).toEqual(['Ready=True@2'])
    })
  })

  describe('Kubernetes Events', () => {
    it('are recorded for what a person must see, once', async () => {
      const w = await world(api)
      const shop = mutation('shop').with('red', -1).with('blue', 1)
      const parent = await w.create(shop)
      await w.reconcile(shop)
      expect(w.events).toEqual([
        {
          regarding: {
            apiVersion: 'neiam.org/v1',
            kind: 'Mutation',
            namespace: w.namespace,
            name: 'shop',
            uid: parent.metadata.uid,
          },
          type: 'Warning',
          reason: 'VariantInvalid',
          variant: 'red',
          note: 'Variant "red": instances must be a whole number, 0 or more, not -1',
        },
      ])
      w.forget()
      await w.reconcile(shop)
      await w.reconcile(shop, { cause: 'resync' })
      expect(w.events).toEqual([])
    })

    it('are told by a resync too when they are news, but never as a repeat', async () => {
      const w = await world(api)
      let now = Date.UTC(2026, 0, 1)
      const clock = { ...w.context.clock, now: () => new Date(now) }
      const reporter = { controller: 'neiam.org/mutation', instance: 'test' }
      const context = {
        clock,
        cause: 'resync',
        record: objectEventRecorder({ client: w.admin, clock, reporter }),
      } as const
      const told = async () =>
        (await w.admin.list(events, { namespace: w.namespace })).items.map(({ series }) => series)
      const good = mutation('shop').with('red', 0)
      const bad = mutation('shop').with('red', -1)
      await w.create(bad)
      await w.reconcile(bad, context)
      expect(await told()).toEqual([undefined])
      for (const object of [good, bad]) {
        now += 3_600_000
        await w.change(object)
        await w.reconcile(object, context)
      }
      expect(await told()).toEqual([undefined])
    })

    it('are taken by the API, whatever they say, and fold 200 problems into one', async () => {
      const w = await world(api)
      const record = objectEventRecorder({
        client: w.admin,
        clock: w.context.clock,
        reporter: { controller: 'neiam.org/mutation', instance: 'test' },
      })
      let shop = mutation(`${'a'.repeat(100)}.${'b'.repeat(152)}`)
      for (let n = 0; n < 200; n++) shop = shop.with(`変種🎉${n}`, 1)
      await w.create(shop)
      const { summary } = await w.reconcile(shop, { record })
      expect(summary).toBe('0/200 variants ready, 200 invalid')
      const { items } = await w.admin.list(events, { namespace: w.namespace })
      // One for the variants; the name of this Mutation is too long for its Secret, but they come first.
      expect(items).toHaveLength(1)
      const note = String(items[0]?.note)
      expect(note).toContain('and 190 more')
      expect(Buffer.byteLength(note)).toBeLessThanOrEqual(1024)
      expect(items[0]?.reason).toBe('VariantInvalid')
    })

    it('become a series when they are told again after 10 minutes, and nothing before', async () => {
      const w = await world(api)
      let now = Date.UTC(2026, 0, 1)
      const clock = { ...w.context.clock, now: () => new Date(now) }
      const record = objectEventRecorder({
        client: w.admin,
        clock,
        reporter: { controller: 'neiam.org/mutation', instance: 'test' },
      })
      const regarding = {
        apiVersion: 'neiam.org/v1',
        kind: 'Mutation',
        namespace: w.namespace,
        name: 'shop',
        uid: 'u',
      }
      const tell = () =>
        record({
          regarding,
          type: 'Warning',
          reason: 'VariantFailed',
          variant: 'red',
          note: '多'.repeat(2000),
        })
      const series = async () =>
        (await w.admin.list(events, { namespace: w.namespace })).items.map((event) => event.series)
      await tell()
      now += 60_000
      await tell()
      expect(await series()).toEqual([undefined])
      now += 600_000
      await tell()
      expect(await series()).toMatchObject([{ count: 2, lastObservedTime: '2026-01-01T00:11:00.000000Z' }])
      now += 60_000
      await tell()
      now += 600_000
      await tell()
      expect(await series()).toMatchObject([{ count: 3 }])
    })
  })
}
