import { expect } from 'vitest'
import { mutantKindOf, mutantKinds, variantLabel } from '../../shared/kinds/mutants.ts'
import { controllerOf, deployments, events, type StoredObject, secrets } from '../../shared/kinds/object.ts'
import type { Stage } from './acts.ts'
import { deliveryMaxMs } from './broker.ts'
import { revisionName } from './invariants.ts'
import type { Play } from './suite.ts'
import { election, resyncPeriodMs, type Simulation } from './world.ts'

/** How it must be once the trouble is over. */

/** A delivery that began in trouble, a new leader, and then a resync and what it sends. */
const boundMs =
  deliveryMaxMs +
  (election.leaseDurationSeconds + election.retryPeriodSeconds) * 1_000 +
  resyncPeriodMs +
  60_000
/** Longer than a resync period: whatever would still write does so within it. */
const quietMs = resyncPeriodMs + 10_000
/** How often it is looked at whether it is quiet, in ms. */
const lookMs = 20_000

/** Within the bound a resync period begins in which nothing is written and nothing sent; then all is as it should be. */
export async function expectPeace({ world, stage }: Play): Promise<void> {
  const { clock, state, held, advance } = world
  const endMs = clock.monotonicMs() + boundMs + quietMs
  while (state.deliveries > 0 || clock.monotonicMs() - state.activeAtMs < quietMs) {
    if (clock.monotonicMs() > endMs)
      expect.fail(`It does not come to rest: ${state.trace.slice(-10).join(', ')}`)
    await advance(lookMs)
    held.check()
  }
  await expectConverged(stage)
  await expectTold(world, stage)
}

interface Child extends StoredObject {
  spec: {
    replicas: number
    template: { spec: { containers: { env?: { name: string; value?: string }[] }[] } }
  }
}

/** All is as the objects want it, and what was deleted is gone. */
export async function expectConverged(stage: Stage): Promise<void> {
  const { admin, namespace } = stage
  const { items: children } = await admin.list<Child>(deployments, { namespace })
  const uids = new Set<string>()
  for (const kind of mutantKinds)
    for (const parent of (await admin.list(kind, { namespace })).items) {
      uids.add(parent.metadata.uid)
      await expectParent(stage, parent, children)
    }
  // What was deleted is gone, with all that it owned.
  const orphans = children.filter((child) => {
    const owner = controllerOf(child)
    return owner && mutantKinds.some(({ kind }) => kind === owner.kind) && !uids.has(owner.uid)
  })
  expect(orphans.map(({ metadata }) => metadata.name)).toEqual([])
}

async function expectParent(
  { admin, namespace, strangers }: Stage,
  parent: StoredObject,
  children: Child[],
): Promise<void> {
  const kind = mutantKinds.find((one) => one.kind === parent.kind)
  const spec = parent.spec as Record<
    string,
    { label: string; instances: number; env: Record<string, string> }[]
  >
  const variants = spec[kind?.variantsField ?? ''] ?? []
  const baseName = (parent.spec as { deployment: StoredObject }).deployment.metadata.name
  const isTaken = (label: string) => strangers.has(`${baseName}-${label}`)
  const wanted = variants
    .filter(({ label }) => !isTaken(label))
    .map(({ label, instances, env }) => [`${baseName}-${label}`, instances, env[revisionName]])
  const got = children
    .filter((child) => controllerOf(child)?.uid === parent.metadata.uid)
    // A variant whose new name is taken goes on under its old one.
    .filter(({ metadata }) => {
      const label = metadata.labels?.[variantLabel] ?? ''
      return (
        metadata.name === `${baseName}-${label}` ||
        !isTaken(label) ||
        !variants.some((v) => v.label === label)
      )
    })
    .map(({ metadata, spec: { replicas, template } }) => {
      const env = template.spec.containers[0]?.env ?? []
      const revisions = env.filter(({ name }) => name === revisionName).map(({ value }) => value)
      return [metadata.name, replicas, ...revisions]
    })
  expect(got.sort()).toEqual(wanted.sort())
  expect(parent.status).toMatchObject({ observedGeneration: parent.metadata.generation })
  const states = (parent.status as { variants: { label: string; state: string }[] }).variants
  expect(states.map(({ label, state }) => [label, state])).toEqual(
    variants.map(({ label }) => [label, isTaken(label) ? 'Conflict' : 'Ready']),
  )
  if (kind?.hasSecret)
    expect(await admin.get(secrets, { namespace, name: `${parent.metadata.name}-token` })).toBeDefined()
}

/** Of each event that was given up its object tells, if it is still there. */
async function expectTold({ admin, state }: Simulation, { namespace }: Stage): Promise<void> {
  const { items } = await admin.list<StoredObject & { reason?: string; regarding?: { name?: string } }>(
    events,
    { namespace },
  )
  const told = new Set(
    items.filter(({ reason }) => reason === 'EventGivenUp').map(({ regarding }) => regarding?.name),
  )
  for (const { extensions, subject = '' } of state.givenUp) {
    const kind = mutantKindOf({ kind: extensions.kind ?? '', apiVersion: 'neiam.org/v1' })
    const name = subject.split('/').at(-1) ?? ''
    if (kind && (await admin.get(kind, { namespace, name }))) expect([...told]).toContain(name)
  }
}
