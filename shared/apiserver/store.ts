import type { ObjectMeta, StoredObject } from '../kinds/object.ts'
import { expired, internalError } from './status.ts'

/** One write, as a watch tells it. `object` carries the revision of the write as its resourceVersion. */
export interface Change {
  type: 'ADDED' | 'MODIFIED' | 'DELETED'
  revision: number
  /** The collection, for example `deployments.apps`. */
  storage: string
  key: string
  object: StoredObject
  before?: StoredObject
}

export type Listener = (change: Change) => void

/**
 * All objects of the server, with one counter of revisions for all of them and a history from which watches are
 * resumed. Objects handed in and out are never changed afterwards: a write puts a new one in the old one's place.
 */
export interface Store {
  /** The revision of the newest write. */
  revision(): number
  get(storage: string, key: string): StoredObject | undefined
  /** The objects whose key begins with `prefix`, in the order of their keys. */
  list(storage: string, prefix: string): StoredObject[]
  /** The same as it was at an older revision. Throws 410 when the history does not reach back. */
  listAt(storage: string, prefix: string, revision: number): StoredObject[]
  /** Writes an object (its resourceVersion is set) and tells everybody who listens. */
  put(storage: string, key: string, object: UnversionedObject): StoredObject
  remove(storage: string, key: string): StoredObject | undefined
  /** The changes after `revision`. Throws 410 when the history does not reach back. */
  since(storage: string, revision: number): Change[]
  /** Told of each change of the collection (of all with `*`), at once and in order. Gives what ends it. */
  subscribe(storage: string, listener: Listener): () => void
  storages(): string[]
  /** Forgets the history: a watch from an older revision is answered with 410. */
  compact(): void
}

export interface UnversionedObject {
  apiVersion?: string
  kind?: string
  metadata: ObjectMeta
  [field: string]: unknown
}

interface Collection {
  objects: Map<string, StoredObject>
  /** Sorted. */
  keys: string[]
  history: Change[]
  /** Changes up to this revision are no longer in the history. */
  forgotten: number
  listeners: Set<Listener>
}

/** How many changes of one collection are kept for watches that resume and for pages of a list. */
const historyLengthMax = 20_000

export interface StoreOptions {
  /** Of each collection. Default 20,000 changes. */
  historyLengthMax?: number | undefined
  /** What it begins with. */
  recovered?: { revision: number; objects: { storage: string; key: string; object: StoredObject }[] }
}

