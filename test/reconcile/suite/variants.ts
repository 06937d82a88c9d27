import { describe, expect, it } from 'vitest'
import { deployments } from '../../../shared/kinds/object.ts'
import { base, mutantDeployment, mutation } from '../../support/builders.ts'
import { isWrite, kindsOf, type TestApi, world } from '../../support/world.ts'

/** Variants that cannot be applied, bases that are broken, and objects that are paused. */
export function variants(api: TestApi): void {
  describe('a variant that cannot be applied', () => {
    it.each([
      ['a label of 64 characters', 'x'.repeat(64), 1, {}],
      ['a label with a capital', 'Red', 1, {}],
      ['no label', '', 1, {}],
      ['negative instances', 'bad', -1, {}],
      ['an env name with =', 'bad', 1, { 'A=B': '1' }],
      ['an env name that is not ASCII', 'bad', 1, { Ä: '1' }],
      ['an empty env name', 'bad', 1, { '': '1' }],
    ])('is Invalid with %s, and stops no other', async (_, label, instances, env) => {
      const w = await world(api)
      const shop = mutation('shop').with(label, instances, env).with('good', 1)
      await w.create(shop)
      const { outcome, error, summary } = await w.reconcile(shop)
      expect({ outcome, label: error?.label }).toEqual({ outcome: 'settled', label: undefined })
      expect(summary).toBe('0/2 variants ready, 1 progressing, 1 invalid')
      expect(await w.variant(shop, label)).toMatchObject({ state: 'Invalid', message: expect.any(String) })
      expect(await w.children()).toEqual(['web-good'])
      w.forget()
      expect((await w.reconcile(shop)).writes).toEqual([])
      expect(w.requests.filter(isWrite)).toEqual([])
    })

    it('takes env names that Kubernetes takes, however odd', async () => {
      const w = await world(api)
      const env = { 'A B': '1', '1a': '2', 'a.b-c': '3', a$b: '4' }
      const shop = mutation('shop').with('red', 1, env)
      await w.create(shop)
      await w.reconcile(shop)
      expect(await w.variant(shop, 'red')).toMatchObject({ state: 'Progressing' })
      expect((await w.child('web-red'))?.spec.template.spec.containers[0]?.env).toHaveLength(4)
    })

    it.each([
      [253, 'Progressing'],
      [254, 'Invalid'],
    ])('with a child of a name of %i characters is %s', async (length, state) => {
      const w = await world(api)
      const name = `${'a'.repeat(120)}.${'b'.repeat(length - 121 - 4)}`
      const shop = mutation('shop')
        .with('red', 1)
        .based((d) => {
          d.metadata.name = name
        })
      await w.create(shop)
      await w.reconcile(shop)
      expect(await w.variant(shop, 'red')).toMatchObject({ state })
    })

    it('is a Conflict when its label stands twice; the first one counts', async () => {
      const w = await world(api)
      const shop = mutation('shop').with('red', 1).with('red', 5)
      await w.create(shop)
      await w.reconcile(shop)
      const { variants: states } = await w.status(shop)
      expect(states?.map(({ state }) => state)).toEqual(['Progressing', 'Conflict'])
      expect((await w.child('web-red'))?.spec.replicas).toBe(1)
      w.forget()
      expect((await w.reconcile(shop)).writes).toEqual([])
      expect(w.requests).toHaveLength(3)
    })

    it('is Failed with the words of the API server when that refuses it, and is not tried again for nothing', async () => {
      const w = await world(api)
      const shop = mutation('shop')
        .with('red', 1)
        .with('blue', 1)
        .based((d) => {
          d.spec.template.spec.containers = [{ name: 'Not A Name', image: 'i' }]
        })
      await w.create(shop)
      const first = await w.reconcile(shop)
      expect(first.outcome).toBe('settled')
      expect(await w.variant(shop, 'red')).toMatchObject({
        state: 'Failed',
        message: expect.stringContaining('spec.template.spec.containers[0].name'),
      })
      w.forget()
      await w.reconcile(shop)
      expect(w.requests.filter(isWrite)).toEqual([])
      await w.reconcile(shop, { cause: 'resync' })
      expect(w.requests.filter(isWrite).map(({ code }) => code)).toEqual([422, 422])
      await w.change(mutation('shop').with('red', 1).with('blue', 1))
      await w.reconcile(shop)
      expect(await w.children()).toEqual(['web-blue', 'web-red'])
    })

    it.each([
      [
        'an unknown field',
        (d: ReturnType<typeof base>) => {
          d.spec.unknownField = 1
        },
      ],
      [
        'a number for a text',
        (d: ReturnType<typeof base>) => {
          d.spec.template.spec.containers = [{ name: 'c', image: 'i', command: [1] }]
        },
      ],
      [
        'two containers of one name',
        (d: ReturnType<typeof base>) => {
          d.spec.template.spec.containers = [
            { name: 'c', image: 'i' },
            { name: 'c', image: 'j' },
          ]
        },
      ],
    ])('is Failed when apply cannot read the base because of %s', async (_, spoil) => {
      const w = await world(api)
      const shop = mutation('shop').with('red', 1).based(spoil)
      await w.create(shop)
      const { outcome } = await w.reconcile(shop)
      expect(outcome).toBe('settled')
      expect(await w.variant(shop, 'red')).toMatchObject({ state: 'Failed' })
    })

    it('keeps the Deployment that runs', async () => {
      const w = await world(api)
      const shop = mutation('shop').with('red', 1).with('blue', 1)
      await w.create(shop)
      await w.reconcile(shop)
      await w.change(mutation('shop').with('red', -1).with('blue', 1, { 'NOT=OK': '1' }))
      await w.reconcile(shop)
      expect((await w.status(shop)).variants?.map(({ state }) => state)).toEqual(['Invalid', 'Invalid'])
      expect(await w.children()).toEqual(['web-blue', 'web-red'])
    })
  })

  describe("a Deployment of the name that is somebody else's", () => {
    it('is left alone when another owner controls it: Conflict, naming that owner', async () => {
      const w = await world(api)
      const other = mutantDeployment('other').with('red', 1)
      const shop = mutation('shop').with('red', 2).with('blue', 1)
      await w.create(other)
      await w.create(shop)
      await w.reconcile(other)
      await w.reconcile(shop)
      expect(await w.variant(shop, 'red')).toMatchObject({
        state: 'Conflict',
        message: expect.stringContaining('MutantDeployment "other"'),
      })
      expect((await w.child('web-red'))?.spec.replicas).toBe(1)
      expect(await w.children()).toEqual(['web-blue', 'web-red'])
      // Afterwards it is looked at, and not written at in vain.
      w.forget()
      await w.reconcile(shop)
      expect(kindsOf(shop.kind, w.requests).toSorted()).toEqual(['GET', 'LIST', 'LOOK', 'LOOK'])
      await w.admin.delete(other.kind, { namespace: w.namespace, name: 'other' })
      await w.admin.delete(deployments, { namespace: w.namespace, name: 'web-red' })
      await w.reconcile(shop)
      expect((await w.child('web-red'))?.spec.replicas).toBe(2)
    })

    it('is left alone even when its fields are the very same', async () => {
      const w = await world(api)
      const twin = { ...base(), metadata: { name: 'web-red', namespace: w.namespace } }
      twin.spec.selector.matchLabels.mutation = 'red'
      twin.spec.template.metadata.labels.mutation = 'red'
      const theirs = await w.admin.create(deployments, twin)
      const shop = mutation('shop').with('red', 1)
      await w.create(shop)
      await w.reconcile(shop)
      expect(await w.variant(shop, 'red')).toMatchObject({ state: 'Conflict' })
      expect((await w.child('web-red'))?.metadata.resourceVersion).toBe(theirs.metadata.resourceVersion)
    })
  })

  describe('a broken base', () => {
    it.each([
      [
        'no containers',
        (d: ReturnType<typeof base>) => {
          d.spec.template.spec.containers = []
        },
        'no containers',
      ],
      [
        'a container without an image',
        (d: ReturnType<typeof base>) => {
          d.spec.template.spec.containers = [{ name: 'c', image: '' }]
        },
        'without image',
      ],
      [
        'another kind',
        (d: ReturnType<typeof base>) => {
          d.kind = 'StatefulSet'
        },
        'StatefulSet',
      ],
      [
        'another apiVersion',
        (d: ReturnType<typeof base>) => {
          d.apiVersion = 'apps/v1beta1'
        },
        'apps/v1beta1',
      ],
      [
        'a selector that does not match',
        (d: ReturnType<typeof base>) => {
          d.spec.selector.matchLabels = { app: 'other' }
        },
        'does not match',
      ],
      [
        'no selector',
        (d: ReturnType<typeof base>) => {
          d.spec.selector = {} as never
        },
        'no spec.selector',
      ],
    ])('with %s applies and prunes nothing, and what runs stays in the status', async (_, spoil, words) => {
      const w = await world(api)
      const shop = mutation('shop').with('red', 1).with('blue', 1)
      await w.create(shop)
      await w.reconcile(shop)
      await w.makeReady('web-red')
      await w.change(mutation('shop').with('red', 9).based(spoil))
      w.forget()
      const { outcome, writes, error } = await w.reconcile(shop)
      expect({ outcome, writes }).toEqual({
        outcome: 'settled',
        writes: [`report Mutation ${w.namespace}/shop`],
      })
      expect(error).toEqual({ label: 'invalid', message: expect.stringContaining(words) })
      expect(await w.children()).toEqual(['web-blue', 'web-red'])
      const status = await w.status(shop)
      expect(status.message).toContain(words)
      expect(status.variants).toMatchObject([{ label: 'red', state: 'Ready', ready: 1 }])
      expect(status.conditions).toMatchObject([
        { type: 'Ready', status: 'False', reason: 'BaseInvalid', observedGeneration: 2 },
        { type: 'Stalled', status: 'True', reason: 'BaseInvalid' },
      ])
      w.forget()
      expect((await w.reconcile(shop)).writes).toEqual([])
    })
  })

  describe('a paused object', () => {
    it('gets no write but its status, which says so, and goes on afterwards', async () => {
      const w = await world(api)
      const shop = mutation('shop').with('red', 1).with('blue', 1)
      await w.create(shop)
      await w.reconcile(shop)
      const paused = mutation('shop').with('red', 3).annotated({ 'neiam.org/paused': 'true' })
      await w.change(paused)
      w.forget()
      const { writes } = await w.reconcile(shop)
      expect(writes).toEqual([`report Mutation ${w.namespace}/shop`])
      expect(await w.children()).toEqual(['web-blue', 'web-red'])
      const status = await w.status(shop)
      expect(status.message).toContain('Paused')
      expect(status.conditions).toMatchObject([{ type: 'Ready', status: 'False', reason: 'Paused' }])
      expect((await w.reconcile(shop)).writes).toEqual([])
      await w.change(mutation('shop').with('red', 3))
      await w.reconcile(shop)
      expect((await w.child('web-red'))?.spec.replicas).toBe(3)
      expect(await w.children()).toEqual(['web-red'])
      expect((await w.status(shop)).message).toBeUndefined()
    })

    it('makes nothing when it was paused from the start', async () => {
      const w = await world(api)
      const shop = mutation('shop').with('red', 1).annotated({ 'neiam.org/paused': 'true' })
      await w.create(shop)
      await w.reconcile(shop)
      expect(await w.children()).toEqual([])
      expect(w.requests.map(({ method }) => method)).toEqual(['GET', 'GET', 'PUT'])
    })
  })
}
