import { mutantKinds, pausedAnnotation, variantLabel } from '../../shared/kinds/mutants.ts'
import { deployments, type KubeObject, type StoredObject } from '../../shared/kinds/object.ts'
import { isConflict, isNotFound } from '../../shared/kube/errors.ts'
import { base, type MutantBuilder, mutant } from '../support/builders.ts'
import { revisionName } from './invariants.ts'
import type { Simulation } from './world.ts'

/** What people and other programs do while the operator works; which of it, the seed says. */

export const namespace = 'default'
const labels = ['red', 'blue', 'green', 'taken']
const objects = [0, 1, 2]
/** What an older operator wrote under. */
export const olderOperator = 'older-operator'

/** A world and what its people have done that decides how it must end. */
export interface Stage {
  world: Simulation
  /** The names of Deployments that are not the operator's to take. */
  strangers: Set<string>
}

/** What was there before the operator came: others' Deployments, and those that an older operator left. */
export async function prepare(world: Simulation, adoptsLegacy: boolean): Promise<Stage> {
  const strangers = new Set<string>()
  const other = { apiVersion: 'x.org/v1', kind: 'Website', name: 'x', uid: 'x-uid', controller: true }
  for (const index of objects) {
    const taken = deployment(`base-${index}-taken`, { ownerReferences: [other] })
    await world.admin.create(deployments, taken)
    strangers.add(`base-${index}-taken`)
    await world.admin.create(deployments, leftByOlder(`base-${index}`, 'blue'), {
      fieldManager: olderOperator,
    })
    if (!adoptsLegacy) strangers.add(`base-${index}-blue`)
  }
  return { world, strangers }
}

function deployment(name: string, metadata: object = {}): KubeObject {
  const object = base(name.slice(0, name.lastIndexOf('-'))) as unknown as KubeObject
  return { ...object, metadata: { ...metadata, namespace, name } }
}

/** As the older operator made them: no owner, the variant's label, and a name of the environment twice. */
export function leftByOlder(baseName: string, label: string): KubeObject {
  const object = deployment(`${baseName}-${label}`, { labels: { [variantLabel]: label } })
  const { spec } = base(baseName)
  const [container] = spec.template.spec.containers
  const env = [revisionName, revisionName].map((name) => ({ name, value: '0' }))
  return {
    ...object,
    spec: { ...spec, template: { ...spec.template, spec: { containers: [{ ...container, env }] } } },
  }
}

function wantedOf(index: number, variants: string[], baseName: string, revision: number): MutantBuilder {
  const [kind] = mutantKinds.slice(index % 2)
  if (!kind) throw new Error('There is no such kind')
  const blank = mutant(kind, `web-${index}`).in(namespace).on(base(baseName))
  return variants.reduce(
    (built, label) => built.with(label, revision % 4, { [revisionName]: `${revision}` }),
    blank,
  )
}

/** One thing that happens. A conflict with the operator's own writes is one that people meet too: they give way. */
export async function act(stage: Stage, revision: number): Promise<void> {
  try {
    await happen(stage, revision)
  } catch (error) {
    if (!isConflict(error) && !isNotFound(error)) throw error
  }
}

async function happen({ world, strangers }: Stage, revision: number): Promise<void> {
  const { admin, clock, server } = world
  const index = Math.floor(clock.random() * objects.length)
  const variants = labels.filter(() => clock.random() < 0.7)
  const baseName = clock.random() < 0.15 ? `other-${index}` : `base-${index}`
  const wanted = wantedOf(index, variants, baseName, revision)
  const at = { namespace, name: wanted.name }
  const live = await admin.get(wanted.kind, at)
  const child = { namespace, name: `base-${index}-${['red', 'blue', 'green'][revision % 3]}` }
  const choice = clock.random()
  if (!live) await admin.create(wanted.kind, wanted.object())
  else if (choice < 0.5)
    await admin.replace(wanted.kind, { ...live, spec: wanted.object().spec } as KubeObject)
  else if (choice < 0.58) await removed(world, strangers, child)
  else if (choice < 0.66) await edited(world, child)
  else if (choice < 0.74) await replacedByStranger(world, strangers, child)
  else if (choice < 0.79) await admin.delete(wanted.kind, at)
  else if (choice < 0.84) await paused(world, live)
  else if (choice < 0.89) server.restart({ history: clock.random() < 0.5 ? 'kept' : 'lost' })
  else if (choice < 0.94) server.compact()
  else clock.jumpWallClock((clock.random() - 0.5) * 7_200_000)
}

interface Named {
  namespace: string
  name: string
}

async function removed({ admin }: Simulation, strangers: Set<string>, child: Named): Promise<void> {
  await admin.delete(deployments, child)
  strangers.delete(child.name)
}

async function edited({ admin }: Simulation, name: Named): Promise<void> {
  const live = await admin.get<StoredObject & { spec: { replicas: number } }>(deployments, name)
  if (!live) return
  const spec = { ...live.spec, replicas: 7 }
  await admin.replace(deployments, { ...live, spec }, { fieldManager: 'hand' })
}

/** The worst moment for it is between the operator's look and its write. */
async function replacedByStranger(world: Simulation, strangers: Set<string>, child: Named): Promise<void> {
  await removed(world, strangers, child)
  await world.admin.create(deployments, deployment(child.name), { fieldManager: 'hand' })
  strangers.add(child.name)
}

async function paused({ admin }: Simulation, live: StoredObject): Promise<void> {
  const kind = mutantKinds.find((one) => one.kind === live.kind)
  const annotations = live.metadata.annotations?.[pausedAnnotation] ? {} : { [pausedAnnotation]: 'true' }
  if (kind) await admin.replace(kind, { ...live, metadata: { ...live.metadata, annotations } })
}

/** Lets all that is paused go on. */
export async function resumeAll({ world }: Stage): Promise<void> {
  for (const kind of mutantKinds)
    for (const live of (await world.admin.list(kind, { namespace })).items)
      if (live.metadata.annotations?.[pausedAnnotation]) await paused(world, live)
}
