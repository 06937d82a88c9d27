import { describe, expect, test } from 'vitest'
import { apiServer } from '../../shared/apiserver/server.ts'
import { type MutantKind, mutantKinds, ownerLabel } from '../../shared/kinds/mutants.ts'
import { deployments, type KubeObject } from '../../shared/kinds/object.ts'
import { kubeClient } from '../../shared/kube/client.ts'
import { createLog } from '../../shared/log.ts'
import type { AdoptionSettings } from '../../shared/reconcile/adoption.ts'
import { objectEventRecorder } from '../../shared/reconcile/object-events.ts'
import { reconcile } from '../../shared/reconcile/reconcile.ts'
import { base, type MutantBuilder, mutant } from '../support/builders.ts'
import { virtualClock } from '../support/clock.ts'
import { installCrds } from '../support/crds.ts'
import { stateOf } from '../support/state.ts'
import { leftByOlder, olderOperator } from './acts.ts'
import { invariants, revisionName } from './invariants.ts'
import { type Death, type ProcessOptions, startProcess } from './process.ts'

/**
 * A function is killed at every point of a reconcile at which its end makes a difference: as each batch of requests that
 * go out side by side reaches the server, with every choice of those that take effect all the same. None is left to
 * chance. What the next process finds it ends as if nothing had been.
 */

const at = { namespace: 'default', name: 'web' }
const revision = (n: number) => ({ [revisionName]: `${n}` })

/** A world before a reconcile, and what changes then. */
interface Story {
  before?: (m: MutantBuilder) => MutantBuilder
  next: (m: MutantBuilder) => MutantBuilder
  settings?: AdoptionSettings
}

const stories: Record<string, Story> = {
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
  'what an older operator left': {
    next: (m) => m.with('left', 1, revision(1)).with('red', 1, revision(1)),
    settings: { adoption: 'legacy', legacyManagers: [olderOperator] },
  },
}

async function start(kind: MutantKind, story: Story) {
  const settings = story.settings ?? { adoption: 'label' as const }
  const clock = virtualClock()
  const server = apiServer({ clock })
  const admin = kubeClient({ transport: server.transport(), clock, userAgent: 'admin' })
  await installCrds(admin)
  const held = invariants(admin, settings)
  const process = (options: Partial<ProcessOptions> = {}) =>
    startProcess({ transport: server.transport(), clock, witness: held.witness, ...options })
  const pass = async (by: ReturnType<typeof process>) =>
    Promise.race([
      by.dead,
      reconcile(kind, at, {
        client: by.client,
        clock: by.clock,
        log: createLog({ name: 'sim', level: 'silent' }),
        ...settings,
        record: objectEventRecorder({
          client: by.client,
          clock: by.clock,
          reporter: { controller: 'neiam.org/simulation', instance: 'one' },
        }),
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
  await admin.create(deployments, leftByOlder('default', 'web', 'left'), { fieldManager: olderOperator })
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

/** Each batch, with each choice of its writes that take effect. */
function deathsOf(batches: readonly number[]): Death[] {
  return batches.flatMap((writes, batch) =>
    Array.from({ length: 2 ** writes }, (_, survivors) => ({ batch, survivors })),
  )
}

describe.each(mutantKinds.map((kind) => [kind.kind, kind] as const))('%s', (_, kind) => {
  test.each(Object.entries(stories))(
    '%s: killed at any point, the next process ends it the same, and then nothing is written',
    async (_name, story) => {
      const calm = await start(kind, story)
      const undisturbed = calm.process()
      await calm.pass(undisturbed)
      await finish(calm)
      const wanted = await stateOf(calm.admin)
      await calm.server.stop()
      expect(calm.held.broken).toEqual([])
      const deaths = deathsOf(undisturbed.batches)
      expect(deaths.length).toBeGreaterThan(5)
      for (const dies of deaths) {
        const world = await start(kind, story)
        const killed = world.process({ dies })
        await world.pass(killed)
        expect({ dies, isDead: killed.isDead() }).toEqual({ dies, isDead: true })
        await finish(world)
        expect({ dies, state: await stateOf(world.admin) }).toEqual({ dies, state: wanted })
        expect({ dies, broken: world.held.broken }).toEqual({ dies, broken: [] })
        await world.server.stop()
      }
    },
    60_000,
  )
})
