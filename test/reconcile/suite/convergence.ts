import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { systemClock } from '../../../shared/clock.ts'
import { appliedAnnotation } from '../../../shared/kinds/mutants.ts'
import { deployments, type StoredObject, secrets } from '../../../shared/kinds/object.ts'
import { kubeClient, type Transport } from '../../../shared/kube/client.ts'
import { type MutantBuilder, mutation } from '../../support/builders.ts'
import { type TestApi, type World, world } from '../../support/world.ts'

/**
 * Whatever happens on the way (changes, hands, copies at once, lost requests and lost answers), the end is that of the
 * newest spec, as if it had been made from nothing; and then nothing is written.
 */

type Fault = 'none' | 'lost request' | 'lost answer' | 'unavailable'
type Op =
  | { do: 'change'; variants: [string, number, string][]; name: string }
  | { do: 'edit' | 'remove' | 'strip' | 'ready'; which: number }
  | { do: 'reconcile'; faults: Fault[]; beside: number }

/** The last spec has no invalid variant: such a one keeps what ran before, which is history. */
const last = fc.record({
  do: fc.constant('change' as const),
  variants: fc.array(
    fc.tuple(fc.constantFrom('red', 'blue', 'green'), fc.nat(2), fc.constantFrom('old', 'new')),
    { maxLength: 3 },
  ),
  name: fc.constantFrom('web', 'net'),
})
const variant = fc.tuple(
  fc.constantFrom('red', 'blue', 'green'),
  fc.constantFrom(-1, 0, 1, 2),
  fc.constantFrom('old', 'new'),
)
const op: fc.Arbitrary<Op> = fc.oneof(
  fc.record({
    do: fc.constant('change' as const),
    variants: fc.array(variant, { maxLength: 3 }),
    name: fc.constantFrom('web', 'web', 'net'),
  }),
  fc.record({
    do: fc.constantFrom('edit' as const, 'remove' as const, 'strip' as const, 'ready' as const),
    which: fc.nat(2),
  }),
  fc.record({
    do: fc.constant('reconcile' as const),
    faults: fc.array(
      fc.constantFrom<Fault>('none', 'none', 'none', 'lost request', 'lost answer', 'unavailable'),
      { maxLength: 10 },
    ),
    beside: fc.nat(2),
  }),
)

function objectOf({ variants, name }: Extract<Op, { do: 'change' }>): MutantBuilder {
  return variants.reduce<MutantBuilder>(
    (object, [label, instances, value]) => object.with(label, instances, { V: value }),
    mutation('shop').based((d) => {
      d.metadata.name = name
    }),
  )
}

/** A wire that breaks as told, request by request, and then holds. */
function faulty(transport: Transport, faults: Fault[]): Transport {
  const queue = faults.values()
  return {
    baseUrl: transport.baseUrl,
    fetch: async (url, init) => {
      const fault = queue.next().value ?? 'none'
      if (fault === 'unavailable') return new Response('{}', { status: 503 })
      if (fault === 'lost request') throw new Error('reset')
      const answer = await transport.fetch(url, init)
      if (fault === 'lost answer') throw new Error('reset')
      return answer
    },
  }
}

/** `runs` courses, chosen by chance. */
export function convergence(api: TestApi, runs: number): void {
  describe('any course of events', () => {
    it('ends in what the newest spec makes from nothing, and then writes nothing', {
      timeout: 60_000,
    }, async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(op, { minLength: 3, maxLength: 12 }), last, async (ops, end) => {
          const w = await world(api)
          await w.create(mutation('shop').with('red', 1, { V: 'old' }))
          for (const one of ops) {
            if (one.do === 'change') await w.change(objectOf(one))
            else if (one.do === 'reconcile') {
              await Promise.all(Array.from({ length: one.beside + 1 }, () => reconcileOver(w, one.faults)))
            } else await touch(w, one)
          }
          const newest = objectOf(end)
          await w.change(newest)
          await settle(w, newest)

          const fresh = await world(api)
          await fresh.create(newest)
          await settle(fresh, newest)
          expect(await shapeOf(w)).toEqual(await shapeOf(fresh))
        }),
        { numRuns: runs },
      )
    })
  })

  async function reconcileOver(w: World, faults: Fault[]): Promise<void> {
    const transport = faulty(api.transport(), faults)
    const client = kubeClient({ transport, clock: systemClock, userAgent: 'mutantops', retries: 0 })
    await w.reconcile(mutation('shop'), { client })
  }
}

async function touch(w: World, { do: what, which }: { do: string; which: number }): Promise<void> {
  const name = (await w.children())[which]
  if (name === undefined) return
  if (what === 'remove') await w.admin.delete(deployments, { namespace: w.namespace, name })
  else if (what === 'ready') await w.makeReady(name)
  else
    await w.edit(name, (child) => {
      if (what === 'strip') {
        // Not the owner label: who takes that off, too, before a variant goes and while no status can be written, hides it.
        child.metadata.labels = { 'neiam.org/owner': 'shop' }
        delete child.metadata.annotations
      } else {
        child.spec.replicas = 9
        child.spec.template.spec.containers[0] = { name: 'main', image: 'edited:1' }
      }
    })
}

/** Reconciles without faults until all is ready, and shows that a pass after that writes nothing. */
async function settle(w: World, object: MutantBuilder): Promise<void> {
  for (let pass = 0; pass < 3; pass++) {
    expect((await w.reconcile(object)).outcome).toBe('settled')
    for (const name of await w.children()) await w.makeReady(name)
  }
  expect((await w.reconcile(object)).writes).toEqual([])
}

/** Everything that is there, without what differs from world to world. */
async function shapeOf(w: World): Promise<unknown> {
  const { items } = await w.admin.list(deployments, { namespace: w.namespace })
  const { status } = await w.get(mutation('shop'))
  const {
    conditions,
    observedGeneration: _,
    ...told
  } = status as { conditions: object[]; observedGeneration: number }
  const secret = await w.admin.get(secrets, { namespace: w.namespace, name: 'shop-token' })
  return {
    children: Object.fromEntries(items.map((child) => [child.metadata.name, shapeOfChild(child)])),
    told,
    conditions: conditions.map((condition) => ({
      ...condition,
      lastTransitionTime: '',
      observedGeneration: 0,
    })),
    secret: secret?.metadata.name,
  }
}

function shapeOfChild({ metadata, spec }: StoredObject): unknown {
  const { labels, annotations, ownerReferences } = metadata
  const { [appliedAnnotation]: _, ...others } = annotations ?? {}
  return {
    labels,
    annotations: others,
    owners: ownerReferences?.map(({ kind, name }) => ({ kind, name })),
    spec,
  }
}
