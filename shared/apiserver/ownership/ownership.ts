import type { KubeObject } from '../../kinds/object.ts'
import type { KindSchema, SchemaNode } from '../schema.ts'
import {
  difference,
  emptySet,
  type FieldSet,
  intersection,
  isEmptySet,
  recursiveDifference,
  setOfPaths,
  union,
} from './field-set.ts'
import { idOf, type Managed, type Manager, type Owned } from './managed-fields.ts'
import { type Comparison, compared, fieldSetOf, withNamedFields, withoutItems } from './typed.ts'

/** Who owns what after a write. Pure; the rules are those of structured-merge-diff and of the API server around it. */

export interface Write {
  schema: KindSchema
  manager: string
  apiVersion: string
  /** The instant of the write, RFC 3339 with whole seconds. */
  now: string
  subresource?: string | undefined
}

export function managerOf(
  { manager, apiVersion, subresource }: Write,
  operation: Manager['operation'],
): Manager {
  return { manager: manager || 'unknown', operation, apiVersion, ...(subresource && { subresource }) }
}

/** The paths that a write to this resource or subresource never changes. */
export function ignoredBy({ schema, subresource }: Write): FieldSet {
  return setOfPaths(subresource === 'status' ? schema.resetFields.status : schema.resetFields.main)
}

/** What is different, leaving out what this write cannot change. */
export function exceptIgnored({ added, modified, removed }: Comparison, write: Write): Comparison {
  const ignored = ignoredBy(write)
  return {
    added: recursiveDifference(added, ignored),
    modified: recursiveDifference(modified, ignored),
    removed: recursiveDifference(removed, ignored),
  }
}

/** The managers after an update: the writer owns what it added or changed, nobody owns what is gone. */
export function afterUpdate(managed: Managed, before: KubeObject, after: KubeObject, write: Write): Managed {
  const self = managerOf(write, 'Update')
  const id = idOf(self)
  const change = exceptIgnored(compared(before, after, write.schema.root), write)
  const kept = new Map(afterLosses(managed, undefined, change))
  const taken = withoutMeta(difference(union(change.modified, change.added), change.removed))
  if (isEmptySet(taken)) return kept
  const set = union(kept.get(id)?.set ?? emptySet, taken)
  return kept.set(id, { ...self, set, time: write.now })
}

/** The others without what changed under them and what is gone; who has nothing left is no manager any more. */
export function afterLosses(managed: Managed, self: string | undefined, change: Comparison): Managed {
  const changed = union(change.modified, change.added)
  const kept = new Map<string, Owned>()
  for (const [id, owned] of managed) {
    const set =
      id === self
        ? owned.set
        : difference(difference(owned.set, intersection(owned.set, changed)), change.removed)
    if (id === self || !isEmptySet(set)) kept.set(id, { ...owned, set })
  }
  return kept
}

/** What other managers own of what changes. */
export function conflictsOf(
  managed: Managed,
  self: string,
  change: Comparison,
): { owner: Owned; set: FieldSet }[] {
  const changed = union(change.modified, change.added)
  return [...managed]
    .filter(([id]) => id !== self)
    .map(([, owner]) => ({ owner, set: intersection(owner.set, changed) }))
    .filter(({ set }) => !isEmptySet(set))
}

/** Paths of which nobody is ever named the owner. */
const meta = setOfPaths([
  ['f:apiVersion'],
  ['f:kind'],
  ['f:metadata'],
  ...[
    'name',
    'namespace',
    'creationTimestamp',
    'selfLink',
    'uid',
    'clusterName',
    'generation',
    'managedFields',
    'resourceVersion',
  ].map((field) => ['f:metadata', `f:${field}`]),
])

export function withoutMeta(set: FieldSet): FieldSet {
  return difference(set, meta)
}

/**
 * The merged object without what an applier stated last time and states no more. What another manager (or the same,
 * now) owns stays, and so does what was not stated but hangs on it.
 */
export function withoutForgotten(
  whole: KubeObject,
  last: FieldSet,
  managed: Managed,
  root: SchemaNode,
): KubeObject {
  const named = (set: FieldSet) => withNamedFields(set, root)
  const all = named(fieldSetOf(whole, root))
  const goneFrom = (rest: unknown) => difference(all, named(fieldSetOf(rest ?? {}, root)))
  const bare = withoutItems(whole, root, named(last))
  const owned = [...managed.values()].reduce((sum, one) => union(sum, one.set), emptySet)
  const kept = withoutItems(whole, root, difference(goneFrom(bare), named(owned)))
  return withoutItems(whole, root, intersection(goneFrom(kept), named(last))) as KubeObject
}
