import type { Resource, StoredObject } from '../kinds/object.ts'
import type { KubeClient } from '../kube/client.ts'
import { isExpired, isForbidden, type KubeError } from '../kube/errors.ts'

/** Where a page begins: in the how-manieth namespace of those looked at, and with which continue token. */
export interface PageToken {
  scope: number
  continue: string
}

export const firstPage: PageToken = { scope: 0, continue: '' }

/** One object, and the page that it stood on. */
export interface Placed<T> {
  object: T
  page: PageToken
}

export interface CursorOptions {
  client: KubeClient
  resource: Resource
  /** Undefined means all of them, in one list. */
  namespaces: string[] | undefined
  labelSelector?: string
  from?: PageToken
  /** How many objects a page has. Default 500. */
  pageLength?: number
  signal: AbortSignal
  /** Told when a token had expired and the list was begun again. */
  onRestart?: () => void
  /** Told of a namespace that this process may not read; its objects are left out. */
  onForbidden?: (namespace: string, error: KubeError) => void
}

/** Reads a collection object by object, a page at a time, in the order of namespace and name. */
export interface Cursor<T> {
  /** The next object, left where it is; undefined at the end. */
  peek(): Promise<Placed<T> | undefined>
  take(): Promise<Placed<T> | undefined>
}

const defaultPageLength = 500
/** A list that has to be begun again more often than this is given up: the next resync is not far. */
const restartsMax = 3

/**
 * The key by which the API server orders a list. Not the pair: in etcd `a-b/x` stands before `a/x`, because a hyphen is
 * less than a slash.
 */
export function keyOf(object: { metadata: { namespace?: string; name: string } }): string {
  return `${object.metadata.namespace ?? ''}/${object.metadata.name}`
}

/**
 * Makes a cursor. When a continue token has expired (410) it goes on with the token that the server gives for that
 * case; without one it begins the list again and skips what it has given already. Throws `KubeError`.
 */
export function cursor<T extends StoredObject>(options: CursorOptions): Cursor<T> {
  const { client, resource, namespaces, labelSelector, signal } = options
  const scopes: (string | undefined)[] = namespaces ?? [undefined]
  let next: PageToken | undefined = options.from ?? firstPage
  let page: { token: PageToken; items: T[]; index: number } | undefined
  let lastKey = ''
  let isAgain = false
  let restarts = 0

  async function load(token: PageToken): Promise<void> {
    const namespace = scopes[token.scope]
    const list = await client.list<T>(resource, {
      namespace,
      ...(labelSelector && { labelSelector }),
      limit: options.pageLength ?? defaultPageLength,
      ...(token.continue && { continue: token.continue }),
      signal,
    })
    const items = isAgain ? list.items.filter((item) => keyOf(item) > lastKey) : list.items
    page = { token, items, index: 0 }
    next = list.continue ? { scope: token.scope, continue: list.continue } : nextScope(token)
    if (next?.scope !== token.scope) isAgain = false
  }

  function nextScope(token: PageToken): PageToken | undefined {
    return token.scope + 1 < scopes.length ? { scope: token.scope + 1, continue: '' } : undefined
  }

  async function loadNext(token: PageToken): Promise<void> {
    try {
      await load(token)
    } catch (error) {
      if (isExpired(error)) return restart(token, error as KubeError)
      const namespace = scopes[token.scope]
      if (!isForbidden(error) || namespace === undefined) throw error
      options.onForbidden?.(namespace, error as KubeError)
      next = nextScope(token)
    }
  }

  function restart(token: PageToken, error: KubeError): void {
    if (++restarts > restartsMax) throw error
    options.onRestart?.()
    const fresh = error.status?.metadata?.continue
    isAgain = typeof fresh !== 'string' || fresh === ''
    next = { scope: token.scope, continue: isAgain ? '' : String(fresh) }
  }

  async function peek(): Promise<Placed<T> | undefined> {
    for (;;) {
      const object = page?.items[page.index]
      if (page && object) return { object, page: page.token }
      if (!next) return undefined
      await loadNext(next)
    }
  }

  return {
    peek,
    async take() {
      const placed = await peek()
      if (placed && page) {
        page.index++
        lastKey = keyOf(placed.object)
      }
      return placed
    },
  }
}
