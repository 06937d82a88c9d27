import { afterAll, describe, expect, test } from 'vitest'
import { objectTypes, pingType } from '../../shared/cloudevents/envelope.ts'
import { mutantKinds } from '../../shared/kinds/mutants.ts'
import { deployments, type KubeObject, type StoredObject, secrets } from '../../shared/kinds/object.ts'
import { base, type MutantBuilder, mutant } from '../support/builders.ts'
import { stateOf } from '../support/state.ts'
import { revisionName } from './invariants.ts'
import { type Simulation, simulation } from './world.ts'

/**
 * A seed decides all that goes wrong. `SEED=n npm run test:sim` runs one again; `SEEDS=n` runs so many, and they are
 * shared among as many files as there are cores on a small machine.
 */

/** How many files take a share of the seeds. */
const shares = 2

/** The seeds of one share, from 0. */
function seedsOf(share: number): number[] {
  const { SEED: one, SEEDS: count = 100 } = process.env
  const all = one ? [Number(one)] : Array.from({ length: Number(count) }, (_, n) => n + 1)
  return all.filter((_, index) => index % shares === share)
}

const namespace = 'default'
const labels = ['red', 'blue', 'green', 'taken']

function builderOf(index: number, variants: string[], revision: number): MutantBuilder {
  const [kind] = mutantKinds.slice(index % 2)
  if (!kind) throw new Error('There is no such kind')
  const blank = mutant(kind, `web-${index}`)
    .in(namespace)
    .on(base(`base-${index}`))
  return variants.reduce(
    (built, label) => built.with(label, revision % 4, { [revisionName]: `${revision}` }),
    blank,
  )
}

async function act(world: Simulation, revision: number): Promise<void> {
  const { admin, clock, server } = world
  const index = Math.floor(clock.random() * 3)
  const variants = labels.filter(() => clock.random() < 0.7)
  const wanted = builderOf(index, variants, revision)
  const live = await admin.get(wanted.kind, { namespace, name: wanted.name })
  const child = { namespace, name: `base-${index}-red` }
  const choice = clock.random()
  if (!live) await admin.create(wanted.kind, wanted.object())
  else if (choice < 0.6)
    await admin.replace(wanted.kind, { ...live, spec: wanted.object().spec } as KubeObject)
  else if (choice < 0.7) await admin.delete(deployments, child).catch(() => {})
  else if (choice < 0.8) await edit(world, child)
  else if (choice < 0.85) server.restart({ history: clock.random() < 0.5 ? 'kept' : 'lost' })
  else if (choice < 0.9) server.compact()
  else clock.jumpWallClock((clock.random() - 0.5) * 7_200_000)
}

async function edit({ admin }: Simulation, name: { namespace: string; name: string }): Promise<void> {
  const live = await admin.get<StoredObject & { spec: { replicas: number } }>(deployments, name)
  if (live)
    await admin.replace(
      deployments,
      { ...live, spec: { ...live.spec, replicas: 7 } },
      { fieldManager: 'hand' },
    )
}

export async function run(seed: number): Promise<Simulation> {
  const world = await simulation(seed)
  const { clock, admin, state, held } = world
  const other = { apiVersion: 'x.org/v1', kind: 'Website', name: 'x', uid: 'x-uid', controller: true }
  for (const index of [0, 1, 2]) {
    const object = base(`base-${index}`) as unknown as KubeObject
    const metadata = { namespace, name: `base-${index}-taken`, ownerReferences: [other] }
    await admin.create(deployments, { ...object, metadata } as KubeObject)
  }
  let watchers = [await world.startWatcher('a'), await world.startWatcher('b')]
  await world.advance(5_000)
  state.isTroubled = true
  for (let revision = 1; revision <= 20; revision++) {
    await act(world, revision)
    const [first] = watchers
    const fate = clock.random()
    if (fate < 0.1) first?.pause()
    else if (fate < 0.3) first?.resume()
    else if (fate < 0.35) {
      first?.kill()
      watchers = [...watchers.slice(1), await world.startWatcher(`w-${revision}`)]
    }
    await world.advance(Math.ceil(clock.random() * 15_000))
    expect(held.broken).toEqual([])
  }
  state.isTroubled = false
  for (const [index, watcher] of watchers.entries()) {
    watcher.resume()
    // Some died by themselves.
    if (watcher.isDead()) await world.startWatcher(`late-${index}`)
  }
  return world
}

