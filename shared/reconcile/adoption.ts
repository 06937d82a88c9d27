import {
  adoptAnnotation,
  appliedAnnotation,
  fieldManager,
  handoffManager,
  ownerLabel,
  ownerLabelValue,
  variantLabel,
} from '../kinds/mutants.ts'
import {
  controllerOf,
  type FieldsV1,
  type KubeObject,
  type ManagedFieldsEntry,
  type OwnerReference,
} from '../kinds/object.ts'
import { coverageOf, fieldsAsApplied, fieldsOfBoth, fieldsWithout } from './coverage.ts'
import { isSame } from './values.ts'

/**
 * Whose a Deployment is that has the name of one of our children, and how an earlier writer's fields become ours. Pure.
 */

/**
 * Which Deployments that nobody controls are taken. `label`: those with the owner label of this object or with the
 * annotation `neiam.org/adopt: "true"`. `legacy`: also what the older operator left. `always`: any.
 */
export type Adoption = 'label' | 'legacy' | 'always'

export interface AdoptionSettings {
  adoption: Adoption
  /** The field managers that an older operator wrote under. Default: {@link defaultLegacyManagers}. */
  legacyManagers?: readonly string[] | undefined
}

/** The older operator's own name, and what the API server calls a client that names itself not at all. */
export const defaultLegacyManagers: readonly string[] = [fieldManager, 'mutantops', 'unknown']

export type Claim = { is: 'ours' } | { is: 'leaving'; message: string } | { is: 'foreign'; message: string }

/** Whether a Deployment may be written, for the object `owner` and its variant `label`. */
export function claimOf(
  child: KubeObject,
  owner: OwnerReference,
  label: string,
  settings: AdoptionSettings,
): Claim {
  const controller = controllerOf(child)
  const isOurs = controller?.uid === owner.uid
  const isFormerOurs = controller?.kind === owner.kind && controller.name === owner.name
  if (child.metadata?.deletionTimestamp && (!controller || isOurs || isFormerOurs))
    return {
      is: 'leaving',
      message: 'The former Deployment of this name is being deleted; a new one follows',
    }
  if (isOurs) return { is: 'ours' }
  if (controller) {
    const whose = isFormerOurs ? ', as it was before it was deleted and made again' : ''
    return {
      is: 'foreign',
      message: `A Deployment of this name is controlled by ${controller.kind} "${controller.name}"${whose}`,
    }
  }
  if (mayAdopt(child, owner, label, settings)) return { is: 'ours' }
  return {
    is: 'foreign',
    message: `A Deployment of this name is there, and nobody controls it: to have it taken over, annotate it with ${adoptAnnotation}: "true"`,
  }
}

function mayAdopt(
  child: KubeObject,
  owner: OwnerReference,
  label: string,
  settings: AdoptionSettings,
): boolean {
  const { labels = {}, annotations = {}, ownerReferences = [], managedFields = [] } = child.metadata ?? {}
  if (settings.adoption === 'always') return true
  if (labels[ownerLabel] === ownerLabelValue(owner.name) || annotations[adoptAnnotation] === 'true')
    return true
  return (
    settings.adoption === 'legacy' &&
    ownerReferences.length === 0 &&
    labels[ownerLabel] === undefined &&
    labels[variantLabel] === label &&
    // Our own entry counts: a pass that ended between the two writes of taking over has put it there.
    managedFields.some((entry) => isOwnApply(entry) || isLegacy(entry, settings))
  )
}

export function isOwnApply({ manager, operation, subresource }: ManagedFieldsEntry): boolean {
  return manager === fieldManager && operation === 'Apply' && !subresource
}

/** What our own applies own of an object, or undefined when we never applied it. */
export function ownFields(child: KubeObject): FieldsV1 | undefined {
  return child.metadata?.managedFields?.find(isOwnApply)?.fieldsV1
}

function isLegacy(
  entry: ManagedFieldsEntry,
  { legacyManagers = defaultLegacyManagers }: AdoptionSettings,
): boolean {
  if (entry.subresource || entry.manager === undefined || isOwnApply(entry)) return false
  return legacyManagers.includes(entry.manager)
}

/** The API server's name for fields that were there before anything was applied and had no manager. */
const beforeFirstApply = 'before-first-apply'
/** Writers that stay the owners of what they wrote: it is their own business and not from a base. */
const lasting = new Set(['kube-controller-manager', handoffManager])

/**
 * The managedFields that make earlier writers' fields ours, or undefined when there is nothing to move.
 *
 * Without this a field that later goes from the base would stay on the child for ever, because its first writer still
 * owns it. What an older operator wrote moves whole: all of it came from a base. Of what anybody else wrote only the
 * fields that we apply move, so that taking over never takes something away from pods that run.
 */
export function takenOver(
  child: KubeObject,
  applied: KubeObject,
  settings: AdoptionSettings,
): ManagedFieldsEntry[] | undefined {
  const entries = child.metadata?.managedFields ?? []
  const own = entries.find(isOwnApply)
  // Later such a name is anybody's, and what it writes is not from a base.
  const isNew = child.metadata?.annotations?.[appliedAnnotation] === undefined
  const isOfOld = (entry: ManagedFieldsEntry) => isNew && isLegacy(entry, settings)
  const isDue = (entry: ManagedFieldsEntry) => isOfOld(entry) || entry.manager === beforeFirstApply
  if (own && !entries.some(isDue)) return undefined
  let fields = own?.fieldsV1 ?? {}
  const others: ManagedFieldsEntry[] = []
  for (const entry of entries) {
    if (entry === own) continue
    const moved = isOfOld(entry) ? (entry.fieldsV1 ?? {}) : partToMove(entry, applied)
    fields = fieldsOfBoth(fields, fieldsAsApplied(moved))
    const left = fieldsWithout(entry.fieldsV1 ?? {}, moved)
    if (Object.keys(left).length > 0) others.push({ ...entry, fieldsV1: left })
  }
  if (isSame(fields, own?.fieldsV1 ?? {}) && others.length === entries.length - (own ? 1 : 0))
    return undefined
  const mine = { manager: fieldManager, operation: 'Apply', apiVersion: 'apps/v1', fieldsType: 'FieldsV1' }
  return [...others, { ...mine, ...(own?.time && { time: own.time }), fieldsV1: fields }]
}

function partToMove(entry: ManagedFieldsEntry, applied: KubeObject): FieldsV1 {
  if (entry.subresource || lasting.has(entry.manager ?? '')) return {}
  return coverageOf(applied, entry.fieldsV1).covered
}
