import type { KubeObject, ObjectMeta, Resource, StoredObject } from '../kinds/object.ts'
import { pathOf } from '../kinds/object.ts'
import { isKubeError } from './errors.ts'
import { type CallOptions, type ClientOptions, queryOf, type RequestOptions, sender } from './request.ts'
import { readWatch, type WatchEvent } from './watch-stream.ts'

export type { CallOptions, ClientOptions, Fetch, RequestOptions, Transport } from './request.ts'

/** Names one object of a resource. */
export interface ObjectName {
  namespace?: string | undefined
  name: string
}

export interface ListOptions extends CallOptions {
  namespace?: string | undefined
  labelSelector?: string
  fieldSelector?: string
  limit?: number
  continue?: string
  resourceVersion?: string
}

export interface List<T> {
  items: T[]
  resourceVersion: string
  /** Set while there are more pages. */
  continue?: string
  remainingItemCount?: number
}

export interface WatchOptions {
  namespace?: string | undefined
  labelSelector?: string
  fieldSelector?: string
  resourceVersion?: string
  timeoutSeconds?: number
  /** The stream counts as dead when not a byte came for so long, in ms. */
  idleTimeoutMs?: number
  signal?: AbortSignal
  /** Told when the server has accepted the watch. */
  onOpen?: () => void
}

export interface ApplyOptions extends CallOptions {
  fieldManager: string
  force?: boolean
  subresource?: string
}

/** An object's metadata alone (`PartialObjectMetadata`). */
export interface ObjectMetadata extends KubeObject {
  metadata: StoredObject['metadata']
}

/**
 * A thin Kubernetes client: each method is one request (and its retries). Methods throw {@link KubeError}; `get`
 * and `getMetadata` answer undefined for 404. Nothing is cached, and reads are quorum reads.
 */
export interface KubeClient {
  get<T extends KubeObject = StoredObject>(
    resource: Resource,
    target: ObjectName,
    options?: CallOptions,
  ): Promise<T | undefined>
  getMetadata(
    resource: Resource,
    target: ObjectName,
    options?: CallOptions,
  ): Promise<ObjectMetadata | undefined>
  list<T extends KubeObject = StoredObject>(resource: Resource, options?: ListOptions): Promise<List<T>>
  listMetadata(resource: Resource, options?: ListOptions): Promise<List<ObjectMetadata>>
  create<T extends KubeObject = StoredObject>(
    resource: Resource,
    object: KubeObject,
    options?: CallOptions & { fieldManager?: string },
  ): Promise<T>
  /** Server-side apply. `created` tells a 201 from a 200. */
  apply<T extends KubeObject = StoredObject>(
    resource: Resource,
    object: KubeObject,
    options: ApplyOptions,
  ): Promise<{ object: T; created: boolean }>
  /** PUT; the resourceVersion in the object guards it. */
  replace<T extends KubeObject = StoredObject>(
    resource: Resource,
    object: KubeObject,
    options?: CallOptions & { subresource?: string; fieldManager?: string },
  ): Promise<T>
  /** JSON patch (RFC 6902). */
  patchJson<T extends KubeObject = StoredObject>(
    resource: Resource,
    target: ObjectName,
    operations: JsonPatchOperation[],
    options?: CallOptions & { fieldManager?: string },
  ): Promise<T>
  /** Answers false when there was nothing to delete. */
  delete(resource: Resource, target: ObjectName, options?: DeleteOptions): Promise<boolean>
  /**
   * The events of one watch connection; it ends when the server ends it. Throws {@link KubeError} for a refused
   * watch, an ERROR event (410 when the version is too old), a broken or silent connection.
   */
  watch(
    resource: Resource,
    options: WatchOptions & { metadataOnly?: boolean },
  ): AsyncGenerator<WatchEvent, void>
  /** Any other request of the API, `path` from the root, as JSON. */
  request(method: string, path: string, options?: RequestOptions): Promise<{ status: number; body: unknown }>
}

export interface JsonPatchOperation {
  op: 'add' | 'remove' | 'replace' | 'test' | 'move' | 'copy'
  path: string
  from?: string
  value?: unknown
}

export interface DeleteOptions extends CallOptions {
  uid?: string
  resourceVersion?: string
  propagation?: 'Background' | 'Foreground' | 'Orphan'
}

const json = 'application/json'
const metadataOf = (kind: string) => `${json};as=${kind};g=meta.k8s.io;v=v1`

