import type { KubeObject, ObjectMeta, OwnerReference } from '../kinds/object.ts'
import { type Cause, cause } from './status.ts'
import { annotationCauses, causesOf, labelCauses } from './validation/fields.ts'
import { qualifiedNameErrors } from './validation/names.ts'

/** The rules on `metadata` that every kind shares. */

const managerMaxBytes = 128

/** What is wrong with the metadata of an object, new (`live` absent) or in the place of `live`. */
export function metadataCauses(
  object: KubeObject,
  live: KubeObject | undefined,
  nameErrors: (name: string) => string[],
): Cause[] {
  const metadata = object.metadata ?? {}
  if (!live)
    return [...nameCauses(metadata, nameErrors), ...contentCauses(metadata), ...finalizerCauses(metadata)]
  const causes = [...updateCauses(metadata, live.metadata ?? {}), ...contentCauses(metadata)]
  // The real server checks an update twice, and tells everything twice.
  return [...causes, ...causes].sort(byPlaceIn(causes))
}

/** Puts equal causes beside each other, in the order of `causes`. */
function byPlaceIn(causes: Cause[]): (a: Cause, b: Cause) => number {
  return (a, b) => causes.indexOf(a) - causes.indexOf(b)
}

function contentCauses(metadata: ObjectMeta): Cause[] {
  return [
    ...labelCauses('metadata.labels', metadata.labels),
    ...annotationCauses('metadata.annotations', metadata.annotations),
    ...ownerCauses(metadata),
    ...managerCauses(metadata),
  ]
}

/** `generateName` has been turned into a name when this is asked. */
function nameCauses({ name, generateName }: ObjectMeta, nameErrors: (name: string) => string[]): Cause[] {
  if (name) return causesOf('metadata.name', name, nameErrors(name))
  return generateName ? [] : [cause.required('metadata.name', 'name or generateName is required')]
}

function managerCauses({ managedFields = [] }: ObjectMeta): Cause[] {
  return managedFields.flatMap(({ manager = '' }, place) =>
    Buffer.byteLength(manager) > managerMaxBytes
      ? [cause.tooLong(`metadata.managedFields[${place}].manager`, managerMaxBytes)]
      : [],
  )
}

function ownerCauses({ ownerReferences = [] }: ObjectMeta): Cause[] {
  const field = 'metadata.ownerReferences'
  const causes = ownerReferences.flatMap((owner) => {
    const found: Cause[] = []
    const { apiVersion = '' } = owner
    if (apiVersion === '' || apiVersion.split('/').length > 2)
      found.push(cause.invalid(`${field}.apiVersion`, apiVersion, 'version must not be empty'))
    else if (apiVersion === 'v1' && owner.kind === 'Event')
      found.push(cause.invalid(field, inOrder(owner), '/v1, Kind=Event is disallowed from being an owner'))
    for (const name of ['kind', 'name', 'uid'] as const)
      if (!owner[name]) found.push(cause.invalid(`${field}.${name}`, owner[name] ?? '', 'must not be empty'))
    return found
  })
  const [first, second] = ownerReferences.filter((owner) => owner.controller)
  if (first && second)
    causes.push(
      cause.invalid(
        field,
        ownerReferences.map(inOrder),
        `Only one reference can have Controller set to true. Found "true" in references for ${first.kind}/${first.name} and ${second.kind}/${second.name}`,
      ),
    )
  return causes
}

/** As the API writes it. */
function inOrder({ apiVersion, kind, name, uid, ...flags }: OwnerReference): OwnerReference {
  const { controller, blockOwnerDeletion } = flags
  return {
    apiVersion,
    kind,
    name,
    uid,
    ...(controller !== undefined && { controller }),
    ...(blockOwnerDeletion !== undefined && { blockOwnerDeletion }),
  }
}

function finalizerCauses({ finalizers = [] }: ObjectMeta): Cause[] {
  const field = 'metadata.finalizers'
  const both = finalizers.includes('orphan') && finalizers.includes('foregroundDeletion')
  const clash = 'finalizer orphan and foregroundDeletion cannot be both set'
  return [
    ...finalizers.flatMap((name) => causesOf(field, name, qualifiedNameErrors(name))),
    ...(both ? [cause.invalid(field, finalizers, clash)] : []),
  ]
}

function updateCauses(metadata: ObjectMeta, live: ObjectMeta): Cause[] {
  const causes: Cause[] = []
  const immutable = (field: keyof ObjectMeta) => {
    if (metadata[field] !== live[field])
      causes.push(cause.invalid(`metadata.${field}`, metadata[field] ?? '', 'field is immutable'))
  }
  if (live.deletionTimestamp) {
    const added = (metadata.finalizers ?? []).filter((name) => !live.finalizers?.includes(name))
    if (added.length > 0)
      causes.push(
        cause.forbidden(
          'metadata.finalizers',
          `no new finalizers can be added if the object is being deleted, found new finalizers []string{${added.map((name) => JSON.stringify(name)).join(', ')}}`,
        ),
      )
  }
  causes.push(...finalizerCauses(metadata))
  immutable('uid')
  immutable('deletionTimestamp')
  immutable('deletionGracePeriodSeconds')
  return causes
}
