import type { KubeObject, ManagedFieldsEntry } from '../../kinds/object.ts'
import { type FieldSet, fieldSetFrom, fieldsV1Of, union } from './field-set.ts'
import { equal } from './typed.ts'

/** Who wrote: a manager, by which operation, in which version, to which subresource. */
export interface Manager {
  manager: string
  operation: 'Apply' | 'Update'
  apiVersion: string
  subresource?: string
}

/** What one manager owns. `time` is absent when an apply changed nothing but ownership. */
export interface Owned extends Manager {
  readonly set: FieldSet
  readonly time?: string | undefined
}

/** All managers of an object, by {@link idOf}. */
export type Managed = ReadonlyMap<string, Owned>

export const noManagers: Managed = new Map()

/** Tells managers apart. An applier is the same one in every version. */
export function idOf({ manager, operation, apiVersion, subresource }: Manager): string {
  return JSON.stringify([manager, operation, operation === 'Apply' ? '' : apiVersion, subresource ?? ''])
}

/** Reads `metadata.managedFields`; undefined when an entry cannot be read. */
export function managedOf(entries: readonly ManagedFieldsEntry[] | null | undefined): Managed | undefined {
  const managed = new Map<string, Owned>()
  for (const entry of entries ?? []) {
    if (!isEntry(entry)) return undefined
    try {
      const { manager = '', operation, apiVersion, subresource, time } = entry
      const head = { manager, operation, apiVersion, ...(subresource && { subresource }) }
      managed.set(idOf(head), { ...head, set: fieldSetFrom(entry.fieldsV1), time })
    } catch {
      return undefined
    }
  }
  return managed
}

function isEntry(entry: ManagedFieldsEntry): entry is ManagedFieldsEntry & {
  operation: 'Apply' | 'Update'
  apiVersion: string
  fieldsV1: NonNullable<ManagedFieldsEntry['fieldsV1']>
} {
  const { operation, apiVersion, fieldsType, fieldsV1 } = entry
  return (
    (operation === 'Apply' || operation === 'Update') &&
    typeof apiVersion === 'string' &&
    apiVersion !== '' &&
    fieldsType === 'FieldsV1' &&
    typeof fieldsV1 === 'object' &&
    fieldsV1 !== null
  )
}

/** What a client sends to make the server forget all managers: `[]`, or `[{}]`. */
export function isReset(entries: readonly ManagedFieldsEntry[] | null | undefined): boolean {
  if (!entries) return false
  return entries.length === 0 || (entries.length === 1 && Object.keys(entries[0] ?? {}).length === 0)
}

/** The object with these managers, in the server's order; without the field when there are none. */
export function withManaged(object: KubeObject, managed: Managed): KubeObject {
  const entries = [...managed.values()].sort(compareOwned).map(entryOf)
  const bare = withoutManaged(object)
  return entries.length === 0 ? bare : { ...bare, metadata: { ...bare.metadata, managedFields: entries } }
}

export function withoutManaged(object: KubeObject): KubeObject {
  if (object.metadata?.managedFields === undefined) return object
  const { managedFields: _, ...metadata } = object.metadata
  return { ...object, metadata }
}

function entryOf({ manager, operation, apiVersion, time, set, subresource }: Owned): ManagedFieldsEntry {
  return {
    ...(manager !== '' && { manager }),
    operation,
    apiVersion,
    ...(time !== undefined && { time }),
    fieldsType: 'FieldsV1',
    fieldsV1: fieldsV1Of(set),
    ...(subresource && { subresource }),
  }
}

/** Appliers first, then the older, then by name. */
function compareOwned(a: Owned, b: Owned): number {
  const keys = (one: Owned) => [
    one.operation,
    one.time ?? '',
    one.manager,
    one.apiVersion,
    one.subresource ?? '',
  ]
  const others = keys(b)
  for (const [place, key] of keys(a).entries()) {
    const other = others[place] ?? ''
    if (key !== other) return key < other ? -1 : 1
  }
  return 0
}

/** Past so many Update managers the oldest are folded into one. */
const updateManagersMax = 10
const ancient = 'ancient-changes'

/** Folds the oldest Update managers, by version, into `ancient-changes` when there are more than ten. */
export function capped(managed: Managed): Managed {
  const updaters = [...managed.values()].filter((one) => one.operation === 'Update').sort(compareOwned)
  let surplus = updaters.length - updateManagersMax
  if (surplus <= 0) return managed
  const kept = new Map(managed)
  for (const owned of updaters) {
    if (surplus <= 0) break
    const bucket: Manager = { manager: ancient, operation: 'Update', apiVersion: owned.apiVersion }
    const bucketId = idOf(bucket)
    if (bucketId === idOf(owned)) continue
    const known = kept.get(bucketId)
    kept.delete(idOf(owned))
    // The first one only renames an entry; each later one makes the list shorter.
    if (known) surplus--
    kept.set(bucketId, {
      ...bucket,
      set: known ? union(known.set, owned.set) : owned.set,
      time: later(known?.time, owned.time),
    })
  }
  return kept
}

function later(a: string | undefined, b: string | undefined): string | undefined {
  return a !== undefined && (b === undefined || a > b) ? a : b
}

/**
 * `after`, but with the times of `before` when nothing else is different: a write that changes nothing leaves an
 * object untouched.
 */
export function withOldTimes(before: KubeObject, after: KubeObject): KubeObject {
  const { managedFields, ...metadata } = before.metadata ?? {}
  const { managedFields: newer, ...newMetadata } = after.metadata ?? {}
  const anyVersion = { resourceVersion: '' }
  if (!equal(timeless(managedFields), timeless(newer))) return after
  if (!equal({ ...before, metadata: 0 }, { ...after, metadata: 0 })) return after
  if (!equal({ ...metadata, ...anyVersion }, { ...newMetadata, ...anyVersion })) return after
  return { ...after, metadata: { ...after.metadata, ...(managedFields && { managedFields }) } }
}

function timeless(entries: readonly ManagedFieldsEntry[] | undefined) {
  return (entries ?? []).map(({ time: _, ...entry }) => entry)
}
