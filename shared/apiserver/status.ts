import type { Resource, Status } from '../kinds/object.ts'

/** A request that the API refuses. `status` is the answer's body, worded as a kube-apiserver words it. */
export class ApiError extends Error {
  override readonly name = 'ApiError'
  readonly status: Status

  constructor(status: Status) {
    super(status.message)
    this.status = status
  }

  get code(): number {
    return this.status.code ?? 500
  }
}

/** One thing that is wrong, as it stands in `details.causes`. */
export interface Cause {
  reason: string
  message: string
  field: string
}

/** What of a resource the answers name. */
export type ResourceName = Pick<Resource, 'group' | 'kind' | 'plural'>

type Details = NonNullable<Status['details']>

/** `deployments.apps`, or `configmaps` for the core group. */
export function qualified(name: string, group: string): string {
  return group === '' ? name : `${name}.${group}`
}

/** A failure with these words; `reason` may be empty, as that of a failed typed patch is. */
export function failure(code: number, reason: string, message: string, details?: Details): ApiError {
  return new ApiError({
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message,
    ...(reason !== '' && { reason }),
    ...(details && { details }),
    code,
  })
}

/** The details name the plural, or the kind where the real server does. */
function detailsOf(resource: ResourceName, name: string, kind = resource.plural): Details {
  return { ...(name !== '' && { name }), ...(resource.group !== '' && { group: resource.group }), kind }
}

export function notFound(resource: ResourceName, name: string): ApiError {
  const message = `${qualified(resource.plural, resource.group)} "${name}" not found`
  return failure(404, 'NotFound', message, detailsOf(resource, name))
}

/** For a path that names no group, version or resource that is served. */
export function noSuchResource(): ApiError {
  return failure(404, 'NotFound', 'the server could not find the requested resource', {})
}

export function methodNotAllowed(): ApiError {
  const message = 'the server does not allow this method on the requested resource'
  return failure(405, 'MethodNotAllowed', message, {})
}

export function alreadyExists(resource: ResourceName, name: string, isBeingDeleted = false): ApiError {
  const head = isBeingDeleted ? 'object is being deleted: ' : ''
  const message = `${head}${qualified(resource.plural, resource.group)} "${name}" already exists`
  return failure(409, 'AlreadyExists', message, detailsOf(resource, name))
}

/** 409 for a write that lost a race; `why` defaults to the words for a stale resourceVersion. */
export function conflict(resource: ResourceName, name: string, why: string = staleVersion): ApiError {
  const message = `Operation cannot be fulfilled on ${qualified(resource.plural, resource.group)} "${name}": ${why}`
  return failure(409, 'Conflict', message, detailsOf(resource, name))
}

const staleVersion =
  'the object has been modified; please apply your changes to the latest version and try again'

/** 409 for a PUT or PATCH whose body carries the uid of another incarnation; `live` is empty when there is none. */
export function uidMismatch(
  resource: ResourceName,
  target: { namespace?: string | undefined; name: string },
  uids: { asked: string; live: string },
): ApiError {
  // Kinds that are compiled in are stored without their group.
  const isCompiledIn = ['', 'apps', 'coordination.k8s.io', 'events.k8s.io'].includes(resource.group)
  const folder = isCompiledIn ? resource.plural : `${resource.group}/${resource.plural}`
  const key = ['/registry', folder, target.namespace, target.name].filter((part) => part).join('/')
  return conflict(
    resource,
    target.name,
    `StorageError: invalid object, Code: 4, Key: ${key}, ResourceVersion: 0, AdditionalErrorMsg: ` +
      `Precondition failed: UID in precondition: ${uids.asked}, UID in object meta: ${uids.live}`,
  )
}

