import type { KubeObject, Resource } from '../../kinds/object.ts'
import { DecodeError } from '../defaults/decode.ts'
import { type ApiError, badRequest, failure, internalError } from '../status.ts'
import {
  difference,
  emptySet,
  type FieldSet,
  isEmptySet,
  pathsOf,
  recursiveDifference,
  spelled,
} from './field-set.ts'
import { unchangedLastApplied, withLastApplied } from './last-applied.ts'
import {
  capped,
  idOf,
  isReset,
  type Managed,
  managedOf,
  noManagers,
  type Owned,
  withManaged,
  withOldTimes,
  withoutManaged,
} from './managed-fields.ts'
import {
  afterLosses,
  afterUpdate,
  conflictsOf,
  exceptIgnored,
  ignoredBy,
  managerOf,
  type Write,
  withoutForgotten,
  withoutMeta,
} from './ownership.ts'
import { compared, equal, fieldSetOf, merged } from './typed.ts'
import { joinedErrors, typedErrors } from './typed-errors.ts'

/**
 * Server-side apply and field ownership (KEP-555).
 *
 * Flow of an apply: the fields that the body states become its manager's set; the living object is merged with the
 * body; what the manager stated before and states no more goes, unless somebody else owns it; whoever owned a field
 * that changed is in conflict, or loses it with force. An update (POST, PUT, the other patches) owns what it changed.
 * Guarantees: inputs are not changed; a write that changes nothing gives the object back as it was, times included.
 * Limit: ownership is never converted between versions of a kind.
 */

export interface ApplyRequest extends Write {
  resource: Pick<Resource, 'kind'>
  /** The object as it is stored; undefined when there is none. */
  live: KubeObject | undefined
  /** The body. */
  applied: KubeObject
  force: boolean
  /** Makes of the merged object what would be stored: defaults, canonical values. May throw ApiError or DecodeError. */
  normalise: (object: KubeObject) => KubeObject
}

/**
 * The object after the apply, with its managedFields. Throws ApiError: 400 for a body with managedFields or of another
 * kind, 500 for one that the schema cannot read, 409 with the conflicts. What such a write cannot change (the status,
 * or all but it) is the caller's to put back. Names, uid, resourceVersion and validity are
 * the caller's to check.
 */
export function applyPatch(request: ApplyRequest): { object: KubeObject } {
  const { applied, schema, manager, apiVersion, resource, live } = request
  checkBody(request)
  const existing = live ?? { ...schema.empty, apiVersion, kind: resource.kind }
  const before = withoutManaged(existing)
  const managed = managedOrFirst(request, before, managedOf(existing.metadata?.managedFields))
  const outcome = applyTo(before, managed, request)
  const object = manager === 'kubectl' ? withLastApplied(outcome.object, before, applied) : outcome.object
  const result = withManaged(object, capped(outcome.managed))
  return { object: live ? withOldTimes(live, result) : result }
}

function checkBody(request: ApplyRequest): void {
  const { applied, schema, apiVersion, resource } = request
  if (applied.metadata?.managedFields !== undefined && applied.metadata.managedFields !== null)
    throw badRequest('metadata.managedFields must be nil')
  if (applied.apiVersion !== apiVersion || applied.kind !== resource.kind)
    throw badRequest(`invalid object type: ${groupVersion(applied.apiVersion)}, Kind=${applied.kind ?? ''}`)
  const errors = typedErrors(applied, schema.root, { allowDuplicates: false })
  if (errors.length === 0) return
  throw internalError(`failed to create typed patch object (${named(request)}): ${joinedErrors(errors)}`, '')
}

function named({ applied, apiVersion, resource }: ApplyRequest): string {
  const { namespace = '', name = '' } = applied.metadata ?? {}
  return `${namespace}/${name}; ${groupVersion(apiVersion)}, Kind=${resource.kind}`
}

/** Messages give the core group its slash. */
const groupVersion = (apiVersion = '') => (apiVersion.includes('/') ? apiVersion : `/${apiVersion}`)

/** What was merged, as it would be stored; a value that its type cannot hold is a 500. */
function stored(merged: KubeObject, request: ApplyRequest): KubeObject {
  try {
    return request.normalise(merged)
  } catch (error) {
    if (!(error instanceof DecodeError)) throw error
    const kind = `${groupVersion(request.apiVersion)}, Kind=${request.resource.kind}`
    const why = `unable to convert unstructured object to ${kind}: ${error.message}`
    throw internalError(`failed to convert new object (${named(request)}) to proper version: ${why}`, '')
  }
}

/** An object without managers was written before anybody applied: all that it has is put down to that time. */
function managedOrFirst(request: ApplyRequest, stored: KubeObject, managed = noManagers): Managed {
  if (managed.size > 0 || !request.live) return managed
  return afterUpdate(noManagers, request.schema.empty, stored, { ...request, manager: 'before-first-apply' })
}

