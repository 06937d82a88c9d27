import { mutantKinds, pausedAnnotation, variantLabel } from '../../shared/kinds/mutants.ts'
import { deployments, type KubeObject, type StoredObject } from '../../shared/kinds/object.ts'
import type { KubeClient } from '../../shared/kube/client.ts'
import { isConflict, isNotFound } from '../../shared/kube/errors.ts'
import { base, type MutantBuilder, mutant } from '../support/builders.ts'
import { revisionName } from './invariants.ts'

/** What people and other programs do while the operator works; which of it, the seed says. */

const labels = ['red', 'blue', 'green', 'taken']
const objects = [0, 1, 2]
/** What an older operator wrote under. */
export const olderOperator = 'older-operator'

/** Where it happens, and what of it decides how it must end. */
export interface Stage {
  admin: KubeClient
  namespace: string
  random(): number
  /** The names of Deployments that are not the operator's to take. */
  strangers: Set<string>
  /** What befalls the machines and the server now and then. */
  upsets: (() => unknown)[]
}

/** What was there before the operator came: others' Deployments, and those that an older operator left. */
export async function prepare(stage: Stage, adoptsLegacy: boolean): Promise<void> {
  const { admin, strangers } = stage
  const other = { apiVersion: 'x.org/v1', kind: 'Website', name: 'x', uid: 'x-uid', controller: true }
  for (const index of objects) {
    const taken = deployment(stage.namespace, `base-${index}-taken`, { ownerReferences: [other] })
    await admin.create(deployments, taken)
    strangers.add(`base-${index}-taken`)
    const left = leftByOlder(stage.namespace, `base-${index}`, 'blue')
    await admin.create(deployments, left, { fieldManager: olderOperator })
    if (!adoptsLegacy) strangers.add(`base-${index}-blue`)
  }
}

function deployment(namespace: string, name: string, metadata: object = {}): KubeObject {
  const object = base(name.slice(0, name.lastIndexOf('-'))) as unknown as KubeObject
  return { ...object, metadata: { ...metadata, namespace, name } }
}

/** As the older operator made them: no owner, the variant's label, and a name of the environment twice. */
export function leftByOlder(namespace: string, baseName: string, label: string): KubeObject {
  const object = deployment(namespace, `${baseName}-${label}`, { labels: { [variantLabel]: label } })
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
  const blank = mutant(kind, `web-${index}`).on(base(baseName))
  return variants.reduce(
    (built, label) => built.with(label, revision % 4, { [revisionName]: `${revision}` }),
    blank,
  )
}

/** One thing that happens. */
export const act = (stage: Stage, revision: number): Promise<void> => giveWay(happen(stage, revision))

/** A conflict with the operator's own writes is one that people meet too: they give way. */
export async function giveWay(doing: Promise<void>): Promise<void> {
  try {
    await doing
  } catch (error) {
    if (!isConflict(error) && !isNotFound(error)) throw error
  }
}

async function happen(stage: Stage, revision: number): Promise<void> {
  const { admin, namespace, random, upsets } = stage
  const index = Math.floor(random() * objects.length)
  const variants = labels.filter(() => random() < 0.7)
  const baseName = random() < 0.15 ? `other-${index}` : `base-${index}`
  const wanted = wantedOf(index, variants, baseName, revision).in(namespace)
  const at = { namespace, name: wanted.name }
  const live = await admin.get(wanted.kind, at)
  const child = `base-${index}-${['red', 'blue', 'green'][revision % 3]}`
  const choice = random()
  if (!live) await admin.create(wanted.kind, wanted.object())
  else if (choice < 0.5)
    await admin.replace(wanted.kind, { ...live, spec: wanted.object().spec } as KubeObject)
  else if (choice < 0.58) await removed(stage, child)
  else if (choice < 0.66) await edited(stage, child)
  else if (choice < 0.74) await replacedByStranger(stage, child)
  else if (choice < 0.79) await admin.delete(wanted.kind, at)
  else if (choice < 0.84) await paused(stage, live)
  else upsets[Math.floor(random() * upsets.length)]?.()
}

async function removed({ admin, namespace, strangers }: Stage, name: string): Promise<void> {
  await admin.delete(deployments, { namespace, name })
  strangers.delete(name)
}

async function edited({ admin, namespace }: Stage, name: string): Promise<void> {
  const live = await admin.get<StoredObject & { spec: { replicas: number } }>(deployments, {
    namespace,
    name,
  })
  if (!live) return
  const spec = { ...live.spec, replicas: 7 }
  await admin.replace(deployments, { ...live, spec }, { fieldManager: 'hand' })
}

/** Another Deployment takes the name of a child, or of what was to become one. */
export async function replacedByStranger(stage: Stage, name: string): Promise<void> {
  await removed(stage, name)
  await stage.admin.create(deployments, deployment(stage.namespace, name), { fieldManager: 'hand' })
  stage.strangers.add(name)
}

async function paused({ admin }: Stage, live: StoredObject): Promise<void> {
  const kind = mutantKinds.find((one) => one.kind === live.kind)
  const annotations = live.metadata.annotations?.[pausedAnnotation] ? {} : { [pausedAnnotation]: 'true' }
  if (kind) await admin.replace(kind, { ...live, metadata: { ...live.metadata, annotations } })
}

/** Lets all that is paused go on. */
export async function resumeAll(stage: Stage): Promise<void> {
  const { admin, namespace } = stage
  for (const kind of mutantKinds)
    for (const live of (await admin.list(kind, { namespace })).items)
      if (live.metadata.annotations?.[pausedAnnotation]) await paused(stage, live)
}