/** Makes a {@link KubeClient} over a transport. */
export function kubeClient(options: ClientOptions): KubeClient {
  const { transport, clock, userAgent } = options
  const send = sender(options)

  async function getAs<T>(
    resource: Resource,
    target: ObjectName,
    call: CallOptions = {},
    accept = json,
  ): Promise<T | undefined> {
    try {
      return (await send('GET', pathOf(resource, target), { ...call, accept })).body as T
    } catch (error) {
      if (isKubeError(error) && error.code === 404) return undefined
      throw error
    }
  }

  async function listAs<T>(resource: Resource, list: ListOptions = {}, accept = json): Promise<List<T>> {
    const { namespace, labelSelector, fieldSelector, limit, continue: token, resourceVersion, ...call } = list
    const query = { labelSelector, fieldSelector, limit, continue: token, resourceVersion }
    const { body } = await send('GET', pathOf(resource, { namespace }), { ...call, query, accept })
    return listOf<T>(body)
  }

  return {
    get: (resource, target, call) => getAs(resource, target, call),
    getMetadata: (resource, target, call) =>
      getAs(resource, target, call, metadataOf('PartialObjectMetadata')),
    list: (resource, list) => listAs(resource, list),
    listMetadata: (resource, list) => listAs(resource, list, metadataOf('PartialObjectMetadataList')),
    async create<T>(
      resource: Resource,
      object: KubeObject,
      { fieldManager, ...call }: CallOptions & { fieldManager?: string } = {},
    ) {
      const path = pathOf(resource, { namespace: object.metadata?.namespace })
      return (await send('POST', path, { ...call, body: object, query: { fieldManager } })).body as T
    },
    async apply<T>(
      resource: Resource,
      object: KubeObject,
      { fieldManager, force, subresource, ...call }: ApplyOptions,
    ) {
      const answer = await send('PATCH', pathOf(resource, targetOf(object.metadata, subresource)), {
        ...call,
        body: object,
        contentType: 'application/apply-patch+yaml',
        query: { fieldManager, force: force || undefined },
        idempotent: true,
      })
      return { object: answer.body as T, created: answer.status === 201 }
    },
    async replace<T>(
      resource: Resource,
      object: KubeObject,
      {
        subresource,
        fieldManager,
        ...call
      }: CallOptions & { subresource?: string; fieldManager?: string } = {},
    ) {
      const path = pathOf(resource, targetOf(object.metadata, subresource))
      return (await send('PUT', path, { ...call, body: object, query: { fieldManager } })).body as T
    },
    async patchJson<T>(
      resource: Resource,
      target: ObjectName,
      operations: JsonPatchOperation[],
      { fieldManager, ...call }: CallOptions & { fieldManager?: string } = {},
    ) {
      const request = {
        ...call,
        body: operations,
        contentType: 'application/json-patch+json',
        query: { fieldManager },
      }
      return (await send('PATCH', pathOf(resource, target), request)).body as T
    },
    async delete(resource, target, { uid, resourceVersion, propagation, ...call } = {}) {
      const body = {
        kind: 'DeleteOptions',
        apiVersion: 'v1',
        ...(propagation && { propagationPolicy: propagation }),
        ...((uid || resourceVersion) && {
          preconditions: { ...(uid && { uid }), ...(resourceVersion && { resourceVersion }) },
        }),
      }
      try {
        await send('DELETE', pathOf(resource, target), { ...call, body, idempotent: uid !== undefined })
        return true
      } catch (error) {
        if (isKubeError(error) && error.code === 404) return false
        throw error
      }
    },
    watch(resource, { metadataOnly, namespace, ...watch }) {
      const { labelSelector, fieldSelector, resourceVersion, timeoutSeconds } = watch
      const query = {
        watch: 1,
        allowWatchBookmarks: true,
        labelSelector,
        fieldSelector,
        resourceVersion,
        timeoutSeconds,
      }
      const path = pathOf(resource, { namespace })
      const accept = metadataOnly ? metadataOf('PartialObjectMetadata') : json
      return readWatch({
        what: `WATCH ${path}`,
        clock,
        idleTimeoutMs: watch.idleTimeoutMs,
        signal: watch.signal,
        onOpen: watch.onOpen,
        open: (signal) =>
          transport.fetch(transport.baseUrl + path + queryOf(query), {
            method: 'GET',
            headers: { accept, 'user-agent': userAgent },
            signal,
            redirect: 'error',
          }),
      })
    },
    request: send,
  }
}

function targetOf(metadata: ObjectMeta | undefined, subresource: string | undefined) {
  if (!metadata?.name) throw new TypeError('Cannot address an object without metadata.name')
  return { namespace: metadata.namespace, name: metadata.name, ...(subresource && { subresource }) }
}

function listOf<T>(body: unknown): List<T> {
  const { items, metadata } = body as { items: T[] | null; metadata: Record<string, unknown> }
  return {
    items: items ?? [],
    resourceVersion: String(metadata.resourceVersion ?? ''),
    ...(metadata.continue ? { continue: String(metadata.continue) } : {}),
    ...(typeof metadata.remainingItemCount === 'number' && {
      remainingItemCount: metadata.remainingItemCount,
    }),
  }
}
