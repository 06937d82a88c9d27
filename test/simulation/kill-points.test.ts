import { describe, expect, test } from 'vitest'
import { apiServer } from '../../shared/apiserver/server.ts'
import { type MutantKind, mutantKinds, ownerLabel } from '../../shared/kinds/mutants.ts'
import { deployments, type KubeObject } from '../../shared/kinds/object.ts'
import { kubeClient } from '../../shared/kube/client.ts'
import { createLog } from '../../shared/log.ts'
import { reconcile } from '../../shared/reconcile/reconcile.ts'
import { base, type MutantBuilder, mutant } from '../support/builders.ts'
import { virtualClock } from '../support/clock.ts'
import { installCrds } from '../support/crds.ts'
import { stateOf } from '../support/state.ts'
import { invariants, revisionName } from './invariants.ts'
import { type ProcessOptions, startProcess } from './process.ts'

/**
 * A function is killed at each request of a reconcile, before and after it took effect: every one, none by chance. What
 * the next process finds it ends as if nothing had been.
 */

const at = { namespace: 'default', name: 'web' }
const revision = (n: number) => ({ [revisionName]: `${n}` })

/** A world before a reconcile, and what changes then. */
const stories: Record<
  string,
  { before?: (m: MutantBuilder) => MutantBuilder; next: (m: MutantBuilder) => MutantBuilder }
> = {
  'a new object': {
    next: (m) =>
      m.with('red', 2, revision(1)).with('blue', undefined, revision(1)).with('taken', 1).with('loose', 1),
  },
  'a change, with one variant more and one less': {
    before: (m) => m.with('red', 2, revision(1)).with('blue', 1, revision(1)),
    next: (m) => m.with('red', 3, revision(2)).with('green', 1, revision(2)),
  },
  'instances handed over': {
    before: (m) => m.with('red', 4, revision(1)),
    next: (m) => m.with('red', undefined, revision(2)),
  },
  'a base with a new name': {
    before: (m) => m.with('red', 1, revision(1)).with('blue', 1, revision(1)),
    next: (m) => m.on(base('shop')).with('red', 1, revision(2)).with('blue', 1, revision(2)),
  },
  'a Deployment that may be adopted': {
    next: (m) => m.with('adopted', 1, revision(1)).with('red', 1, revision(1)),
  },
}

async function start(kind: MutantKind, story: (typeof stories)[string]) {
  const clock = virtualClock()
  const server = apiServer({ clock })
  const admin = kubeClient({ transport: server.transport(), clock, userAgent: 'admin' })
  await installCrds(admin)
  const held = invariants(admin)
  const process = (options: Partial<ProcessOptions> = {}) =>
    startProcess({ transport: server.transport(), clock, witness: held.witness, ...options })
  const pass = async (by: ReturnType<typeof process>) =>
    Promise.race([
      by.dead,
      reconcile(kind, at, {
        client: by.client,
        clock: by.clock,
        log: createLog({ name: 'sim', level: 'silent' }),
        adoption: 'label',
        record: async () => {},
        signal: new AbortController().signal,
      }),
    ])
  await admin.create(deployments, foreign('web-taken', 'Website'))
  await admin.create(deployments, foreign('web-loose'))
  const labelled = foreign('stranger', 'Website')
  // It carries our label, and is not ours all the same.
  await admin.create(deployments, {
    ...labelled,
    metadata: { ...labelled.metadata, labels: { [ownerLabel]: 'web' } },
  } as KubeObject)
  await admin.create(deployments, foreign('web-adopted', undefined, { 'neiam.org/adopt': 'true' }))
  const blank = mutant(kind, 'web').in('default')
  if (story.before) {
    await admin.create(kind, story.before(blank).object())
    await pass(process())
    await pass(process())
    const live = await admin.get(kind, at)
    await admin.replace(kind, { ...live, spec: story.next(blank).object().spec } as KubeObject)
  } else await admin.create(kind, story.next(blank).object())
  return { server, admin, held, process, pass }
}

function foreign(name: string, owner?: string, annotations: Record<string, string> = {}): KubeObject {
  const object = base('web') as unknown as KubeObject
  const controller = { apiVersion: 'x.org/v1', kind: owner, name: 'x', uid: 'x-uid', controller: true }
  return {
    ...object,
    metadata: {
      namespace: 'default',
      name,
      annotations,
      ...(owner !== undefined && { ownerReferences: [controller as never] }),
    },
  }
}

/** Passes of fresh processes until one writes nothing; the last that wrote may have been the fourth. */
async function finish({ process, pass }: Awaited<ReturnType<typeof start>>) {
  for (let left = 5; left > 0; left--) {
    const by = process()
    const result = await pass(by)
    expect(result?.outcome).toBe('settled')
    if (by.writes.length === 0) return
  }
  throw new Error('It does not come to rest')
}

describe.each(mutantKinds.map((kind) => [kind.kind, kind] as const))('%s', (_, kind) => {
  test.each(Object.entries(stories))(
    '%s: killed at any request, the next process ends it the same, and then nothing is written',
    async (_name, story) => {
      const calm = await start(kind, story)
      const undisturbed = calm.process()
      await calm.pass(undisturbed)
      await finish(calm)
      const wanted = await stateOf(calm.admin)
      await calm.server.stop()
      expect(calm.held.broken).toEqual([])
      expect(undisturbed.requests()).toBeGreaterThan(3)
      for (let number = 0; number < undisturbed.requests(); number++)
        for (const effect of ['before', 'after'] as const) {
          const world = await start(kind, story)
          const killed = world.process({ dies: { at: number, effect } })
          await world.pass(killed)
          // The children are applied side by side, so the n-th request is not always the same one; but there is one.
          expect(killed.isDead()).toBe(true)
          await finish(world)
          expect({ number, effect, state: await stateOf(world.admin) }).toEqual({
            number,
            effect,
            state: wanted,
          })
          expect({ number, effect, broken: world.held.broken }).toEqual({ number, effect, broken: [] })
          await world.server.stop()
        }
    },
    60_000,
  )
})
