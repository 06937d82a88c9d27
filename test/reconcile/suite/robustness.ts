import { describe, expect, it } from 'vitest'
import { mutations, ownerLabelValue } from '../../../shared/kinds/mutants.ts'
import { deployments, namespaces } from '../../../shared/kinds/object.ts'
import { needsWork } from '../../../shared/reconcile/needs-work.ts'
import { base, mutantDeployment, mutation } from '../../support/builders.ts'
import { isWrite, type TestApi, type World, world } from '../../support/world.ts'

/** Inputs that made other operators write for ever, fail for ever, or mix things up. */
export function robustness(api: TestApi): void {
  const writesOf = async (w: World, name: string) => {
    w.forget()
    const { outcome } = await w.reconcile({ kind: mutations, name })
    return { outcome, writes: w.requests.filter(isWrite).length }
  }

  describe('what the server normalises', () => {
    const odd = mutation('shop')
      .with('red', 1, { Z: '1', A: '2' })
      .with('blue')
      .based((d) => {
        Object.assign(d.metadata, { creationTimestamp: null })
        d.status = { replicas: 3 }
        d.spec.strategy = {}
        d.spec.template.metadata.creationTimestamp = null
        Object.assign(d.spec.template.spec, {
          securityContext: {},
          nodeSelector: {},
          affinity: {},
          tolerations: [],
          initContainers: [],
          volumes: [
            { name: 'empty', emptyDir: {} },
            {
              name: 'config',
              projected: { sources: [{ configMap: { name: 'c', items: [{ key: 'k', path: 'p' }] } }] },
            },
          ],
          topologySpreadConstraints: [
            {
              maxSkew: 1,
              topologyKey: 'zone',
              whenUnsatisfiable: 'DoNotSchedule',
              labelSelector: { matchLabels: { app: 'web' } },
            },
          ],
          containers: [
            {
              name: 'main',
              image: 'nginx:1.21',
              env: [],
              command: [],
              ports: [
                { containerPort: 80 },
                { containerPort: 80, protocol: 'UDP' },
                { containerPort: 443, protocol: 'TCP' },
              ],
              resources: {
                limits: { cpu: '1000m', memory: '1024Mi' },
                requests: { cpu: '0.5', memory: '0.5Gi' },
              },
              readinessProbe: { httpGet: { path: '/', port: 80 } },
              livenessProbe: { httpGet: { path: '/', port: 'http' }, periodSeconds: 5 },
              volumeMounts: [{ name: 'empty', mountPath: '/e' }],
              lifecycle: {},
              securityContext: { capabilities: { add: ['NET_ADMIN'], drop: [] } },
            },
            {
              name: 'side',
              image: 'i',
              env: [{ name: 'X', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } }],
            },
          ],
        })
      })

    it('is no reason to write: 10 passes write nothing, and a resync sends nothing', async () => {
      const w = await world(api)
      await w.create(odd)
      expect((await w.reconcile(odd)).summary).toBe('0/2 variants ready, 2 progressing')
      const before = await w.child('web-red')
      for (let pass = 0; pass < 10; pass++)
        expect(await writesOf(w, 'shop')).toEqual({ outcome: 'settled', writes: 0 })
      expect(await w.child('web-red')).toEqual(before)
      expect(before?.metadata.generation).toBe(1)
      const { items } = await w.admin.list(deployments, { namespace: w.namespace })
      const settings = { adoption: 'label', now: new Date() } as const
      expect(needsWork(mutations, await w.get(odd), items, settings)).toBe(false)
      expect(needsWork(mutations, await w.get(odd), items.slice(1), settings)).toBe(true)
    })

    it('is no reason when it is an int or a text for a share', async () => {
      const w = await world(api)
      const shop = mutation('shop')
        .with('red', 1)
        .based((d) => {
          d.spec.strategy = { type: 'RollingUpdate', rollingUpdate: { maxSurge: '50%', maxUnavailable: 1 } }
          d.spec.minReadySeconds = 0
        })
      await w.create(shop)
      await w.reconcile(shop)
      expect(await writesOf(w, 'shop')).toEqual({ outcome: 'settled', writes: 0 })
    })
  })

  describe('nulls', () => {
    it('are as if absent', async () => {
      const w = await world(api)
      const shop = mutation('shop')
        .with('red', 1, null)
        .based((d) => {
          Object.assign(d.metadata, { annotations: null })
          d.spec.replicas = null
          d.spec.template.spec.tolerations = null
          d.spec.template.spec.containers = [
            { name: 'c', image: 'i', command: null, env: [{ name: 'A', value: null }] },
          ]
        })
      await w.create(shop)
      await w.reconcile(shop)
      expect(await w.variant(shop, 'red')).toMatchObject({ state: 'Progressing' })
      expect((await w.child('web-red'))?.spec.template.spec.containers[0]?.env).toEqual([{ name: 'A' }])
      expect(await writesOf(w, 'shop')).toEqual({ outcome: 'settled', writes: 0 })
    })

    it('for the variants, or a misspelt list, are refused; an empty list means none', async () => {
      const w = await world(api)
      const shop = mutation('shop').with('red', 1)
      await w.create(shop)
      await w.reconcile(shop)
      const { status: _, ...live } = await w.get(shop)
      const refused = { code: 422 }
      await expect(
        w.admin.replace(mutations, { ...live, spec: { deployment: base(), variants: null } }),
      ).rejects.toMatchObject(refused)
      await expect(
        w.admin.replace(mutations, { ...live, spec: { deployment: base(), variant: [] } }),
      ).rejects.toMatchObject(refused)
      await w.change(mutation('shop'))
      await w.reconcile(shop)
      expect(await w.children()).toEqual([])
    })
  })

  describe('a selector that cannot change', () => {
    it('is kept when the base gets another that the template can follow', async () => {
      const w = await world(api)
      await w.create(mutation('shop').with('red', 1))
      await w.reconcile(mutation('shop'))
      const changed = mutation('shop')
        .with('red', 1)
        .based((d) => {
          d.spec.selector.matchLabels = { name: 'new' }
          d.spec.template.metadata.labels = { name: 'new' }
        })
      await w.change(changed)
      await w.reconcile(changed)
      const red = await w.child('web-red')
      expect(red?.spec.selector.matchLabels).toEqual({ app: 'web', mutation: 'red' })
      expect(red?.spec.template.metadata.labels).toEqual({ app: 'web', mutation: 'red', name: 'new' })
      expect(await writesOf(w, 'shop')).toEqual({ outcome: 'settled', writes: 0 })
    })

    it('makes this variant Failed when they contradict; new ones run, and a delete mends it', async () => {
      const w = await world(api)
      await w.create(mutation('shop').with('red', 1))
      await w.reconcile(mutation('shop'))
      const changed = mutation('shop')
        .with('red', 1)
        .with('blue', 1)
        .based((d) => {
          d.spec.selector.matchLabels = { app: 'new' }
          d.spec.template.metadata.labels = { app: 'new' }
        })
      await w.change(changed)
      await w.reconcile(changed)
      expect(await w.variant(changed, 'red')).toMatchObject({
        state: 'Failed',
        message: expect.stringContaining('delete the Deployment to recreate it'),
      })
      expect((await w.child('web-blue'))?.spec.selector.matchLabels).toEqual({ app: 'new', mutation: 'blue' })
      expect(await writesOf(w, 'shop')).toEqual({ outcome: 'settled', writes: 0 })
      await w.admin.delete(deployments, { namespace: w.namespace, name: 'web-red' })
      await w.reconcile(changed)
      expect((await w.child('web-red'))?.spec.selector.matchLabels).toEqual({ app: 'new', mutation: 'red' })
    })
  })

  describe('long names', () => {
    it.each([63, 64, 200, 247])(
      'of %i characters give a valid owner label, and the children are found again',
      async (length) => {
        const w = await world(api)
        const name = `${'a'.repeat(Math.min(length, 60))}${'.b'.repeat(100)}`
          .slice(0, length)
          .replace(/\.$/, 'c')
        const shop = mutation(name).with('red', 1)
        await w.create(shop.with('blue', 1))
        await w.reconcile(shop)
        expect((await w.child('web-red'))?.metadata.labels?.['neiam.org/owner']).toBe(ownerLabelValue(name))
        await w.change(shop)
        await w.reconcile(shop)
        expect(await w.children()).toEqual(['web-red'])
        expect(await writesOf(w, name)).toEqual({ outcome: 'settled', writes: 0 })
      },
    )

    it('that begin alike never mix their children', async () => {
      const w = await world(api)
      const start = 'a'.repeat(63)
      const one = mutation(`${start}1`)
        .with('red', 1)
        .based((d) => {
          d.metadata.name = 'one'
        })
      const two = mutation(`${start}2`)
        .with('red', 1)
        .based((d) => {
          d.metadata.name = 'two'
        })
      for (const object of [one, two]) {
        await w.create(object)
        await w.reconcile(object)
      }
      await w.change(mutation(one.name))
      await w.reconcile(one)
      expect(await w.children()).toEqual(['two-red'])
    })
  })

  describe('an object that is not there to be reconciled', () => {
    it('is settled when it is gone, and nothing is written', async () => {
      const w = await world(api)
      const result = await w.reconcile(mutation('nobody'))
      expect(result).toEqual({ outcome: 'settled', writes: [], ref: undefined })
      expect(w.requests.filter(isWrite)).toEqual([])
    })

    it('is left alone while it is being deleted', async () => {
      const w = await world(api)
      const shop = mutation('shop').with('red', 1)
      const parent = await w.create(shop)
      await w.admin.replace(mutations, {
        ...parent,
        metadata: { ...parent.metadata, finalizers: ['test/hold'] },
      })
      await w.admin.delete(mutations, { namespace: w.namespace, name: 'shop' })
      const { outcome, writes } = await w.reconcile(shop)
      expect({ outcome, writes }).toEqual({ outcome: 'settled', writes: [] })
      expect(await w.children()).toEqual([])
      const dying = await w.get(shop)
      await w.admin.replace(mutations, { ...dying, metadata: { ...dying.metadata, finalizers: [] } })
    })

    it('is an invalid error without a namespace', async () => {
      const w = await world(api)
      const { reconcile } = await import('../../../shared/reconcile/reconcile.ts')
      expect(await reconcile(mutations, { namespace: '', name: 'x' }, w.context)).toMatchObject({
        outcome: 'settled',
        error: { label: 'invalid' },
      })
      expect(w.requests).toEqual([])
    })

    it('is left alone when its namespace goes away under the pass', async () => {
      const w = await world(api)
      const shop = mutation('shop').with('red', 1).with('blue', 1)
      await w.create(shop)
      let isDeleted = false
      const { client } = w.context
      const result = await w.reconcile(shop, {
        client: {
          ...client,
          apply: async (resource, object, options) => {
            if (!isDeleted) {
              isDeleted = true
              await w.admin.delete(namespaces, { name: w.namespace })
            }
            return client.apply(resource, object, options)
          },
        },
      })
      expect(result).toMatchObject({ outcome: 'settled' })
      expect(result.error).toBeUndefined()
      expect(w.requests.filter(({ method }) => method === 'PUT')).toEqual([])
    })

    it('that vanishes in the middle of a pass is settled', async () => {
      const w = await world(api)
      const shop = mutation('shop').with('red', 1)
      await w.create(shop)
      const { client } = w.context
      const result = await w.reconcile(shop, {
        client: {
          ...client,
          replace: async (resource, object, options) => {
            await w.admin.delete(mutations, { namespace: w.namespace, name: 'shop' })
            return client.replace(resource, object, options)
          },
        },
      })
      expect(result.outcome).toBe('settled')
    })
  })

  describe('the planner of the resync', () => {
    it('finds work exactly where a pass writes', async () => {
      const w = await world(api)
      const shop = mutation('shop').with('red', 2).with('blue', 1)
      await w.create(shop)
      const expectWork = async (isExpected: boolean) => {
        const { items } = await w.admin.list(deployments, {
          namespace: w.namespace,
          labelSelector: 'neiam.org/owner=shop',
        })
        const settings = { adoption: 'label', now: new Date() } as const
        expect(needsWork(mutations, await w.get(shop), items, settings)).toBe(isExpected)
        expect((await w.reconcile(shop)).writes.length > 0).toBe(isExpected)
      }
      await expectWork(true)
      await expectWork(false)
      await w.makeReady('web-red')
      await expectWork(true)
      await expectWork(false)
      await w.edit('web-red', (child) => {
        child.spec.replicas = 7
      })
      await expectWork(true)
      await expectWork(false)
      await w.admin.delete(deployments, { namespace: w.namespace, name: 'web-red' })
      await expectWork(true)
      await expectWork(false)
      await w.change(mutation('shop').with('red', 2))
      await expectWork(true)
      await expectWork(false)
      await w.change(mutation('shop').with('red', 3).annotated({ 'neiam.org/paused': 'true' }))
      await expectWork(true)
      await expectWork(false)
      await w.change(mutation('shop').with('red', -3))
      await expectWork(true)
      await expectWork(false)
      const leftover = base('leftover')
      const red = await w.child('web-red')
      const { labels, ownerReferences } = red?.metadata ?? {}
      leftover.metadata = {
        name: 'leftover',
        namespace: w.namespace,
        labels: { ...labels, mutation: 'none' },
        ownerReferences,
      }
      await w.admin.create(deployments, leftover)
      await expectWork(true)
      await expectWork(false)
    })

    it('has refused and conflicting variants looked at again', async () => {
      const w = await world(api)
      const settings = { adoption: 'label', now: new Date() } as const
      const shop = mutation('shop').with('red', 1)
      const theirs = { ...base(), metadata: { name: 'web-red', namespace: w.namespace } }
      await w.admin.create(deployments, theirs)
      await w.create(shop)
      await w.reconcile(shop)
      expect(needsWork(mutations, await w.get(shop), [], settings)).toBe(true)
      await w.admin.delete(deployments, { namespace: w.namespace, name: 'web-red' })
      await w.change(
        shop.based((d) => {
          d.spec.unknownField = 1
        }),
      )
      await w.reconcile(shop)
      expect(await w.variant(shop, 'red')).toMatchObject({ state: 'Failed' })
      expect(needsWork(mutations, await w.get(shop), [], settings)).toBe(true)
      const children = (await w.admin.list(deployments, { namespace: w.namespace })).items
      expect(children).toEqual([])
    })

    it('does not have a label that stands twice looked at again: only a change of the spec can mend it', async () => {
      const w = await world(api)
      const shop = mutation('shop').with('red', 0).with('red', 1)
      await w.create(shop)
      await w.reconcile(shop)
      const { items } = await w.admin.list(deployments, { namespace: w.namespace })
      expect(needsWork(mutations, await w.get(shop), items, { adoption: 'label', now: new Date() })).toBe(
        false,
      )
    })
  })

  describe('200 variants', () => {
    it('are all made, and then only read', async () => {
      const w = await world(api)
      let shop = mutantDeployment('shop')
      for (let n = 0; n < 200; n++) shop = shop.with(`v${n}`, 0, { N: String(n) })
      await w.create(shop)
      const { summary } = await w.reconcile(shop)
      expect(summary).toBe('200/200 variants ready')
      w.forget()
      expect((await w.reconcile(shop)).writes).toEqual([])
      expect(w.requests).toHaveLength(2)
    })
  })

  describe('a fight over a field', () => {
    it('slows down, and names the field and the other manager', async () => {
      let now = Date.now()
      const w = await world(api)
      const clock = { ...w.context.clock, now: () => new Date(now) }
      const shop = mutation('shop').with('red', 1)
      await w.create(shop)
      await w.reconcile(shop)
      const image = {
        apiVersion: 'apps/v1',
        kind: 'Deployment',
        metadata: { name: 'web-red', namespace: w.namespace },
        spec: { template: { spec: { containers: [{ name: 'main', image: 'theirs' }] } } },
      }
      const attack = () => w.admin.apply(deployments, image, { fieldManager: 'rival', force: true })
      let repairs = 0
      for (let second = 0; second < 60; second++) {
        await attack()
        const { writes } = await w.reconcile(shop, { clock })
        repairs += writes.filter((line) => line.startsWith('apply')).length
        now += 1000
      }
      expect(repairs).toBeGreaterThanOrEqual(5)
      expect(repairs).toBeLessThanOrEqual(9)
      const contested = w.events.filter(({ reason }) => reason === 'VariantContested')
      expect(contested[0]?.note).toContain(
        '"rival" keeps changing .spec.template.spec.containers[name="main"].image',
      )
      // The rival gives up: after the longest wait the field is set back.
      now += 300_000
      await w.reconcile(shop, { clock })
      expect((await w.child('web-red'))?.spec.template.spec.containers[0]?.image).toBe('nginx:1.21')
    })
  })
}
