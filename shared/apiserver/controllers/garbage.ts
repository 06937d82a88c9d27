import type { KubeObject, OwnerReference, StoredObject } from '../../kinds/object.ts'
import type { ServerContext } from '../context.ts'
import { deleteObject, type Propagation } from '../deletion.ts'
import { updateObject } from '../operations.ts'
import { type ApiResource, keyOf } from '../resources.ts'
import { ApiError } from '../status.ts'
import { workFor } from './work.ts'

const manager = 'kube-controller-manager'
const foreground = 'foregroundDeletion'
const orphan = 'orphan'

/** Where an object is, as one string: its collection and its key. */
type Id = string

const idOf = (storage: string, key: string): Id => `${storage}\0${key}`

/**
 * The garbage collector: deletes an object when none of its owners is left, and ends foreground and orphan deletions. It works
 * after each change, `delayMs` later; with 0 before anybody's next request. Gives what ends it.
 */
export function collectGarbage(ctx: ServerContext, options: { delayMs: number }): () => void {
  const graph = ownership()
  const work = workFor(ctx.clock, { delayMs: options.delayMs, act: (id) => examine(ctx, graph, id) })
  for (const storage of ctx.store.storages())
    for (const object of ctx.store.list(storage, '')) {
      const { namespace, name } = object.metadata
      graph.enter(idOf(storage, keyOf({ namespaced: namespace !== undefined }, namespace, name)), object)
    }
  const end = ctx.store.subscribe('*', ({ type, storage, key, object, before }) => {
    const id = idOf(storage, key)
    graph.forget(id, before)
    if (type === 'DELETED') {
      for (const dependent of graph.dependentsOf(object.metadata.uid)) work.add(dependent)
      // An owner may have waited for this one.
      for (const { uid } of object.metadata.ownerReferences ?? []) {
        const owner = graph.place(uid)
        if (owner) work.add(owner)
      }
      graph.leave(object.metadata.uid)
      return
    }
    graph.enter(id, object)
    const { ownerReferences = [], deletionTimestamp } = object.metadata
    if (ownerReferences.length > 0 || deletionTimestamp) work.add(id)
  })
  return () => {
    end()
    work.stop()
  }
}

interface Ownership {
  enter(id: Id, object: StoredObject): void
  forget(id: Id, before: StoredObject | undefined): void
  leave(uid: string): void
  place(uid: string): Id | undefined
  dependentsOf(uid: string): Id[]
}

/** Who names whom as owner, by uid. */
function ownership(): Ownership {
  const dependents = new Map<string, Set<Id>>()
  const places = new Map<string, Id>()
  return {
    enter(id, object) {
      places.set(object.metadata.uid, id)
      for (const { uid } of object.metadata.ownerReferences ?? []) {
        const known = dependents.get(uid) ?? new Set()
        dependents.set(uid, known.add(id))
      }
    },
    forget(id, before) {
      for (const { uid } of before?.metadata.ownerReferences ?? []) {
        const known = dependents.get(uid)
        known?.delete(id)
        if (known?.size === 0) dependents.delete(uid)
      }
    },
    leave: (uid) => places.delete(uid),
    place: (uid) => places.get(uid),
    dependentsOf: (uid) => [...(dependents.get(uid) ?? [])],
  }
}

function found(ctx: ServerContext, id: Id): { resource: ApiResource; object: StoredObject } | undefined {
  const [storage = '', key = ''] = id.split('\0')
  const resource = ctx.registry.findStorage(storage)
  const object = ctx.store.get(storage, key)
  return resource && object ? { resource, object } : undefined
}

function examine(ctx: ServerContext, graph: Ownership, id: Id): void {
  const item = found(ctx, id)
  if (!item) return
  try {
    if (isDeletedBy(item.object, orphan)) orphanDependents(ctx, graph, item)
    if (isDeletedBy(item.object, foreground)) deleteDependents(ctx, graph, item)
    judge(ctx, graph, item)
  } catch (error) {
    // Somebody changed or removed it meanwhile: that change asks for it again.
    if (!(error instanceof ApiError)) throw error
  }
}

interface Item {
  resource: ApiResource
  object: StoredObject
}

