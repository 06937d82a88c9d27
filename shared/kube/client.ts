import { type Clock, withTimeout } from '../clock.ts'
import type { KubeObject, ObjectMeta, Resource, StoredObject } from '../kinds/object.ts'
import { pathOf } from '../kinds/object.ts'
import { answerError, connectionError } from './answers.ts'
import { isKubeError, isUnreadableApply, KubeError } from './errors.ts'
import { readWatch, type WatchEvent } from './watch-stream.ts'

/** `fetch` as far as the client uses it; the embedded API serves one in process, `connect` one over the network. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>

/** The wire under a client: where the API is and how to reach it, already authenticated. */
export interface Transport {
  /** Scheme, host and port, without a trailing slash. */
  baseUrl: string
  fetch: Fetch
}

/** Names one object of a resource. */
export interface ObjectName {
  namespace?: string | undefined
  name: string
}

export interface CallOptions {
  signal?: AbortSignal
  /** For one try, in ms. */
  timeoutMs?: number
  /** How often a transient failure may be tried again; 0 for callers that must see the first answer (elections). */
  retries?: number
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

export interface RequestOptions extends CallOptions {
  query?: Record<string, string | number | boolean | undefined>
  body?: unknown
  contentType?: string
  accept?: string
  /** Whether repeating the request after a lost answer is harmless. Default: for GET. */
  idempotent?: boolean
}

export interface ClientOptions {
  transport: Transport
  clock: Clock
  /** For example `mutantops/0.1.0 (mutation)`. */
  userAgent: string
  /** For one try, in ms. Default 10 s. */
  timeoutMs?: number
  /** Default 3. */
  retries?: number
  /** Told of every answer, for metrics: `code` 0 when none came. */
  onRequest?: (request: { method: string; code: number }) => void
}

const defaultTimeoutMs = 10_000
const defaultRetries = 3
const firstBackoffMs = 100
const backoffMaxMs = 5_000
/** A server that asks to wait longer than this gets no retry from here; the caller decides. */
const retryAfterMaxMs = 5_000

const json = 'application/json'
const metadataOf = (kind: string) => `${json};as=${kind};g=meta.k8s.io;v=v1`

/** Makes a {@link KubeClient} over a transport. */
export function kubeClient(options: ClientOptions): KubeClient {
  const { transport, clock, userAgent } = options

  async function once(method: string, path: string, request: RequestOptions): Promise<Response> {
    const url = transport.baseUrl + path + queryOf(request.query)
    const headers: Record<string, string> = { accept: request.accept ?? json, 'user-agent': userAgent }
    if (request.body !== undefined) headers['content-type'] = request.contentType ?? json
    const body = request.body === undefined ? null : JSON.stringify(request.body)
    const what = `${method} ${path}`
    try {
      return await withTimeout(
        clock,
        request.timeoutMs ?? options.timeoutMs ?? defaultTimeoutMs,
        what,
        async (signal) => {
          const response = await transport.fetch(url, { method, headers, body, signal, redirect: 'error' })
          // Read here, so that the timeout covers the body too.
          const text = await response.text()
          options.onRequest?.({ method, code: response.status })
          return new Response(nullBody.has(response.status) ? null : text, {
            status: response.status,
            headers: response.headers,
          })
        },
        request.signal,
      )
    } catch (error) {
      request.signal?.throwIfAborted()
      options.onRequest?.({ method, code: 0 })
      throw connectionError(what, error)
    }
  }

  async function send(
    method: string,
    path: string,
    request: RequestOptions = {},
  ): Promise<{ status: number; body: unknown }> {
    const retries = request.retries ?? options.retries ?? defaultRetries
    const idempotent = request.idempotent ?? method === 'GET'
    for (let attempt = 0; ; attempt++) {
      try {
        const response = await once(method, path, request)
        const body = await parsed(response, `${method} ${path}`)
        if (response.ok) return { status: response.status, body }
        throw answerError(`${method} ${path}`, response, body)
      } catch (error) {
        const waitMs = attempt < retries ? retryWaitMs(error, attempt, idempotent, clock) : undefined
        if (waitMs === undefined) throw error
        await clock.sleep(waitMs, request.signal)
      }
    }
  }

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

const nullBody = new Set([101, 103, 204, 205, 304])

function targetOf(metadata: ObjectMeta | undefined, subresource: string | undefined) {
  if (!metadata?.name) throw new TypeError('Cannot address an object without metadata.name')
  return { namespace: metadata.namespace, name: metadata.name, ...(subresource && { subresource }) }
}

function queryOf(query: RequestOptions['query'] = {}): string {
  const parameters = new URLSearchParams()
  for (const [key, value] of Object.entries(query))
    if (value !== undefined) parameters.set(key, String(value))
  return parameters.size === 0 ? '' : `?${parameters}`
}

async function parsed(response: Response, what: string): Promise<unknown> {
  const text = await response.text()
  if (text === '') return undefined
  try {
    return JSON.parse(text)
  } catch (cause) {
    if (!response.ok) return undefined
    throw new KubeError(`${what}: the answer is not JSON`, { code: 0, cause })
  }
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

/**
 * How long to wait before the next try in ms, or undefined when there shall be none. 429 and a 503 were refused before
 * anything happened, so any request may be repeated; after a lost answer or another 5xx only an idempotent one.
 */
function retryWaitMs(error: unknown, attempt: number, idempotent: boolean, clock: Clock): number | undefined {
  if (!isKubeError(error) || isUnreadableApply(error)) return undefined
  const refused = error.code === 429 || error.code === 503
  const lost = error.code === 0 || error.code === 500 || error.code === 504
  if (!refused && !(lost && idempotent)) return undefined
  if (error.retryAfterSeconds !== undefined) {
    const askedMs = error.retryAfterSeconds * 1000
    return askedMs <= retryAfterMaxMs ? askedMs * (1 + clock.random() / 10) : undefined
  }
  return Math.min(firstBackoffMs * 2 ** attempt, backoffMaxMs) * (1 + clock.random())
}
