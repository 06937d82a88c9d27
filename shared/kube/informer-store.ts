import type { Logger } from '../log.ts'
import type { ObjectMetadata } from './client.ts'

/** What is kept of every object at least. */
export interface Kept {
  uid: string
  resourceVersion: string
}

/**
 * One object's change. `before` is absent for one that was not known, `after` for one that is gone (or no longer matches
 * the selector). An object that was deleted and made anew is told as two changes.
 */
export interface Change<K extends Kept> {
  /** `initial`: found by the first list. `relist`: found by comparing after a gap. */
  how: 'initial' | 'watch' | 'relist'
  namespace: string | undefined
  name: string
  before?: K
  after?: K
  /** The object as the server sent it; absent when a list lacked it. */
  object?: ObjectMetadata
}

interface StoreOptions<K extends Kept> {
  keep(object: ObjectMetadata): K
  onChange(change: Change<K>): void
  log: Logger
}

/** What an informer knows: one record per object, and the telling of what changed. */
export function informerStore<K extends Kept>({ keep, onChange, log }: StoreOptions<K>) {
  const known = new Map<string, K>()
  let hasListed = false

  function tell(key: string, change: Omit<Change<K>, 'namespace' | 'name'>): void {
    const [namespace = '', name = ''] = key.split('/')
    try {
      onChange({ ...change, namespace: namespace || undefined, name })
    } catch (error) {
      // A bug in what handles one change must not make all others unseen.
      log.error({ err: error, namespace, name }, 'change not handled')
    }
  }

  function put(how: Change<K>['how'], key: string, object: ObjectMetadata): void {
    const before = known.get(key)
    const { uid, resourceVersion } = object.metadata
    if (before?.uid === uid && before.resourceVersion === resourceVersion) return
    const after = keep(object)
    if (before && before.uid !== uid) {
      known.delete(key)
      tell(key, { how, before })
    }
    known.set(key, after)
    tell(key, { how, ...(before?.uid === uid && { before }), after, object })
  }

  function drop(how: Change<K>['how'], key: string, object?: ObjectMetadata): void {
    const before = known.get(key)
    // The end of an earlier object of that name is nothing new.
    if (!before || (object && object.metadata.uid !== before.uid)) return
    known.delete(key)
    tell(key, { how, before, ...(object && { object }) })
  }

  return {
    apply(type: 'ADDED' | 'MODIFIED' | 'DELETED', object: ObjectMetadata): void {
      const key = keyOf(object.metadata)
      if (type === 'DELETED') drop('watch', key, object)
      else put('watch', key, object)
    },
    /** A list is told page by page; only its end says what is gone. */
    beginList() {
      const how = hasListed ? 'relist' : 'initial'
      const listed = new Set<string>()
      return {
        seen(object: ObjectMetadata): void {
          const key = keyOf(object.metadata)
          listed.add(key)
          put(how, key, object)
        },
        end(): void {
          for (const key of known.keys()) if (!listed.has(key)) drop(how, key)
          hasListed = true
        },
      }
    },
    get: (target: { namespace?: string | undefined; name: string }) => known.get(keyOf(target)),
    list: () => known.values(),
    size: () => known.size,
  }
}

function keyOf({ namespace = '', name }: { namespace?: string | undefined; name: string }): string {
  return `${namespace}/${name}`
}
