import type { ObjectMeta, StoredObject } from '../kinds/object.ts'
import { type ServerContext, stampOf } from './context.ts'
import { isFinished, type Place } from './operations.ts'
import { type ApiResource, keyOf } from './resources.ts'
import { forbidden, notFound, preconditionFailed } from './status.ts'

export type Propagation = 'Background' | 'Foreground' | 'Orphan'

export interface DeletionOptions {
  uid?: string | undefined
  resourceVersion?: string | undefined
  propagation?: Propagation | undefined
  dryRun?: boolean
}

const immortal = new Set(['default', 'kube-system', 'kube-public'])

/**
 * Deletes an object: at once, or, while it has finalizers, by setting its deletionTimestamp. Gives the object that remains, or
 * that was, and whether it is gone. Throws 403, 404 and 409.
 */
export function deleteObject(
  ctx: ServerContext,
  resource: ApiResource,
  place: Place,
  options: DeletionOptions,
): { object: StoredObject; isGone: boolean } {
  const key = keyOf(resource, place.namespace, place.name)
  const live = ctx.store.get(resource.storage, key)
  const isNamespace = resource.storage === 'namespaces'
  if (isNamespace && immortal.has(place.name))
    throw forbidden(resource, place.name, 'this namespace may not be deleted')
  if (!live) throw notFound(resource, place.name)
  checkPreconditions(resource, live, options)
  const marked = marking(ctx, resource, live, options.propagation)
  if (isFinished(marked)) {
    if (!options.dryRun) ctx.store.remove(resource.storage, key)
    return { object: live, isGone: true }
  }
  if (options.dryRun || marked === live) return { object: marked, isGone: false }
  return { object: ctx.store.put(resource.storage, key, marked), isGone: false }
}

function checkPreconditions(
  resource: ApiResource,
  { metadata }: StoredObject,
  { uid, resourceVersion }: DeletionOptions,
): void {
  if (uid !== undefined && uid !== metadata.uid)
    throw preconditionFailed(resource, metadata.name, 'UID', uid, metadata.uid)
  if (resourceVersion !== undefined && resourceVersion !== metadata.resourceVersion)
    throw preconditionFailed(
      resource,
      metadata.name,
      'ResourceVersion',
      resourceVersion,
      metadata.resourceVersion,
    )
}

/** The object as it is once its deletion has begun; the very same one when nothing about it changes. */
function marking(
  ctx: ServerContext,
  resource: ApiResource,
  live: StoredObject,
  propagation: Propagation | undefined,
): StoredObject {
  const { deletionTimestamp, generation } = live.metadata
  const isCrd = resource.kind === 'CustomResourceDefinition'
  const asked = finalizersFor(live.metadata.finalizers ?? [], propagation)
  const finalizers = isCrd && !deletionTimestamp ? [...new Set([...asked, cleanupFinalizer])] : asked
  const isSame = finalizers.length === (live.metadata.finalizers ?? []).length
  if (deletionTimestamp && isSame && finalizers.every((name) => live.metadata.finalizers?.includes(name)))
    return live
  const { finalizers: _, ...kept } = live.metadata
  const isNamespace = resource.storage === 'namespaces'
  const waitsForContent = isNamespace || isCrd
  const metadata: ObjectMeta & StoredObject['metadata'] = {
    ...kept,
    ...(finalizers.length > 0 && { finalizers }),
    deletionTimestamp: deletionTimestamp ?? stampOf(ctx.clock.now()),
    // Namespaces and CRDs are not deleted gracefully: they only wait for their content to go.
    ...(!waitsForContent && { deletionGracePeriodSeconds: 0 }),
    ...(generation !== undefined &&
      generation > 0 &&
      !deletionTimestamp &&
      !waitsForContent && { generation: generation + 1 }),
  }
  const marked = { ...live, metadata }
  if (isNamespace) return { ...marked, status: { ...(live.status as object), phase: 'Terminating' } }
  return isCrd ? { ...marked, status: terminating(live, metadata.deletionTimestamp) } : marked
}

/** The finalizer that a CRD gets when it is deleted: its objects go first. */
export const cleanupFinalizer = 'customresourcecleanup.apiextensions.k8s.io'

function terminating(crd: StoredObject, now: string | undefined): object {
  const status = (crd.status ?? {}) as { conditions?: { type: string }[] | null }
  const condition = {
    type: 'Terminating',
    status: 'True',
    lastTransitionTime: now,
    reason: 'InstanceDeletionPending',
    message: 'CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon',
  }
  const others = (status.conditions ?? []).filter(({ type }) => type !== 'Terminating')
  return { ...status, conditions: [...others, condition] }
}

/** The way of propagation stands in a finalizer, which the garbage collector takes off. */
function finalizersFor(finalizers: string[], propagation: Propagation | undefined): string[] {
  if (propagation === undefined) return finalizers
  const own = { Orphan: 'orphan', Foreground: 'foregroundDeletion', Background: undefined }[propagation]
  const others = finalizers.filter((name) => name !== 'orphan' && name !== 'foregroundDeletion')
  if (own === undefined) return others
  return finalizers.includes(own)
    ? finalizers.filter((name) => others.includes(name) || name === own)
    : [...others, own]
}
