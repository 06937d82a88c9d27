import {
  appliedAnnotation,
  handoffManager,
  type MutantStatus,
  type VariantState,
  variantLabel,
} from '../kinds/mutants.ts'
import type { KubeObject, StoredObject } from '../kinds/object.ts'
import { type AdoptionSettings, claimOf, isOwnApply, ownFields, takenOver } from './adoption.ts'
import { type Child, childOf, type Desired, type DesiredVariant } from './desired.ts'
import { repairOf } from './repair.ts'
import { mapIn } from './values.ts'

/** What to do about one variant, and about the children that no variant wants. Pure; the resync asks it too. */

export interface PlanSettings extends AdoptionSettings {
  now: Date
}

/** One write (or look) at one child. After each the variant is planned anew, with the child that it answered. */
export type Step =
  /** Apply that only creates. */
  | { do: 'create'; object: KubeObject }
  /** Read the Deployment of the name, which the list did not show though somebody has it. */
  | { do: 'look' }
  /** Move earlier managers' fields to us. */
  | { do: 'take over'; child: StoredObject; managedFields: unknown[] }
  /** Give the live number of replicas a second owner, so that it stays when we let go of it. */
  | { do: 'hand off'; object: KubeObject }
  | { do: 'apply'; object: KubeObject }

export interface VariantPlan {
  variant: DesiredVariant
  /** The Deployment of its name, if it is ours. */
  child?: StoredObject
  step?: Step
  /** What keeps it from being as wanted; a plan with a step has none. */
  verdict?: { state: VariantState; message: string }
  /** What a person should know of it all the same. */
  note?: string
}

/**
 * Plans all variants. `previous` is the status that the object has: who was refused then, for the same spec, is not
 * tried again before the resync (`isResync`), and where the name was taken somebody is looked for first.
 */
export function planAll(
  desired: Desired,
  children: readonly StoredObject[],
  previous: MutantStatus | undefined,
  settings: PlanSettings & { generation: number; isResync: boolean },
): VariantPlan[] {
  if (desired.problem !== undefined) return asTheyRun(desired, children)
  const byName = new Map(children.map((child) => [child.metadata.name, child]))
  // Of a label that stands twice the first one counts.
  const told = new Map(previous?.variants?.map((variant) => [variant.name, variant] as const).toReversed())
  return desired.variants.map((variant) => {
    const before = told.get(variant.name)
    const unlisted = before?.state === 'Conflict' ? 'taken' : 'unlisted'
    const plan = planVariant(desired, variant, byName.get(variant.name) ?? unlisted, settings)
    if (!plan.step) return plan
    if (desired.paused) return instead(plan, 'Progressing', 'Waits, because the object is paused')
    const isSameSpec = previous?.observedGeneration === settings.generation
    const wasRefused = before?.state === 'Failed' && before.message?.startsWith(refusedAt(plan))
    return isSameSpec && wasRefused && !settings.isResync
      ? instead(plan, 'Failed', before.message ?? '')
      : plan
  })
}

/**
 * How the message of a refusal begins. It also tells a later pass what was refused: when the Deployment that could not
 * be changed is gone, making it is worth a try.
 */
export function refusedAt({ child }: Pick<VariantPlan, 'child'>): string {
  return child ? 'It cannot be changed: ' : 'It cannot be made: '
}

function instead({ step: _, ...plan }: VariantPlan, state: VariantState, message: string): VariantPlan {
  return { ...plan, verdict: { state, message } }
}

/** With a broken base nothing is applied: each variant is told as it runs, under whatever name. */
function asTheyRun(desired: Desired, children: readonly StoredObject[]): VariantPlan[] {
  const owned = children.filter((child) => isOwned(child, desired))
  if (desired.variants.length === 0) return owned.map((child) => ({ variant: runningVariant(child), child }))
  return desired.variants.map((variant) => {
    if (variant.problem) return { variant, verdict: variant.problem }
    const child =
      owned.find(({ metadata }) => metadata.name === variant.name) ??
      owned.find(({ metadata }) => metadata.labels?.[variantLabel] === variant.label)
    if (child) return { variant: { ...variant, name: child.metadata.name }, child }
    return {
      variant,
      verdict: { state: 'Invalid', message: 'Cannot be made before spec.deployment is mended' },
    }
  })
}

function runningVariant({ metadata }: StoredObject): DesiredVariant {
  return { label: metadata.labels?.[variantLabel] ?? '', name: metadata.name, env: {}, instances: undefined }
}

/** What is known of the Deployment of a variant's name: unlisted means that the list, by label, did not show one. */
export type Observed = StoredObject | 'unlisted' | 'taken'

