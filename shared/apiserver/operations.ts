import { isDeepStrictEqual } from 'node:util'
import type { KubeObject, ObjectMeta, StoredObject } from '../kinds/object.ts'
import { generatedName, type ServerContext, stampOf, uidFrom } from './context.ts'
import { metadataCauses } from './metadata.ts'
import { recordManager, type WriteOptions } from './ownership/managers.ts'
import { type ApiResource, keyOf } from './resources.ts'
import {
  alreadyExists,
  badRequest,
  type Cause,
  cause,
  conflict,
  failure,
  forbidden,
  internalError,
  invalid,
  notFound,
  uidMismatch,
} from './status.ts'

/** The writes of the API on objects that are already read and pruned; no HTTP here, so controllers use them too. */

export interface Place {
  namespace?: string | undefined
  name: string
}

/** Stores a new object. Throws 404 (namespace), 403 (namespace going away), 409 and 422. */
export function createObject(
  ctx: ServerContext,
  resource: ApiResource,
  namespace: string | undefined,
  object: KubeObject,
  options: WriteOptions,
): StoredObject {
  const named = withNewMetadata(ctx, resource, namespace, object)
  admitNamespace(ctx, resource, namespace, named.metadata?.name ?? '')
  // In this order: what the server sets by itself on a new object has no manager.
  const created = resource.rules.prepareCreate(recordManager(ctx, resource, undefined, named, options))
  check(resource, created, undefined)
  const { name = '' } = created.metadata ?? {}
  const key = keyOf(resource, namespace, name)
  const other = ctx.store.get(resource.storage, key)
  if (other) throw alreadyExists(resource, name, other.metadata.deletionTimestamp !== undefined)
  if (object.metadata?.resourceVersion)
    throw internalError('resourceVersion should not be set on objects to be created', '')
  if (options.dryRun) return created as StoredObject
  const stored = ctx.store.put(resource.storage, key, created as StoredObject)
  if (resource.customSchema && resource.hasStatus && stored.status !== undefined) ctx.unwritten.add(stored)
  return stored
}

function withNewMetadata(
  ctx: ServerContext,
  resource: ApiResource,
  namespace: string | undefined,
  object: KubeObject,
): KubeObject {
  const given = object.metadata ?? {}
  if (given.namespace && given.namespace !== (namespace ?? ''))
    throw badRequest('the namespace of the provided object does not match the namespace sent on the request')
  const name = given.name || (given.generateName && freeName(ctx, resource, namespace, given.generateName))
  const { deletionTimestamp: _1, deletionGracePeriodSeconds: _2, resourceVersion: _3, ...kept } = given
  const metadata: ObjectMeta = {
    ...withoutSelfLink(kept),
    ...(name && { name }),
    ...(resource.namespaced && namespace !== undefined && { namespace }),
    uid: uidFrom(ctx.clock),
    creationTimestamp: stampOf(ctx.clock.now()),
    ...(resource.rules.hasGeneration && { generation: 1 }),
  }
  return { ...object, metadata }
}

/** So often a name that is taken already is drawn anew. */
const nameTriesMax = 8

function freeName(
  ctx: ServerContext,
  resource: ApiResource,
  namespace: string | undefined,
  base: string,
): string {
  for (let tries = 1; ; tries++) {
    const name = generatedName(base, ctx.clock)
    const isTaken = ctx.store.get(resource.storage, keyOf(resource, namespace, name)) !== undefined
    if (!isTaken || tries === nameTriesMax) return name
  }
}

function withoutSelfLink(metadata: ObjectMeta & { selfLink?: string }): ObjectMeta {
  const { selfLink: _, ...rest } = metadata
  return rest
}

/** Nothing is created in a namespace that is not there or on its way out. */
export function admitNamespace(
  ctx: ServerContext,
  resource: ApiResource,
  namespace: string | undefined,
  name: string,
): void {
  if (!resource.namespaced || namespace === undefined) return
  const found = ctx.store.get('namespaces', namespace)
  if (!found) throw notFound({ group: '', kind: 'Namespace', plural: 'namespaces' }, namespace)
  if (!found.metadata.deletionTimestamp) return
  const why = `unable to create new content in namespace ${namespace} because it is being terminated`
  const { status } = forbidden(resource, name, why)
  const message = `namespace ${namespace} is being terminated`
  throw failure(403, 'Forbidden', status.message ?? '', {
    ...status.details,
    causes: [{ reason: 'NamespaceTerminating', message, field: 'metadata.namespace' }],
  })
}

function check(
  resource: ApiResource,
  object: KubeObject,
  live: KubeObject | undefined,
  subresource?: string,
): void {
  const { rules } = resource
  const own = rules.validate(object, live)
  // The real server holds a custom resource's status by itself to its schema, so its messages name what is in it.
  const isStatus = subresource === 'status' && rules.isTyped
  const causes = [
    ...metadataCauses(object, live, rules.nameErrors),
    ...(isStatus ? own.map(withinStatus) : own),
  ]
  // The real server checks Events of either group as core ones.
  const named = resource.storage === 'events.events.k8s.io' ? { ...resource, group: '' } : resource
  if (causes.length > 0) throw invalid(named, object.metadata?.name ?? '', causes)
}

