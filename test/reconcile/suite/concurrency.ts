import { describe, expect, it } from 'vitest'
import { systemClock } from '../../../shared/clock.ts'
import type { MutantDeployment } from '../../../shared/kinds/mutants.ts'
import { deployments, secrets } from '../../../shared/kinds/object.ts'
import type { KubeClient } from '../../../shared/kube/client.ts'
import { KubeError } from '../../../shared/kube/errors.ts'
import { base, type MutantBuilder, mutantDeployment, mutation } from '../../support/builders.ts'
import { isWrite, type TestApi, type World, world } from '../../support/world.ts'

/** Two copies at the same work, stale copies, and an API server that fails in the middle. */
export function concurrency(api: TestApi): void {
  const old = mutation('shop').with('red', 1, { V: 'old' }).with('gone', 1)
  const newer = mutation('shop').with('red', 2, { V: 'new' }).with('fresh', 1)

  const expectNewest = async (w: World) => {
    expect(await w.children()).toEqual(['web-fresh', 'web-red'])
    const red = await w.child('web-red')
    expect(red?.spec.replicas).toBe(2)
    expect(red?.spec.template.spec.containers[0]?.env).toEqual([{ name: 'V', value: 'new' }])
    const parent = await w.get(newer)
    expect((await w.status(newer)).observedGeneration).toBe(parent.metadata.generation)
    w.forget()
    expect((await w.reconcile(newer)).writes).toEqual([])
  }

  describe('two reconcilers on different versions', () => {
    // The slow one has read the old spec; at this request of it the spec changes and the fast one does all its work.
    it.each(['get', 'apply', 'delete', 'replace', 'getMetadata'] as const)(
      'end in the newest spec when the slow one is overtaken before its %s',
      async (method) => {
        const w = await world(api)
        await w.create(mutation('shop').with('red', 1).with('pruned', 1))
        await w.reconcile(old)
        await w.change(old)
        let times = 0
        const client = interrupted(w, method, () => {
          times++
          return overtake(w, newer)
        })
        expect((await w.reconcile(old, { client })).outcome).toBe('settled')
        expect(times).toBe(1)
        await expectNewest(w)
      },
    )

    it('end in the newest spec when the slow one is overtaken after its last write to a child', async () => {
      const w = await world(api)
      await w.create(old)
      let overtook = false
      const { client } = w.context
      const slow: KubeClient = {
        ...client,
        apply: async (resource, object, options) => {
          const answer = await client.apply(resource, object, options)
          if (!overtook && object.metadata?.name === 'web-red') {
            overtook = true
            await overtake(w, newer)
            // … and what it had on the wire arrives after all.
            await client.apply(
              deployments,
              { ...object, metadata: { ...object.metadata, uid: answer.object.metadata?.uid ?? '' } },
              { ...options, force: true },
            )
          }
          return answer as never
        },
      }
      await w.reconcile(old, { client: slow })
      await expectNewest(w)
    })

    it('end in the newest spec when they run side by side while the spec changes, again and again', async () => {
      const w = await world(api)
      await w.create(old)
      for (let round = 0; round < 5; round++) {
        const changing = w.change(round % 2 === 0 ? newer : old)
        await Promise.all([
          w.reconcile(old),
          changing,
          w.reconcile(old),
          changing.then(() => w.reconcile(old)),
        ])
      }
      await w.change(newer)
      await Promise.all([w.reconcile(newer), w.reconcile(newer), w.reconcile(newer)])
      await w.reconcile(newer)
      // `gone` goes with the newest spec, whoever made it last.
      await expectNewest(w)
    })

    it('end in the newest spec when the slow one has no status to write', async () => {
      const w = await world(api)
      const before = mutantDeployment('shop').with('red', 1, { V: 'old' })
      const after = mutantDeployment('shop').with('red', 1, { V: 'new' })
      await w.create(before)
      await w.reconcile(before)
      await w.edit('web-red', (child) => {
        child.spec.replicas = 9
      })
      await w.reconcile(before, { client: interrupted(w, 'apply', () => overtake(w, after)) })
      expect((await w.child('web-red'))?.spec.template.spec.containers[0]?.env).toEqual([
        { name: 'V', value: 'new' },
      ])
      w.forget()
      expect((await w.reconcile(after)).writes).toEqual([])
    })

    it('say "later" when the object changes under every try', async () => {
      const w = await world(api)
      await w.create(old)
      let round = 0
      const { client } = w.context
      const result = await w.reconcile(old, {
        client: {
          ...client,
          replace: async (resource, object, options) => {
            round++
            await w.change(mutation('shop').with('red', round + 1))
            return client.replace(resource, object, options)
          },
        },
      })
      expect(result).toMatchObject({ outcome: 'later', error: { label: 'api' } })
      expect(round).toBe(4)
    })
  })

  describe('an old incarnation', () => {
    it('of a child is not brought back by a late write', async () => {
      const w = await world(api)
      const shop = mutation('shop').with('red', 1)
      await w.create(shop)
      await w.reconcile(shop)
      await w.change(shop.with('blue', 1))
      await w.edit('web-red', (child) => {
        child.spec.replicas = 9
      })
      const before = await w.child('web-red')
      const client = interrupted(w, 'apply', async () => {
        await w.change(mutation('shop').with('blue', 1))
        await w.admin.delete(deployments, { namespace: w.namespace, name: 'web-red' })
      })
      await w.reconcile(shop, { client })
      expect(before?.metadata.uid).toBeDefined()
      expect(await w.children()).toEqual(['web-blue'])
    })

    it.each([
      ['another selector', {}],
      ['the very same selector', { mutation: 'red' }],
    ])('of a child never leads to writing over somebody else of its name, with %s', async (_, labels) => {
      const w = await world(api)
      const shop = mutation('shop').with('red', 1)
      await w.create(shop)
      await w.reconcile(shop)
      await w.change(mutation('shop').with('red', 2))
      const client = interrupted(w, 'apply', async () => {
        await w.admin.delete(deployments, { namespace: w.namespace, name: 'web-red' })
        const theirs = { ...base(), metadata: { name: 'web-red', namespace: w.namespace } }
        Object.assign(theirs.spec.selector.matchLabels, labels)
        Object.assign(theirs.spec.template.metadata.labels, labels)
        await w.admin.create(deployments, theirs)
      })
      await w.reconcile(shop, { client })
      expect(await w.variant(shop, 'red')).toMatchObject({ state: 'Conflict' })
      expect((await w.child('web-red'))?.metadata.labels).toBeUndefined()
    })

    it.each(['Background', 'Foreground'] as const)(
      'of the object gives way when it was deleted in the %s: children and Secret belong to the living one',
      async (propagation) => {
        const w = await world(api)
        const shop = mutation('shop').with('red', 1)
        const target = { namespace: w.namespace, name: 'shop' }
        for (let round = 0; round < 5; round++) {
          await w.create(shop)
          await w.reconcile(shop)
          await w.admin.delete(shop.kind, target, { propagation })
          // With its children first, the object is there until the collector has been; a pass meanwhile leaves it alone.
          expect((await w.reconcile(shop)).writes).toEqual([])
          await until(async () => (await w.admin.get(shop.kind, target)) === undefined)
        }
        const living = await w.create(shop)
        await until(async () => {
          const { outcome } = await w.reconcile(shop)
          const owners = await ownersOf(w)
          return (
            outcome === 'settled' && owners.length === 2 && owners.every((uid) => uid === living.metadata.uid)
          )
        })
        expect(await w.variant(shop, 'red')).toMatchObject({ state: 'Progressing' })
        expect((await w.status(shop)).secret).toBe('shop-token')
      },
    )

    it('that left its children behind as orphans: they are taken over by the owner label', async () => {
      const w = await world(api)
      const shop = mutation('shop').with('red', 1)
      await w.create(shop)
      await w.reconcile(shop)
      const first = await w.child('web-red')
      await w.admin.delete(shop.kind, { namespace: w.namespace, name: 'shop' }, { propagation: 'Orphan' })
      await until(
        async () => (await w.admin.get(shop.kind, { namespace: w.namespace, name: 'shop' })) === undefined,
      )
      const living = await w.create(shop)
      await w.reconcile(shop)
      const second = await w.child('web-red')
      expect(second?.metadata.uid).toBe(first?.metadata.uid)
      expect(second?.metadata.ownerReferences?.map(({ uid }) => uid)).toEqual([living.metadata.uid])
    })
  })

  describe('trouble with the API server', () => {
    const shop = mutation('shop').with('red', 1).with('blue', 1)
    const unavailable = () => new KubeError('PATCH: 503', { code: 503, retryAfterSeconds: 7 })

    it('with one child is "later", stops no other, and is seen in the status until it is over', async () => {
      const w = await world(api)
      await w.create(shop)
      const { client } = w.context
      const failing: KubeClient = {
        ...client,
        apply: async (resource, object, options) => {
          if (object.metadata?.name === 'web-red') throw unavailable()
          return client.apply(resource, object, options) as never
        },
      }
      const first = await w.reconcile(shop, { client: failing })
      expect(first).toMatchObject({ outcome: 'later', error: { label: 'api' }, retryAfterSeconds: 7 })
      expect(await w.children()).toEqual(['web-blue'])
      expect(await w.variant(shop, 'red')).toMatchObject({
        state: 'Progressing',
        message: expect.any(String),
      })
      expect((await w.reconcile(shop)).outcome).toBe('settled')
      expect(await w.children()).toEqual(['web-blue', 'web-red'])
    })

    it.each(['list', 'get', 'create', 'replace'] as const)(
      'at its %s is "later", and the next pass mends all',
      async (method) => {
        const w = await world(api)
        await w.create(shop)
        const client = interrupted(w, method, () => Promise.reject(unavailable()))
        expect(await w.reconcile(shop, { client })).toMatchObject({
          outcome: 'later',
          error: { label: 'api' },
        })
        expect((await w.reconcile(shop)).outcome).toBe('settled')
        expect(await w.children()).toEqual(['web-blue', 'web-red'])
        expect((await w.status(shop)).secret).toBe('shop-token')
      },
    )

    it('lets a pass that is called off end at once, and the next one goes on', async () => {
      const w = await world(api)
      await w.create(shop)
      const calledOff = new AbortController()
      const client = interrupted(w, 'apply', async () => calledOff.abort(new Error('out of time')))
      const result = await w.reconcile(shop, { client, signal: calledOff.signal })
      expect(result).toMatchObject({ outcome: 'later', error: { label: 'client' } })
      w.forget()
      expect((await w.reconcile(shop)).outcome).toBe('settled')
      expect(await w.children()).toEqual(['web-blue', 'web-red'])
      expect(w.requests.filter(isWrite).length).toBeGreaterThan(0)
    })
  })
}