/** Plans the next step for one variant. `taken` tells that somebody has the name whom the list did not show. */
export function planVariant(
  desired: Desired,
  variant: DesiredVariant,
  observed: Observed,
  settings: PlanSettings,
): VariantPlan {
  const child = typeof observed === 'string' ? undefined : observed
  // A label that stands twice: the child, if any, belongs to the first.
  if (variant.problem?.state === 'Conflict') return { variant, verdict: variant.problem }
  const claim = child && claimOf(child, desired.owner, variant.label, settings)
  const kept = child && claim?.is === 'ours' ? { variant, child } : { variant }
  if (variant.problem) return { ...kept, verdict: variant.problem }
  if (!child) {
    const step: Step =
      observed === 'taken' ? { do: 'look' } : { do: 'create', object: childOf(desired, variant).object }
    return { variant, step }
  }
  if (claim?.is === 'foreign') return { variant, verdict: { state: 'Conflict', message: claim.message } }
  if (claim?.is === 'leaving') return { variant, verdict: { state: 'Progressing', message: claim.message } }
  return { ...kept, child, ...changeOf(childOf(desired, variant, child), child, settings) }
}

/** What brings a living child of ours to what it should be. */
function changeOf(
  { object, hash, problem }: Child,
  child: StoredObject,
  settings: PlanSettings,
): Pick<VariantPlan, 'step' | 'verdict' | 'note'> {
  if (problem !== undefined) return { verdict: { state: 'Failed', message: problem } }
  const managedFields = takenOver(child, object, settings)
  if (managedFields) return { step: { do: 'take over', child, managedFields } }
  const repair = repairOf(object, hash, child, settings.now)
  if (repair.is === 'none') return {}
  if (repair.is === 'waiting') return { note: repair.message }
  const handOff = handOffOf(object, child)
  if (handOff) return { step: { do: 'hand off', object: handOff } }
  return { step: { do: 'apply', object: withUid(withApplied(object, repair.applied), child) } }
}

/** With the uid a write that comes late cannot bring a deleted child back. */
function withUid(object: KubeObject, child: StoredObject): KubeObject {
  return { ...object, metadata: { ...object.metadata, uid: child.metadata.uid } }
}

function withApplied(object: KubeObject, applied: string): KubeObject {
  const annotations = { ...object.metadata?.annotations, [appliedAnnotation]: applied }
  return { ...object, metadata: { ...object.metadata, annotations } }
}

/**
 * Set when replicas were ours and shall not be: what nobody else owns vanishes when we stop applying it, and the server
 * would scale to 1. Once an autoscaler has written them they are not ours any more, and there is nothing to hand off.
 */
function handOffOf(object: KubeObject, child: StoredObject): KubeObject | undefined {
  const replicas = mapIn(child, 'spec').replicas
  if (mapIn(object, 'spec').replicas !== undefined || typeof replicas !== 'number') return undefined
  if (!ownFields(child)?.['f:spec']?.['f:replicas']) return undefined
  const hasHandOff = child.metadata.managedFields?.some(
    (entry) =>
      !isOwnApply(entry) && entry.manager === handoffManager && entry.fieldsV1?.['f:spec']?.['f:replicas'],
  )
  if (hasHandOff) return undefined
  const { name, namespace = '', uid } = child.metadata
  return { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name, namespace, uid }, spec: { replicas } }
}

/**
 * The children to delete: those that this very object owns and no variant wants. A variant keeps what carries its label
 * under another name (the base was renamed) until its new Deployment is ready; so an invalid, refused or conflicting
 * one takes nothing down. `states` are the variants' states by label, the first of each.
 */
export function childrenToPrune(
  desired: Desired,
  children: readonly StoredObject[],
  states: ReadonlyMap<string, VariantState>,
): StoredObject[] {
  const wanted = new Set(desired.variants.map(({ name }) => name))
  return children.filter((child) => {
    const { name, labels, deletionTimestamp } = child.metadata
    if (wanted.has(name) || deletionTimestamp || !isOwned(child, desired)) return false
    const state = states.get(labels?.[variantLabel] ?? '')
    return state === undefined || state === 'Ready'
  })
}

/**
 * The names of children that ran when the object was last looked at, of variants that are no more, and that the list does
 * not show: they are gone, or somebody has taken our label off them, and then nothing else would find them.
 */
export function namesOutOfSight(
  desired: Desired,
  children: readonly StoredObject[],
  previous: MutantStatus | undefined,
): string[] {
  const listed = new Set(children.map(({ metadata }) => metadata.name))
  const labels = new Set(desired.variants.map(({ label }) => label))
  const ran = previous?.variants?.filter(
    ({ state, name, label }) => hadChild.has(state) && !listed.has(name) && !labels.has(label),
  )
  return [...new Set(ran?.map(({ name }) => name))]
}

const hadChild: ReadonlySet<VariantState> = new Set(['Ready', 'Progressing', 'Degraded'])

export function isOwned(child: KubeObject, { owner }: Desired): boolean {
  const owners = child.metadata?.ownerReferences ?? []
  return owners.some(({ uid, controller }) => controller === true && uid === owner.uid)
}