function withinStatus(one: Cause): Cause {
  const message = one.message.replace(/: status\.?(\S*) in body /, ': $1 in body ')
  return { ...one, message }
}

/**
 * Puts what `change` makes of the live object in its place. Writes nothing when nothing would change; removes the object when it
 * is being deleted and its last finalizer goes. Throws 404, 409 and 422.
 */
export function updateObject(
  ctx: ServerContext,
  resource: ApiResource,
  place: Place,
  change: (live: StoredObject) => KubeObject,
  options: WriteOptions,
): StoredObject {
  const key = keyOf(resource, place.namespace, place.name)
  const live = ctx.store.get(resource.storage, key)
  if (!live) throw notFound(resource, place.name)
  const changed = change(live)
  checkVersion(resource, place, changed, live, options)
  const prepared = prepareUpdate(resource, changed, live, options.subresource)
  check(resource, prepared, live, options.subresource)
  const next = recordManager(ctx, resource, live, prepared, options)
  if (isFinished(next)) {
    if (!options.dryRun) ctx.store.remove(resource.storage, key)
    return next as StoredObject
  }
  if (isDeepStrictEqual(next, live) && !ctx.unwritten.has(live)) return live
  return options.dryRun ? (next as StoredObject) : ctx.store.put(resource.storage, key, next as StoredObject)
}

function checkVersion(
  resource: ApiResource,
  place: Place,
  changed: KubeObject,
  live: StoredObject,
  { isReplace }: WriteOptions,
): void {
  const { resourceVersion, uid } = changed.metadata ?? {}
  if (resourceVersion && !/^\d+$/.test(resourceVersion))
    throw internalError(`strconv.ParseUint: parsing ${JSON.stringify(resourceVersion)}: invalid syntax`, '')
  if (isReplace && uid && uid !== live.metadata.uid)
    throw uidMismatch(resource, place, { asked: uid, live: live.metadata.uid })
  if (isReplace && !Number(resourceVersion ?? 0) && resource.rules.needsVersion)
    throw invalid({ ...resource, kind: resource.plural }, place.name, [
      cause.invalid('metadata.resourceVersion', 0, 'must be specified for an update'),
    ])
  if (resourceVersion && resourceVersion !== '0' && resourceVersion !== live.metadata.resourceVersion)
    throw conflict(resource, place.name)
}

/** What no client may change is taken from the live object; generation counts the changes of the spec. */
function prepareUpdate(
  resource: ApiResource,
  changed: KubeObject,
  live: StoredObject,
  subresource: string | undefined,
): KubeObject {
  const { rules } = resource
  const given =
    subresource === 'status' ? rules.prepareStatus(changed, live) : rules.prepareUpdate(changed, live)
  const { creationTimestamp, deletionGracePeriodSeconds, generation, namespace, uid, resourceVersion } =
    live.metadata
  const deletionTimestamp = given.metadata?.deletionTimestamp ?? live.metadata.deletionTimestamp
  const { generation: _1, deletionGracePeriodSeconds: _2, ...kept } = withoutSelfLink(given.metadata ?? {})
  const isNewSpec = rules.hasGeneration && subresource !== 'status' && isSpecChange(resource, given, live)
  const metadata: ObjectMeta = {
    ...kept,
    ...(namespace !== undefined && { namespace }),
    uid: given.metadata?.uid ?? uid,
    resourceVersion,
    ...(generation !== undefined && { generation: generation + (isNewSpec ? 1 : 0) }),
    ...(creationTimestamp && { creationTimestamp }),
    ...(deletionTimestamp && { deletionTimestamp }),
    ...(deletionGracePeriodSeconds !== undefined && { deletionGracePeriodSeconds }),
  }
  return { ...given, metadata: withoutEmpty(metadata) }
}

/** Empty maps and lists of metadata are not stored; an empty list of managers asks to forget them. */
function withoutEmpty(metadata: ObjectMeta): ObjectMeta {
  const isEmpty = (value: unknown) =>
    value === undefined || value === null || (typeof value === 'object' && Object.keys(value).length === 0)
  return Object.fromEntries(
    Object.entries(metadata).filter(([name, value]) => name === 'managedFields' || !isEmpty(value)),
  )
}

function isSpecChange(resource: ApiResource, next: KubeObject, live: KubeObject): boolean {
  const spec = ({ metadata: _1, status: _2, ...rest }: KubeObject) => rest
  const ofDeployment = resource.kind === 'Deployment' && resource.group === 'apps'
  // A Deployment's annotations count too: they are copied to its ReplicaSets.
  if (ofDeployment && !isDeepStrictEqual(next.metadata?.annotations ?? {}, live.metadata?.annotations ?? {}))
    return true
  return !isDeepStrictEqual(spec(next), spec(live))
}

/** Whether the last thing that kept an object being deleted is gone. */
export function isFinished(object: KubeObject): boolean {
  const { deletionTimestamp, finalizers = [] } = object.metadata ?? {}
  if (!deletionTimestamp || finalizers.length > 0) return false
  if (object.kind !== 'Namespace') return true
  const spec = object.spec as { finalizers?: string[] } | undefined
  return (spec?.finalizers ?? []).length === 0
}