/** A client at whose first use of `method` something else happens before. */
function interrupted(w: World, method: keyof KubeClient, before: () => Promise<unknown>): KubeClient {
  const { client } = w.context
  let done = false
  const wrapped = async (...parameters: unknown[]) => {
    if (!done) {
      done = true
      await before()
    }
    return (client[method] as (...all: unknown[]) => unknown)(...parameters)
  }
  return { ...client, [method]: wrapped }
}

async function overtake(w: World, object: MutantBuilder): Promise<void> {
  await w.change(object)
  await w.reconcile(object)
}

async function ownersOf(w: World): Promise<string[]> {
  const child = await w.child('web-red')
  const secret = await w.admin.get<MutantDeployment>(secrets, { namespace: w.namespace, name: 'shop-token' })
  return [child, secret].flatMap((object) => object?.metadata.ownerReferences?.map(({ uid }) => uid) ?? [])
}

const untilMs = 20_000
const pollMs = 100

async function until(isSo: () => Promise<boolean>): Promise<void> {
  const clock = systemClock
  const endMs = clock.monotonicMs() + untilMs
  while (!(await isSo())) {
    if (clock.monotonicMs() > endMs) throw new Error(`It did not come true within ${untilMs} ms`)
    await clock.sleep(pollMs)
  }
}