export function createStore(options: StoreOptions = {}): Store {
  const kept = options.historyLengthMax ?? historyLengthMax
  const collections = new Map<string, Collection>()
  let revision = Math.max(1, options.recovered?.revision ?? 1)
  // Nothing is known of what was before, but that a new server's first revision had nothing before it.
  const startRevision = options.recovered ? revision : 0
  const untold: Change[] = []
  let isTelling = false

  function collectionOf(storage: string): Collection {
    let collection = collections.get(storage)
    if (!collection) {
      collection = {
        objects: new Map(),
        keys: [],
        history: [],
        forgotten: startRevision,
        listeners: new Set(),
      }
      collections.set(storage, collection)
    }
    return collection
  }

  function record(collection: Collection, change: Change): void {
    collection.history.push(change)
    // Trimmed by halves, so that a write costs the same whatever the length.
    if (collection.history.length > kept * 2) {
      const dropped = collection.history.splice(0, collection.history.length - kept)
      collection.forgotten = dropped.at(-1)?.revision ?? collection.forgotten
    }
    untold.push(change)
    if (isTelling) return
    // A listener may write: what it writes is told after what it was told, so that everybody sees one order.
    isTelling = true
    try {
      for (let next = untold.shift(); next; next = untold.shift()) {
        for (const listener of collectionOf(next.storage).listeners) listener(next)
        for (const listener of collectionOf('*').listeners) listener(next)
      }
    } finally {
      isTelling = false
    }
  }

  for (const { storage, key, object } of options.recovered?.objects ?? []) {
    const collection = collectionOf(storage)
    collection.objects.set(key, object)
    collection.keys.push(key)
  }
  for (const collection of collections.values()) {
    collection.keys.sort()
    collection.forgotten = revision
  }

  return {
    revision: () => revision,
    get: (storage, key) => collections.get(storage)?.objects.get(key),
    list: (storage, prefix) => {
      const { keys, objects } = collectionOf(storage)
      return keysWithPrefix(keys, prefix).flatMap((key) => objects.get(key) ?? [])
    },
    listAt(storage, prefix, at) {
      const collection = collectionOf(storage)
      return listAt(collection, prefix, at)
    },
    put(storage, key, object) {
      const collection = collectionOf(storage)
      const before = collection.objects.get(key)
      revision += 1
      const stored = withVersion(object, revision)
      if (!before) collection.keys.splice(placeOf(collection.keys, key), 0, key)
      collection.objects.set(key, stored)
      const type = before ? 'MODIFIED' : 'ADDED'
      record(collection, { type, revision, storage, key, object: stored, ...(before && { before }) })
      return stored
    },
    remove(storage, key) {
      const collection = collectionOf(storage)
      const before = collection.objects.get(key)
      if (!before) return undefined
      revision += 1
      collection.objects.delete(key)
      collection.keys.splice(placeOf(collection.keys, key), 1)
      const object = withVersion(before, revision)
      record(collection, { type: 'DELETED', revision, storage, key, object, before })
      return object
    },
    since(storage, from) {
      const { forgotten, history } = collectionOf(storage)
      if (from < forgotten) throw tooOld(from, forgotten)
      return history.slice(firstAfter(history, from))
    },
    subscribe(storage, listener) {
      const { listeners } = collectionOf(storage)
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    storages: () => [...collections.keys()].filter((storage) => storage !== '*'),
    compact() {
      for (const collection of collections.values()) {
        collection.history = []
        collection.forgotten = revision
      }
    },
  }
}

function tooOld(asked: number, oldest: number) {
  return expired(`too old resource version: ${asked} (${oldest})`)
}

/** Takes the changes after `at` back, newest first. */
function listAt(collection: Collection, prefix: string, at: number): StoredObject[] {
  if (at < collection.forgotten) throw tooOld(at, collection.forgotten)
  const later = collection.history.slice(firstAfter(collection.history, at))
  if (later.length === 0)
    return keysWithPrefix(collection.keys, prefix).flatMap((key) => collection.objects.get(key) ?? [])
  const then = new Map<string, StoredObject | undefined>()
  for (const change of later.reverse()) then.set(change.key, change.before)
  const keys = new Set([...collection.keys, ...then.keys()])
  return [...keys]
    .filter((key) => key.startsWith(prefix))
    .sort()
    .flatMap((key) => (then.has(key) ? then.get(key) : collection.objects.get(key)) ?? [])
}

function withVersion(object: UnversionedObject, revision: number): StoredObject {
  const { name, uid } = object.metadata
  if (name === undefined || uid === undefined)
    throw internalError('An object without name or uid cannot be stored')
  return { ...object, metadata: { ...object.metadata, name, uid, resourceVersion: String(revision) } }
}

/** Where `key` stands, or would have to be put, in the sorted `keys`. */
function placeOf(keys: string[], key: string): number {
  let low = 0
  let high = keys.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((keys[middle] as string) < key) low = middle + 1
    else high = middle
  }
  return low
}

function keysWithPrefix(keys: string[], prefix: string): string[] {
  if (prefix === '') return keys
  const start = placeOf(keys, prefix)
  let end = start
  while (end < keys.length && keys[end]?.startsWith(prefix)) end++
  return keys.slice(start, end)
}

function firstAfter(history: Change[], revision: number): number {
  let low = 0
  let high = history.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((history[middle] as Change).revision <= revision) low = middle + 1
    else high = middle
  }
  return low
}
