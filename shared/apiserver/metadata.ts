import { isObject, type KubeObject, type ObjectMeta } from '../kinds/object.ts'
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
  const causes = live ? [] : nameCauses(metadata, nameProblem)
  for (const [key, value] of Object.entries(metadata.labels ?? {})) {
    const problem = keyProblem(key)
    if (problem) causes.push(cause.invalid('metadata.labels', key, problem))
    const wrong = valueProblem(value)
    if (wrong) causes.push(cause.invalid('metadata.labels', value, wrong))
  }
  causes.push(...annotationCauses(metadata), ...ownerCauses(metadata), ...finalizerCauses(metadata))
  return live ? [...causes, ...updateCauses(metadata, live.metadata ?? {})] : causes
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
        ownerReferences,
        `Only one reference can have Controller set to true. Found "true" in references for ${first.kind}/${first.name} and ${second.kind}/${second.name}`,
      ),
    )
  return causes
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
  immutable('uid')
  immutable('deletionTimestamp')
  return causes
}

/** Makes the error for a value of a wrong type: what it is, at which field of metadata ('' for itself), what Go wants. */
export type WrongType = (found: string, field: string, wanted: string) => Error

/**
 * The metadata of a body as Go reads it: names the API does not know are dropped, nulls and empty maps and lists too.
 * Gives the unknown names besides. Throws what `wrongType` makes of a value of a wrong type.
 */
export function readMetadata(
  metadata: unknown,
  wrongType: WrongType,
): { metadata: ObjectMeta; unknown: string[] } {
  if (metadata === undefined || metadata === null) return { metadata: {}, unknown: [] }
  if (!isObject(metadata)) throw wrongType(goTypeOf(metadata), '', 'v1.ObjectMeta')
  const read: Record<string, unknown> = {}
  const unknown: string[] = []
  for (const [name, value] of Object.entries(metadata)) {
    const type = metadataFields[name]
    if (!type) unknown.push(name)
    else if (value !== null) {
      checkField(name, value, type, wrongType)
      if (!isEmpty(value)) read[name] = value
    }
  }
  return { metadata: read as ObjectMeta, unknown }
}

type FieldType = 'string' | 'number' | 'strings' | 'list' | 'map'

const metadataFields: Record<string, FieldType> = {
  name: 'string',
  generateName: 'string',
  namespace: 'string',
  selfLink: 'string',
  uid: 'string',
  resourceVersion: 'string',
  generation: 'number',
  creationTimestamp: 'string',
  deletionTimestamp: 'string',
  deletionGracePeriodSeconds: 'number',
  labels: 'map',
  annotations: 'map',
  ownerReferences: 'list',
  finalizers: 'strings',
  managedFields: 'list',
}

function checkField(name: string, value: unknown, type: FieldType, wrongType: WrongType): void {
  const check = (part: unknown, found: boolean, wanted: string) => {
    if (!found) throw wrongType(goTypeOf(part), name, wanted)
  }
  // A null in a map or a list of strings reads as the empty string.
  const isText = (part: unknown) => part === null || typeof part === 'string'
  if (type === 'string') check(value, isText(value), 'string')
  else if (type === 'number') check(value, Number.isInteger(value), 'int64')
  else if (type === 'map') {
    check(value, isObject(value), 'map[string]string')
    for (const part of Object.values(value as object)) check(part, isText(part), 'string')
  } else {
    const item =
      type === 'strings'
        ? 'string'
        : name === 'ownerReferences'
          ? 'v1.OwnerReference'
          : 'v1.ManagedFieldsEntry'
    check(value, Array.isArray(value), `[]${item}`)
    for (const part of value as unknown[])
      check(part, type === 'strings' ? isText(part) : part === null || isObject(part), item)
  }
}

/** What Go's JSON reader calls a value. */
export function goTypeOf(value: unknown): string {
  if (Array.isArray(value)) return 'array'
  if (typeof value === 'boolean') return 'bool'
  return value === null ? 'null' : typeof value
}

function isEmpty(value: unknown): boolean {
  if (Array.isArray(value)) return value.length === 0
  if (isObject(value)) return Object.keys(value).length === 0
  return value === ''
}