/** One resync period, and the longest that a delivery which began in trouble may still be tried. */
const boundMs = 300_000 + 280_000 + 60_000

/** Longer than a resync period: whatever would still write does so within it. */
const quietMs = 310_000

export function simulationSuite(share: number): void {
  const seeds = seedsOf(share)
  let kills = 0
  afterAll(() => {
    // Else the trouble was none.
    if (seeds.length > 1) expect(kills).toBeGreaterThan(0)
  })

  // A share may have none, when one seed is run again.
  describe.runIf(seeds.length > 0)('whatever goes wrong', () => {
    test.each(seeds)(
      'seed %i: nothing that must hold is broken, all converges within a resync of the end of the trouble, and then nothing is written',
      async (seed) => {
        const world = await run(seed)
        kills += world.state.kills
        await expectPeace(world)
        await world.stop()
      },
      120_000,
    )
  })
}

async function expectPeace(world: Simulation): Promise<void> {
  const { admin, state, held } = world
  await world.advance(boundMs)
  expect(held.broken).toEqual([])
  expect(state.deliveries).toBe(0)
  for (const kind of mutantKinds)
    for (const parent of (await admin.list(kind, { namespace })).items) await expectConverged(world, parent)
  const before = await stateOf(admin)
  state.writes.length = 0
  state.events.length = 0
  await world.advance(quietMs)
  expect(state.writes).toEqual([])
  // A variant whose name is taken is looked at again at each resync; nothing else is worth an event.
  const types = new Set(state.events.map(({ type }) => type))
  expect([...types].filter((type) => type !== pingType && type !== objectTypes.resync)).toEqual([])
  expect(await stateOf(admin)).toEqual(before)
}

async function expectConverged({ admin }: Simulation, parent: StoredObject): Promise<void> {
  const index = Number(parent.metadata.name.split('-')[1])
  const kind = mutantKinds.find((one) => one.kind === parent.kind)
  const spec = parent.spec as Record<
    string,
    { label: string; instances: number; env: Record<string, string> }[]
  >
  const variants = spec[kind?.variantsField ?? ''] ?? []
  const children = (
    await admin.list<StoredObject & { spec: Child }>(deployments, { namespace })
  ).items.filter(({ metadata }) => metadata.ownerReferences?.some(({ uid }) => uid === parent.metadata.uid))
  const got = children.map(({ metadata, spec: { replicas, template } }) => {
    const revision = template.spec.containers[0]?.env.find(({ name }) => name === revisionName)?.value
    return [metadata.name, replicas, revision]
  })
  const wanted = variants
    .filter(({ label }) => label !== 'taken')
    .map(({ label, instances, env }) => [`base-${index}-${label}`, instances, env[revisionName]])
  expect(got.sort()).toEqual(wanted.sort())
  expect(parent.status).toMatchObject({ observedGeneration: parent.metadata.generation })
  const states = (parent.status as { variants: { label: string; state: string }[] }).variants
  for (const { label, state } of states)
    expect([label, state]).toEqual([label, label === 'taken' ? 'Conflict' : 'Ready'])
  if (kind?.hasSecret)
    expect(await admin.get(secrets, { namespace, name: `${parent.metadata.name}-token` })).toBeDefined()
}

interface Child {
  replicas: number
  template: { spec: { containers: { env: { name: string; value?: string }[] }[] } }
}
