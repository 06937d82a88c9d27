import { describe, expect, it } from 'vitest'
import { mutantKinds, mutations } from '../../../shared/kinds/mutants.ts'
import { deployments } from '../../../shared/kinds/object.ts'
import { mutant, mutantDeployment, mutation } from '../../support/builders.ts'
import { isWrite, kindsOf, type TestApi, world } from '../../support/world.ts'

/** What the Deployments of an object look like, and what it costs to keep them. */
export function children(api: TestApi): void {
  describe.each(mutantKinds.map((kind) => ({ kind })))('the children of a $kind.kind', ({ kind }) => {
    it('are one Deployment for each variant, with its label, env and instances', async () => {
      const w = await world(api)
      const shop = mutant(kind, 'shop').with('red', 2, { COLOR: 'red' }).with('blue', 3)
      const parent = await w.create(shop)
      const { outcome } = await w.reconcile(shop)

      expect(outcome).toBe('settled')
      expect(await w.children()).toEqual(['web-blue', 'web-red'])
      const red = await w.child('web-red')
      expect(red?.metadata.labels).toEqual({ app: 'web', mutation: 'red', 'neiam.org/owner': 'shop' })
      expect(red?.metadata.ownerReferences).toEqual([
        {
          apiVersion: 'neiam.org/v1',
          kind: kind.kind,
          name: 'shop',
          uid: parent.metadata.uid,
          controller: true,
          blockOwnerDeletion: true,
        },
      ])
      expect(red?.spec.replicas).toBe(2)
      expect(red?.spec.selector.matchLabels).toEqual({ app: 'web', mutation: 'red' })
      expect(red?.spec.template.metadata.labels).toEqual({ app: 'web', mutation: 'red' })
      expect(red?.spec.template.spec.containers[0]?.env).toEqual([{ name: 'COLOR', value: 'red' }])
      expect((await w.child('web-blue'))?.spec.template.spec.containers[0]?.env).toBeUndefined()
    })

    it('cost two reads, one write each, and one for the status (and one for the Secret)', async () => {
      const w = await world(api)
      const shop = mutant(kind, 'shop').with('red', 1).with('blue', 1).with('green', 1)
      await w.create(shop)
      await w.reconcile(shop)
      expect(w.requests).toHaveLength(3 + (kind.hasSecret ? 4 : 3))
      expect(w.requests.filter(isWrite)).toHaveLength(3 + (kind.hasSecret ? 2 : 1))
    })

    it('are only read while nothing changes', async () => {
      const w = await world(api)
      const shop = mutant(kind, 'shop').with('red', 1, { A: '1', B: '2' }).with('blue', 0)
      await w.create(shop)
      await w.reconcile(shop)
      for (let pass = 0; pass < 3; pass++) {
        w.forget()
        const { outcome, writes } = await w.reconcile(shop)
        expect({ outcome, writes }).toEqual({ outcome: 'settled', writes: [] })
        expect(kindsOf(kind, w.requests)).toEqual(kind.hasSecret ? ['LIST', 'GET', 'LOOK'] : ['LIST', 'GET'])
        // Quorum reads, and never a list of everything.
        for (const { path } of w.requests) expect(path).not.toMatch(/resourceVersion|labelSelector=(&|$)/)
      }
    })

    it('cost one write and a report when one of them is changed', async () => {
      const w = await world(api)
      const shop = mutant(kind, 'shop').with('red', 1)
      await w.create(shop.with('blue', 1))
      await w.reconcile(shop)
      await w.change(shop.with('blue', 2))
      w.forget()
      const { writes } = await w.reconcile(shop)
      expect(writes).toEqual([
        `apply Deployment ${w.namespace}/web-blue`,
        `report ${kind.kind} ${w.namespace}/shop`,
      ])
      expect(w.requests).toHaveLength(kind.hasSecret ? 5 : 4)
      expect((await w.child('web-blue'))?.spec.replicas).toBe(2)
    })

    it('cost one report when they become ready', async () => {
      const w = await world(api)
      const shop = mutant(kind, 'shop').with('red', 1).with('blue', 2)
      await w.create(shop)
      await w.reconcile(shop)
      await w.makeReady('web-red')
      await w.makeReady('web-blue')
      w.forget()
      const { writes, summary } = await w.reconcile(shop)
      expect(writes).toEqual([`report ${kind.kind} ${w.namespace}/shop`])
      expect(summary).toBe('2/2 variants ready')
      expect(w.requests).toHaveLength(kind.hasSecret ? 4 : 3)
    })
  })

  describe('a child', () => {
    it('is called after "mutant" when the base has no name, and lives where its owner does', async () => {
      const w = await world(api)
      const shop = mutantDeployment('shop')
        .with('red', 1)
        .based((d) => {
          d.metadata = { namespace: 'kube-system' }
        })
      await w.create(shop)
      await w.reconcile(shop)
      expect(await w.children()).toEqual(['mutant-red'])
      expect((await w.status(shop)).message).toContain('"kube-system"')
    })

    it('takes nothing of the base that belongs to the server', async () => {
      const w = await world(api)
      const shop = mutantDeployment('shop')
        .with('red', 1)
        .based((d) => {
          Object.assign(d.metadata, {
            uid: 'someone',
            resourceVersion: '7',
            creationTimestamp: '2020-01-01T00:00:00Z',
            generation: 9,
            managedFields: [{ manager: 'x' }],
            ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: 'x', uid: 'x', controller: true }],
            annotations: { note: 'kept', 'deployment.kubernetes.io/revision': '4' },
          })
          d.status = { replicas: 7 }
        })
      await w.create(shop)
      const { outcome } = await w.reconcile(shop)
      expect(outcome).toBe('settled')
      const red = await w.child('web-red')
      expect(red?.metadata.annotations).toEqual({ note: 'kept', 'neiam.org/applied': expect.any(String) })
      expect(red?.metadata.ownerReferences).toHaveLength(1)
    })

    it('gets its env over that of the base: replaced in place, order kept, new names sorted, twice folded', async () => {
      const w = await world(api)
      const shop = mutantDeployment('shop')
        .with('red', 1, { Z: '26', B: 'new', A: '1' })
        .based((d) => {
          d.spec.template.spec.containers = [
            {
              name: 'one',
              image: 'i',
              env: [
                { name: 'C', value: 'first' },
                { name: 'B', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
                { name: 'C', value: 'last' },
              ],
            },
            { name: 'two', image: 'i' },
          ]
        })
      await w.create(shop)
      await w.reconcile(shop)
      const containers = (await w.child('web-red'))?.spec.template.spec.containers
      expect(containers?.[0]?.env).toEqual([
        { name: 'B', value: 'new' },
        { name: 'C', value: 'last' },
        { name: 'A', value: '1' },
        { name: 'Z', value: '26' },
      ])
      expect(containers?.[1]?.env?.map(({ name }) => name)).toEqual(['A', 'B', 'Z'])
      w.forget()
      expect((await w.reconcile(shop)).writes).toEqual([])
    })

    it('that was deleted by hand comes back', async () => {
      const w = await world(api)
      const shop = mutation('shop').with('red', 1)
      await w.create(shop)
      await w.reconcile(shop)
      await w.admin.delete(deployments, { namespace: w.namespace, name: 'web-red' })
      const { writes } = await w.reconcile(shop)
      expect(writes).toEqual([`apply Deployment ${w.namespace}/web-red`])
      // No status changed, so one more read has to prove that the object is still the same.
      expect(kindsOf(mutations, w.requests).at(-1)).toBe('GET')
    })

    it('that is held while it is deleted is waited for, and made anew when it is gone', async () => {
      const w = await world(api)
      const shop = mutation('shop').with('red', 1)
      await w.create(shop)
      await w.reconcile(shop)
      const held = await w.edit('web-red', (child) => {
        child.metadata.finalizers = ['test/hold']
      })
      await w.admin.delete(deployments, { namespace: w.namespace, name: 'web-red' })
      for (let pass = 0; pass < 3; pass++) {
        const { writes, outcome } = await w.reconcile(shop)
        expect(outcome).toBe('settled')
        expect(writes.filter((line) => line.includes('Deployment'))).toEqual([])
      }
      expect(await w.variant(shop, 'red')).toMatchObject({
        state: 'Progressing',
        message: expect.any(String),
      })
      await w.edit('web-red', (child) => {
        child.metadata.finalizers = []
      })
      await w.reconcile(shop)
      const anew = await w.child('web-red')
      expect(anew?.metadata.uid).not.toBe(held.metadata.uid)
      expect(await w.variant(shop, 'red')).toEqual({
        label: 'red',
        name: 'web-red',
        state: 'Progressing',
        instances: 1,
        ready: 0,
      })
    })

    it('that was edited by hand is set back, and only that one is written', async () => {
      const w = await world(api)
      const shop = mutation('shop').with('red', 1, { A: '1' }).with('blue', 1)
      await w.create(shop)
      await w.reconcile(shop)
      await w.edit('web-red', (child) => {
        child.spec.template.spec.containers[0] = { name: 'main', image: 'evil' }
      })
      const { writes } = await w.reconcile(shop)
      expect(writes[0]).toBe(`apply Deployment ${w.namespace}/web-red`)
      expect(writes).not.toContain(`apply Deployment ${w.namespace}/web-blue`)
      const [main] = (await w.child('web-red'))?.spec.template.spec.containers ?? []
      expect(main).toMatchObject({ image: 'nginx:1.21', env: [{ name: 'A', value: '1' }] })
      w.forget()
      expect((await w.reconcile(shop)).writes).toEqual([])
    })

    it.each([
      [
        'a label of ours',
        (child: { metadata: { labels?: Record<string, string> } }) => delete child.metadata.labels?.app,
      ],
      [
        'its owner label',
        (child: { metadata: { labels?: Record<string, string> } }) =>
          delete child.metadata.labels?.['neiam.org/owner'],
      ],
      [
        'its ownerReference',
        (child: { metadata: { ownerReferences?: unknown[] } }) => delete child.metadata.ownerReferences,
      ],
      [
        'the hash',
        (child: { metadata: { annotations?: Record<string, string> } }) =>
          delete child.metadata.annotations?.['neiam.org/applied'],
      ],
    ])('gets back %s when somebody takes it away', async (_, takeAway) => {
      const w = await world(api)
      const shop = mutation('shop').with('red', 1)
      await w.create(shop)
      await w.reconcile(shop)
      const before = await w.child('web-red')
      await w.edit('web-red', takeAway)
      await w.reconcile(shop)
      const after = await w.child('web-red')
      expect(after?.metadata.labels).toEqual(before?.metadata.labels)
      expect(after?.metadata.ownerReferences).toEqual(before?.metadata.ownerReferences)
      expect(after?.metadata.uid).toBe(before?.metadata.uid)
      w.forget()
      expect((await w.reconcile(shop)).writes).toEqual([])
      expect(w.requests).toHaveLength(3)
    })

    it('keeps what somebody else added to it', async () => {
      const w = await world(api)
      const shop = mutation('shop').with('red', 1)
      await w.create(shop)
      await w.reconcile(shop)
      await w.edit('web-red', (child) => {
        child.metadata.labels = { ...child.metadata.labels, theirs: 'yes' }
        child.spec.template.spec.containers.push({ name: 'sidecar', image: 'proxy' })
      })
      w.forget()
      expect((await w.reconcile(shop)).writes).toEqual([])
      await w.change(
        shop.based((d) => {
          d.spec.template.spec.containers = [{ name: 'main', image: 'nginx:2' }]
        }),
      )
      await w.reconcile(shop)
      const red = await w.child('web-red')
      expect(red?.metadata.labels?.theirs).toBe('yes')
      expect(red?.spec.template.spec.containers.map(({ image }) => image)).toEqual(['nginx:2', 'proxy'])
    })

    it('loses what goes from the base', async () => {
      const w = await world(api)
      const shop = mutation('shop').with('red', 1, { A: '1', B: '2' })
      await w.create(
        shop.based((d) => {
          d.metadata.annotations = { gone: 'soon' }
        }),
      )
      await w.reconcile(shop)
      await w.change(mutation('shop').with('red', 1, { A: '1' }))
      await w.reconcile(shop)
      const red = await w.child('web-red')
      expect(red?.metadata.annotations?.gone).toBeUndefined()
      expect(red?.spec.template.spec.containers[0]?.env).toEqual([{ name: 'A', value: '1' }])
    })
  })

  describe('replicas', () => {
    it('are left to an autoscaler when instances are absent, and made 1 at first', async () => {
      const w = await world(api)
      const shop = mutation('shop')
        .with('red')
        .based((d) => {
          d.spec.replicas = 7
        })
      await w.create(shop)
      await w.reconcile(shop)
      expect((await w.child('web-red'))?.spec.replicas).toBe(1)
      await w.edit(
        'web-red',
        (child) => {
          child.spec.replicas = 5
        },
        'autoscaler',
      )
      const { writes } = await w.reconcile(shop)
      expect(writes).toEqual([`report Mutation ${w.namespace}/shop`])
      expect(await w.variant(shop, 'red')).toMatchObject({ instances: 5, state: 'Progressing' })
    })

    it('stay as they are when instances go from set to absent, and come back when they are set again', async () => {
      const w = await world(api)
      const shop = mutation('shop')
      await w.create(shop.with('red', 4))
      await w.reconcile(shop)
      await w.change(shop.with('red'))
      const { writes } = await w.reconcile(shop)
      expect(writes.slice(0, 2)).toEqual([
        `hand off Deployment ${w.namespace}/web-red`,
        `apply Deployment ${w.namespace}/web-red`,
      ])
      expect((await w.child('web-red'))?.spec.replicas).toBe(4)
      w.forget()
      expect((await w.reconcile(shop)).writes).toEqual([])
      await w.change(shop.with('red', 2))
      await w.reconcile(shop)
      expect((await w.child('web-red'))?.spec.replicas).toBe(2)
      await w.change(shop.with('red'))
      await w.reconcile(shop)
      expect((await w.child('web-red'))?.spec.replicas).toBe(2)
    })

    it('of 0 are not replicas that are unset', async () => {
      const w = await world(api)
      const shop = mutation('shop').with('red', 0)
      await w.create(shop)
      await w.reconcile(shop)
      expect((await w.child('web-red'))?.spec.replicas).toBe(0)
      expect(await w.variant(shop, 'red')).toMatchObject({ state: 'Ready', instances: 0 })
      expect((await w.reconcile(shop)).writes).toEqual([])
    })
  })
}
