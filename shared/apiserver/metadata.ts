import type { KubeObject, ObjectMeta, OwnerReference } from '../kinds/object.ts'
import { keyProblem, valueProblem } from './selectors.ts'
import { type Cause, cause } from './status.ts'

/** The rules on `metadata` that every kind shares. */

const subdomainPattern = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/
const labelPattern = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/

/** Why a name is no RFC 1123 subdomain, in the API's words. */
export function subdomainProblem(name: string): string | undefined {
  if (name.length > 253) return 'must be no more than 253 bytes'
  if (subdomainPattern.test(name)) return undefined
  return "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
}

/** Why a name is no RFC 1123 label, in the API's words. */
export function dnsLabelProblem(name: string): string | undefined {
  if (name.length > 63) return 'must be no more than 63 bytes'
  if (labelPattern.test(name)) return undefined
  return "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
}

/** Why a name can stand in no path, in the API's words; for kinds that take any other name. */
export function pathSegmentProblem(name: string): string | undefined {
  if (name === '.' || name === '..') return `may not be '${name}'`
  if (name.includes('/')) return "may not contain '/'"
  if (name.includes('%')) return "may not contain '%'"
  return undefined
}

const annotationsSizeMax = 256 * 1024
const standardFinalizers = new Set(['kubernetes', 'orphan', 'foregroundDeletion'])

/** What is wrong with the metadata of an object, new (`live` absent) or in the place of `live`. */
export function metadataCauses(
  object: KubeObject,
  live: KubeObject | undefined,
  nameProblem: (name: string) => string | undefined,
): Cause[] {
  const metadata = object.metadata ?? {}
  if (!live)
    return [...nameCauses(metadata, nameProblem), ...contentCauses(metadata), ...finalizerCauses(metadata)]
  const causes = [...updateCauses(metadata, live.metadata ?? {}), ...contentCauses(metadata)]
  // The real server checks an update twice, and tells everything twice.
  return [...causes, ...causes].sort(byPlaceIn(causes))
}

/** Puts equal causes beside each other, in the order of `causes`. */
function byPlaceIn(causes: Cause[]): (a: Cause, b: Cause) => number {
  return (a, b) => causes.indexOf(a) - causes.indexOf(b)
}

function contentCauses(metadata: ObjectMeta): Cause[] {
  const causes: Cause[] = []
  for (const [key, value] of Object.entries(metadata.labels ?? {})) {
    const problem = keyProblem(key)
    if (problem) causes.push(cause.invalid('metadata.labels', key, problem))
    const wrong = valueProblem(value)
    if (wrong) causes.push(cause.invalid('metadata.labels', value, wrong))
  }
  return [...causes, ...annotationCauses(metadata), ...ownerCauses(metadata)]
}

function nameCauses(metadata: ObjectMeta, problemOf: (name: string) => string | undefined): Cause[] {
  const causes: Cause[] = []
  const { name, generateName } = metadata
  if (generateName) {
    const problem = problemOf(generateName.replace(/-$/, 'a'))
    if (problem) causes.push(cause.invalid('metadata.generateName', generateName, problem))
  }
  if (!name) return [...causes, cause.required('metadata.name', 'name or generateName is required')]
  const problem = problemOf(name)
  if (problem) causes.push(cause.invalid('metadata.name', name, problem))
  return causes
}

function annotationCauses({ annotations = {} }: ObjectMeta): Cause[] {
  const causes: Cause[] = []
  let size = 0
  for (const [key, value] of Object.entries(annotations)) {
    const problem = keyProblem(key.toLowerCase())
    if (problem) causes.push(cause.invalid('metadata.annotations', key, problem))
    size += Buffer.byteLength(key) + Buffer.byteLength(value)
  }
  if (size > annotationsSizeMax) causes.push(cause.tooLong('metadata.annotations', annotationsSizeMax))
  return causes
}

function ownerCauses({ ownerReferences = [] }: ObjectMeta): Cause[] {
  const field = 'metadata.ownerReferences'
  const causes = ownerReferences.flatMap((owner) => {
    const found: Cause[] = []
    const { apiVersion = '' } = owner
    if (apiVersion === '' || apiVersion.split('/').length > 2)
      found.push(cause.invalid(`${field}.apiVersion`, apiVersion, 'version must not be empty'))
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
  const causes = finalizers.flatMap((name, index) => {
    const problem = keyProblem(name)
    if (problem) return [cause.invalid(`${field}[${index}]`, name, problem)]
    if (name.includes('/') || standardFinalizers.has(name)) return []
    const why = 'name is neither a standard finalizer name nor is it fully qualified'
    return [cause.invalid(`${field}[${index}]`, name, why)]
  })
  if (finalizers.includes('orphan') && finalizers.includes('foregroundDeletion'))
    causes.push(
      cause.invalid(field, finalizers, 'finalizer orphan and foregroundDeletion cannot be both set'),
    )
  return causes
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
  return causes
}