function isDeletedBy({ metadata }: StoredObject, finalizer: string): boolean {
  return metadata.deletionTimestamp !== undefined && (metadata.finalizers?.includes(finalizer) ?? false)
}

function change(
  ctx: ServerContext,
  { resource, object }: Item,
  next: (live: StoredObject) => KubeObject,
): void {
  updateObject(ctx, resource, object.metadata, next, { manager })
}

function withoutFinalizer(live: StoredObject, name: string): KubeObject {
  const finalizers = (live.metadata.finalizers ?? []).filter((other) => other !== name)
  return { ...live, metadata: { ...live.metadata, finalizers } }
}

function withoutOwners(live: StoredObject, uids: Set<string>): KubeObject {
  const ownerReferences = (live.metadata.ownerReferences ?? []).filter(({ uid }) => !uids.has(uid))
  return { ...live, metadata: { ...live.metadata, ownerReferences } }
}

function orphanDependents(ctx: ServerContext, graph: Ownership, item: Item): void {
  const { uid } = item.object.metadata
  for (const id of graph.dependentsOf(uid)) {
    const dependent = found(ctx, id)
    if (dependent) change(ctx, dependent, (live) => withoutOwners(live, new Set([uid])))
  }
  change(ctx, item, (live) => withoutFinalizer(live, orphan))
}

/** Foreground: what blocks the owner goes first, then the owner. */
function deleteDependents(ctx: ServerContext, graph: Ownership, item: Item): void {
  const { uid } = item.object.metadata
  const isBlocking = (object: StoredObject) =>
    object.metadata.ownerReferences?.some(
      (owner) => owner.uid === uid && owner.blockOwnerDeletion === true,
    ) ?? false
  const dependents = graph.dependentsOf(uid).flatMap((id) => found(ctx, id) ?? [])
  for (const dependent of dependents) judge(ctx, graph, dependent)
  const left = graph.dependentsOf(uid).flatMap((id) => found(ctx, id)?.object ?? [])
  if (!left.some(isBlocking)) change(ctx, item, (live) => withoutFinalizer(live, foreground))
}

/** Deletes an object that no owner holds any more; takes the owners that are gone off one that another holds. */
function judge(ctx: ServerContext, graph: Ownership, item: Item): void {
  const { object, resource } = item
  const owners = object.metadata.ownerReferences ?? []
  if (owners.length === 0 || object.metadata.deletionTimestamp) return
  const states = owners.map((owner) => ({ owner, state: stateOf(ctx, object, owner) }))
  if (states.some(({ state }) => state === 'unknown')) return
  const gone = states.filter(({ state }) => state !== 'solid').map(({ owner }) => owner.uid)
  if (gone.length === 0) return
  if (gone.length < owners.length) {
    change(ctx, item, (live) => withoutOwners(live, new Set(gone)))
    return
  }
  const isWaitedFor = states.some(({ state }) => state === 'waiting')
  const hasDependents = graph.dependentsOf(object.metadata.uid).length > 0
  const propagation: Propagation = isWaitedFor && hasDependents ? 'Foreground' : policyOf(object)
  const { uid } = object.metadata
  deleteObject(ctx, resource, object.metadata, { uid, propagation })
}

function policyOf({ metadata: { finalizers = [] } }: StoredObject): Propagation {
  if (finalizers.includes(orphan)) return 'Orphan'
  return finalizers.includes(foreground) ? 'Foreground' : 'Background'
}

type OwnerState = 'solid' | 'absent' | 'waiting' | 'unknown'

/** What has become of an owner; `waiting` is one that is deleted in the foreground, `unknown` one whose kind nobody serves. */
function stateOf(ctx: ServerContext, dependent: StoredObject, owner: OwnerReference): OwnerState {
  const resource = ctx.registry.findKind(owner.apiVersion, owner.kind)
  if (!resource) return 'unknown'
  const { namespace } = dependent.metadata
  // A cluster-wide object cannot be owned from within a namespace; nobody can tell which one is meant.
  if (resource.namespaced && namespace === undefined) return 'unknown'
  const found = ctx.store.get(resource.storage, keyOf(resource, namespace, owner.name))
  if (found?.metadata.uid !== owner.uid) return 'absent'
  return isDeletedBy(found, foreground) ? 'waiting' : 'solid'
}