interface Outcome {
  object: KubeObject
  managed: Managed
}

function applyTo(before: KubeObject, managed: Managed, request: ApplyRequest): Outcome {
  const { schema, now, force, manager, applied } = request
  const self = managerOf(request, 'Apply')
  const id = idOf(self)
  const last = managed.get(id)
  const owners = new Map(managed).set(id, {
    ...self,
    set: recursiveDifference(fieldSetOf(applied, schema.root), ignoredBy(request)),
    time: last?.time,
  })
  const whole = merged(before, applied, schema.root) as KubeObject
  const left = last ? withoutForgotten(whole, last.set, owners, schema.root) : whole
  const change = exceptIgnored(compared(before, left, schema.root), request)
  if (!force) {
    const allowed = manager === 'kubectl' ? unchangedLastApplied(before, schema.root) : emptySet
    refuseConflicts(conflictsOf(owners, id, change), allowed)
  }
  // The order of lists counts here, and so does what this write cannot change: stating it renews the time.
  const isSame = equal(before, left)
  return {
    object: isSame ? before : stored(left, request),
    managed: withOwn(afterLosses(owners, id, change), id, isSame ? {} : { time: now }),
  }
}

/** The applier's own entry made final: nothing of the object's identity in it, and gone when nothing is left. */
function withOwn(managed: Managed, id: string, news: { time?: string }): Managed {
  const kept = new Map(managed)
  const own = kept.get(id)
  if (!own) return kept
  const set = withoutMeta(own.set)
  if (isEmptySet(set)) kept.delete(id)
  else kept.set(id, { ...own, ...news, set })
  return kept
}

/** kubectl may take over what its own client-side apply owned, when nobody has changed it since (`allowed`). */
function refuseConflicts(all: { owner: Owned; set: FieldSet }[], allowed: FieldSet): void {
  const conflicts = all
    .map(({ owner, set }) => ({ owner, set: difference(set, allowed) }))
    .filter(({ set }) => !isEmptySet(set))
  if (conflicts.length > 0) throw conflictError(conflicts)
}

function conflictError(conflicts: { owner: Owned; set: FieldSet }[]): ApiError {
  const lines = conflicts
    .toSorted((a, b) => (orderKey(a.owner) < orderKey(b.owner) ? -1 : 1))
    .map(({ owner, set }) => ({ who: who(owner), paths: pathsOf(set).map(spelled) }))
  const count = lines.reduce((sum, { paths }) => sum + paths.length, 0)
  const told = lines.map(({ who, paths }) =>
    count === 1
      ? `conflict with ${who}: ${paths[0]}`
      : `conflicts with ${who}:${paths.map((path) => `\n- ${path}`).join('')}`,
  )
  const message = `Apply failed with ${count} ${count === 1 ? 'conflict' : 'conflicts'}: ${told.join('\n')}`
  const causes = lines.flatMap(({ who, paths }) =>
    paths.map((field) => ({ reason: 'FieldManagerConflict', message: `conflict with ${who}`, field })),
  )
  return failure(409, 'Conflict', message, { causes })
}

/** The real server orders conflicts by its identifier of the manager, a JSON text with the time of an Update in it. */
function orderKey({ manager, operation, apiVersion, time, subresource }: Owned): string {
  const stamp = operation === 'Update' ? time : undefined
  return JSON.stringify({
    manager,
    operation,
    apiVersion,
    time: stamp,
    subresource: subresource || undefined,
  })
}

/** A manager as a conflict names it. */
function who({ manager, operation, apiVersion, subresource }: Owned): string {
  const name = `"${manager}"${subresource ? ` with subresource "${subresource}"` : ''}`
  return operation === 'Update' ? `${name} using ${apiVersion}` : name
}

export interface UpdateRequest extends Write {
  /** The object as it is stored; undefined for a create. */
  before: KubeObject | undefined
  /** What would be stored: defaulted, canonical, with the status or spec that this write cannot change left as it was. */
  after: KubeObject
}

/**
 * `after` with the managedFields that a POST, PUT or PATCH leaves. A main-resource write may bring managedFields of its
 * own (a JSON patch that moves ownership); `[{}]` makes the server forget them; what cannot be read is ignored.
 */
export function updateManagedFields(request: UpdateRequest): KubeObject {
  const { before, after, schema, subresource } = request
  const current = managedOf(before?.metadata?.managedFields) ?? noManagers
  const brought = subresource ? undefined : after.metadata?.managedFields
  const own = managedOf(brought)
  const managed = isReset(brought) ? noManagers : own && own.size > 0 ? own : current
  const bare = withoutManaged(after)
  if (managed.size === 0 && before) return bare
  const stored = before ? withoutManaged(before) : schema.empty
  const result = withManaged(bare, capped(afterUpdate(managed, stored, bare, request)))
  return before ? withOldTimes(before, result) : result
}
