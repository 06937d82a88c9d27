import { describe, expect, it } from 'vitest'
import { deployments, secrets } from '../../../shared/kinds/object.ts'
import { base, mutantDeployment, mutation } from '../../support/builders.ts'
import { isWrite, type TestApi, type World, world } from '../../support/world.ts'

/** Whose a Deployment is: adoption, taking over, pruning. */
export function ownership(api: TestApi): void {
  describe('a Deployment that nobody controls', () => {
    const shop = mutation('shop').with('red', 2)

    it('is a Conflict, with what to do about it', async () => {
      const w = await world(api)
      await standing(w)
      await w.create(shop)
      await w.reconcile(shop)
      expect(await w.variant(shop, 'red')).toMatchObject({
        state: 'Conflict',
        message: expect.stringContaining('neiam.org/adopt'),
      })
      expect((await w.child('web-red'))?.spec.replicas).toBe(1)
    })

    it.each([
      ['has the annotation', { annotations: { 'neiam.org/adopt': 'true' } }, 'label'],
      ['has the owner label of the object', { labels: { 'neiam.org/owner': 'shop' } }, 'label'],
      ['is there at all and adoption is "always"', {}, 'always'],
    ] as const)('is taken over in two writes when it %s', async (_, metadata, adoption) => {
      const w = await world(api)
      const theirs = await standing(w, metadata)
      const parent = await w.create(shop)
      const { writes } = await w.reconcile(shop, { adoption })
      // The Secret is made beside the children, whichever comes first.
      expect(writes.filter((line) => !line.startsWith('create Secret'))).toEqual([
        `take over Deployment ${w.namespace}/web-red`,
        `apply Deployment ${w.namespace}/web-red`,
        `report Mutation ${w.namespace}/shop`,
      ])
      const red = await w.child('web-red')
      expect(red?.metadata.uid).toBe(theirs.metadata.uid)
      expect(red?.metadata.ownerReferences?.[0]?.uid).toBe(parent.metadata.uid)
      expect(red?.spec.replicas).toBe(2)
      w.forget()
      expect((await w.reconcile(shop, { adoption })).writes).toEqual([])
    })

    it('keeps its pods: selector and template stay as they are when the base says the same', async () => {
      const w = await world(api)
      const theirs = await standing(w, { annotations: { 'neiam.org/adopt': 'true' } })
      await w.create(mutation('shop').with('red', 1))
      await w.reconcile(shop)
      const red = await w.child('web-red')
      expect(red?.spec.selector).toEqual({ matchLabels: { app: 'web' } })
      expect(red?.spec.template).toEqual((theirs as unknown as { spec: { template: unknown } }).spec.template)
      expect(red?.metadata.labels).toMatchObject({ mutation: 'red', 'neiam.org/owner': 'shop' })
    })

    it('does not keep what goes from the base later, but keeps what was never in it', async () => {
      const w = await world(api)
      const theirs = await standing(
        w,
        { annotations: { 'neiam.org/adopt': 'true' }, labels: { tier: 'front', theirs: 'yes' } },
        (d) => {
          Object.assign(d.spec.template.spec.containers[0] ?? {}, {
            env: [
              { name: 'A', value: '1' },
              { name: 'B', value: '2' },
            ],
          })
          d.spec.template.spec.containers.push({ name: 'sidecar', image: 'proxy' })
        },
      )
      const full = mutation('shop')
        .with('red', 1, { A: '1', B: '2' })
        .based((d) => {
          d.metadata.labels = { tier: 'front' }
        })
      await w.create(full)
      await w.reconcile(shop)
      expect((await w.child('web-red'))?.spec).toEqual(theirs.spec)
      await w.change(
        mutation('shop')
          .with('red', 1, { A: '1' })
          .based((d) => {
            d.metadata.labels = {}
          }),
      )
      await w.reconcile(shop)
      const red = await w.child('web-red')
      expect(red?.metadata.labels).toEqual({ theirs: 'yes', mutation: 'red', 'neiam.org/owner': 'shop' })
      const [main, sidecar] = red?.spec.template.spec.containers ?? []
      expect(main?.env).toEqual([{ name: 'A', value: '1' }])
      expect(sidecar?.name).toBe('sidecar')
      w.forget()
      expect((await w.reconcile(shop)).writes).toEqual([])
    })
  })

  describe('what the older operator left', () => {
    const legacy = { adoption: 'legacy', legacyManagers: ['older-operator'] } as const

    it('is taken over whole: what went from the base meanwhile goes, and no manager of old is left', async () => {
      const w = await world(api)
      await standing(
        w,
        { labels: { app: 'web', mutation: 'red', x: 'y' } },
        (d) => {
          Object.assign(d.spec.template.spec.containers[0] ?? {}, {
            env: [
              { name: 'A', value: '1' },
              { name: 'B', value: '2' },
            ],
          })
        },
        'older-operator',
      )
      const shop = mutantDeployment('shop').with('red', 1, { A: '1' })
      await w.create(shop)
      expect((await w.reconcile(shop)).outcome).toBe('settled')
      expect(await w.variant(shop, 'red')).toMatchObject({ state: 'Conflict' })
      const { writes } = await w.reconcile(shop, legacy)
      expect(writes.slice(0, 2)).toEqual([
        `take over Deployment ${w.namespace}/web-red`,
        `apply Deployment ${w.namespace}/web-red`,
      ])
      const red = await w.child('web-red')
      expect(red?.metadata.labels).toEqual({ app: 'web', mutation: 'red', 'neiam.org/owner': 'shop' })
      expect(red?.spec.template.spec.containers[0]?.env).toEqual([{ name: 'A', value: '1' }])
      expect(red?.spec.template.metadata.labels).toEqual({ app: 'web' })
      expect(red?.metadata.managedFields?.map(({ manager }) => manager)).toEqual(['mutantops-operator'])
      w.forget()
      expect((await w.reconcile(shop, legacy)).writes).toEqual([])
    })

    it('is taken over after a crash between the two writes', async () => {
      const w = await world(api)
      await standing(w, { labels: { app: 'web', mutation: 'red' } }, undefined, 'older-operator')
      const shop = mutantDeployment('shop').with('red', 3)
      await w.create(shop)
      const stopped = new AbortController()
      const first = await w.reconcile(shop, {
        ...legacy,
        signal: stopped.signal,
        client: {
          ...w.context.client,
          apply: (resource, object, options) => {
            if (options.force) stopped.abort(new Error('killed'))
            return w.context.client.apply(resource, object, options)
          },
        },
      })
      expect(first).toMatchObject({
        outcome: 'later',
        writes: [`take over Deployment ${w.namespace}/web-red`],
      })
      await w.reconcile(shop, legacy)
      expect((await w.child('web-red'))?.spec.replicas).toBe(3)
      expect(await w.variant(shop, 'red')).toMatchObject({ state: 'Progressing' })
    })

    it('is mended where an env name stands twice', async () => {
      const w = await world(api)
      await standing(
        w,
        { labels: { app: 'web', mutation: 'red' } },
        (d) => {
          Object.assign(d.spec.template.spec.containers[0] ?? {}, {
            env: [
              { name: 'A', value: '1' },
              { name: 'A', value: '2' },
            ],
          })
        },
        'older-operator',
      )
      const shop = mutantDeployment('shop').with('red', 1, { A: '3' })
      await w.create(shop)
      await w.reconcile(shop, legacy)
      expect((await w.child('web-red'))?.spec.template.spec.containers[0]?.env).toEqual([
        { name: 'A', value: '3' },
      ])
    })
  })

  describe('pruning', () => {
    it('deletes what no variant wants, and what only looks like it stays', async () => {
      const w = await world(api)
      const shop = mutation('shop').with('red', 1)
      const namesake = mutantDeployment('shop')
        .with('red', 1)
        .based((d) => {
          d.metadata.name = 'other'
        })
      await w.create(shop.with('blue', 1))
      await w.create(namesake)
      await w.reconcile(shop)
      await w.reconcile(namesake)
      const labelled = base()
      labelled.metadata = {
        name: 'labelled',
        namespace: w.namespace,
        labels: { 'neiam.org/owner': 'shop' },
      } as typeof labelled.metadata
      await w.admin.create(deployments, labelled)
      await w.change(shop)
      w.forget()
      const { writes } = await w.reconcile(shop)
      expect(writes).toEqual([
        `delete Deployment ${w.namespace}/web-blue`,
        `report Mutation ${w.namespace}/shop`,
      ])
      expect(w.requests).toHaveLength(5)
      expect(await w.children()).toEqual(['labelled', 'other-red', 'web-red'])
      await w.change(mutation('shop'))
      await w.reconcile(shop)
      expect(await w.children()).toEqual(['labelled', 'other-red'])
    })

    it('finds a child whose labels somebody took, by the status that names it', async () => {
      const w = await world(api)
      const shop = mutation('shop').with('red', 1)
      await w.create(shop.with('blue', 1))
      await w.reconcile(shop)
      await w.edit('web-blue', (child) => {
        child.metadata.labels = {}
      })
      await w.change(shop)
      await w.reconcile(shop)
      expect(await w.children()).toEqual(['web-red'])
    })

    it('waits after a rename of the base until the new Deployment is ready', async () => {
      const w = await world(api)
      const shop = mutation('shop').with('red', 1)
      await w.create(shop)
      await w.reconcile(shop)
      await w.change(
        mutation('shop')
          .with('red', 1)
          .based((d) => {
            d.metadata.name = 'net'
          }),
      )
      await w.reconcile(shop)
      await w.reconcile(shop)
      expect(await w.children()).toEqual(['net-red', 'web-red'])
      await w.makeReady('net-red')
      const { writes } = await w.reconcile(shop)
      expect(writes).toContain(`delete Deployment ${w.namespace}/web-red`)
      expect(await w.children()).toEqual(['net-red'])
    })

    it('never takes down another Deployment that has got the name meanwhile', async () => {
      const w = await world(api)
      const shop = mutation('shop').with('red', 1)
      await w.create(shop.with('blue', 1))
      await w.reconcile(shop)
      await w.change(shop)
      const client = w.context.client
      await w.reconcile(shop, {
        client: {
          ...client,
          delete: async (resource, target, options) => {
            await w.admin.delete(resource, target)
            await standing(w, {}, undefined, 'somebody', target.name)
            return client.delete(resource, target, options)
          },
        },
      })
      expect(await w.children()).toEqual(['web-blue', 'web-red'])
    })
  })

  describe('the token Secret', () => {
    const shop = mutation('shop').with('red', 1)
    const target = (w: World) => ({ namespace: w.namespace, name: 'shop-token' })

    it('is made once with 32 random bytes, and then stays', async () => {
      const w = await world(api)
      const parent = await w.create(shop)
      await w.reconcile(shop)
      const secret = await w.admin.get(secrets, target(w))
      expect(secret?.type).toBe('Opaque')
      expect(secret?.metadata.ownerReferences).toMatchObject([{ uid: parent.metadata.uid, controller: true }])
      const token = Buffer.from(
        (secret?.data as { token: string } | undefined)?.token ?? '',
        'base64',
      ).toString()
      expect(Buffer.from(token, 'base64url')).toHaveLength(32)
      expect((await w.status(shop)).secret).toBe('shop-token')
      await w.reconcile(shop)
      await w.change(shop.with('blue', 1))
      await w.reconcile(shop)
      expect((await w.admin.get(secrets, target(w)))?.metadata.resourceVersion).toBe(
        secret?.metadata.resourceVersion,
      )
      expect(JSON.stringify([await w.status(shop), w.events])).not.toContain(token)
    })

    it('comes back, with another token, when it was deleted', async () => {
      const w = await world(api)
      await w.create(shop)
      await w.reconcile(shop)
      const first = await w.admin.get(secrets, target(w))
      await w.admin.delete(secrets, target(w))
      await w.reconcile(shop)
      const second = await w.admin.get(secrets, target(w))
      expect(second?.data).toBeDefined()
      expect(second?.data).not.toEqual(first?.data)
    })

    it('of somebody else is left alone, reported, and never named', async () => {
      const w = await world(api)
      const theirs = { apiVersion: 'v1', kind: 'Secret', metadata: target(w), data: { token: 'dGhlaXJz' } }
      await w.admin.create(secrets, theirs)
      await w.create(shop)
      const { outcome } = await w.reconcile(shop)
      expect(outcome).toBe('settled')
      const status = await w.status(shop)
      expect(status.secret).toBeUndefined()
      expect(status.message).toContain('"shop-token"')
      expect((await w.admin.get(secrets, target(w)))?.data).toEqual(theirs.data)
      expect(await w.children()).toEqual(['web-red'])
    })

    it('whose name would be too long is reported, and the variants run', async () => {
      const w = await world(api)
      const long = mutation(`${'a'.repeat(120)}.${'b'.repeat(129)}`).with('red', 1)
      await w.create(long)
      expect((await w.reconcile(long)).outcome).toBe('settled')
      expect((await w.status(long)).message).toContain('too long')
      expect(await w.children()).toEqual(['web-red'])
      w.forget()
      await w.reconcile(long)
      expect(w.requests.filter(isWrite)).toEqual([])
    })

    it('is made for a Mutation only', async () => {
      const w = await world(api)
      await w.create(mutantDeployment('shop').with('red', 1))
      await w.reconcile(mutantDeployment('shop'))
      expect(await w.admin.get(secrets, target(w))).toBeUndefined()
    })
  })
}

/** A Deployment `web-red` that somebody made, from the same base. */
async function standing(
  w: World,
  metadata: object = {},
  change: (deployment: ReturnType<typeof base>) => void = () => {},
  manager = 'kubectl-create',
  name = 'web-red',
) {
  const deployment = base()
  deployment.metadata = { name, namespace: w.namespace, ...metadata } as typeof deployment.metadata
  change(deployment)
  return w.admin.create(deployments, deployment, { fieldManager: manager })
}