/** 409 for a DELETE whose preconditions do not hold. The real server names the kind here, and no group. */
export function preconditionFailed(
  resource: ResourceName,
  name: string,
  what: 'UID' | 'ResourceVersion',
  asked: string,
  live: string,
): ApiError {
  const end =
    what === 'UID'
      ? 'The object might have been deleted and then recreated'
      : 'The object might have been modified'
  const why = `the ${what} in the precondition (${asked}) does not match the ${what} in record (${live}). ${end}`
  return conflict({ ...resource, plural: resource.kind }, name, why)
}

/** 422 with every cause; the message lists them, in brackets when there are several. */
export function invalid(resource: ResourceName, name: string, causes: Cause[]): ApiError {
  const seen = new Set<string>()
  const lines = causes
    .map((cause) => `${cause.field}: ${cause.message}`)
    .filter((line) => !seen.has(line) && seen.add(line))
  const list = lines.length === 1 ? lines[0] : `[${lines.join(', ')}]`
  const message = `${qualified(resource.kind, resource.group)} "${name}" is invalid: ${list}`
  return failure(422, 'Invalid', message, { ...detailsOf(resource, name, resource.kind), causes })
}

export function badRequest(message: string): ApiError {
  return failure(400, 'BadRequest', message)
}

/** 422 for a JSON patch that does not apply: a failed test, a missing path. */
export function patchRejected(): ApiError {
  return failure(422, 'Invalid', 'the server rejected our request due to an error in our request', {})
}

export function forbidden(resource: ResourceName, name: string, why: string): ApiError {
  const message = `${qualified(resource.plural, resource.group)} "${name}" is forbidden: ${why}`
  return failure(403, 'Forbidden', message, detailsOf(resource, name))
}

export function unauthorized(): ApiError {
  return failure(401, 'Unauthorized', 'Unauthorized')
}

/** 410 for a resourceVersion or a continue token that is too old. */
export function expired(message: string): ApiError {
  return failure(410, 'Expired', message)
}

/** 415 for a request body that is none of the accepted media types. */
export function unsupportedMediaType(accepted: string[]): ApiError {
  const message = `the body of the request was in an unknown format - accepted media types include: ${accepted.join(', ')}`
  return failure(415, 'UnsupportedMediaType', message)
}

/** 500; what server-side apply answers for a body that it cannot read has an empty reason. */
export function internalError(message: string, reason: '' | 'InternalError' = 'InternalError'): ApiError {
  return failure(500, reason, message)
}

/** Causes, each with the API's own reason. `value` is shown as JSON. */
export const cause = {
  required: (field: string, detail = ''): Cause => ({
    reason: 'FieldValueRequired',
    message: detail === '' ? 'Required value' : `Required value: ${detail}`,
    field,
  }),
  invalid: (field: string, value: unknown, detail: string): Cause => ({
    reason: 'FieldValueInvalid',
    message: `Invalid value: ${shown(value)}: ${detail}`,
    field,
  }),
  duplicate: (field: string, value: unknown): Cause => ({
    reason: 'FieldValueDuplicate',
    message: `Duplicate value: ${shown(value)}`,
    field,
  }),
  notSupported: (field: string, value: unknown, supported: string[]): Cause => ({
    reason: 'FieldValueNotSupported',
    message: `Unsupported value: ${shown(value)}: supported values: ${supported.map((one) => `"${one}"`).join(', ')}`,
    field,
  }),
  forbidden: (field: string, detail: string): Cause => ({
    reason: 'FieldValueForbidden',
    message: `Forbidden: ${detail}`,
    field,
  }),
  notFound: (field: string, value: unknown): Cause => ({
    reason: 'FieldValueNotFound',
    message: `Not found: ${shown(value)}`,
    field,
  }),
  tooLong: (field: string, maxLength: number, what = 'bytes'): Cause => ({
    reason: 'FieldValueTooLong',
    message: `Too long: may not be more than ${maxLength} ${what}`,
    field,
  }),
}

function shown(value: unknown): string {
  return value === undefined ? 'null' : JSON.stringify(value)
}
