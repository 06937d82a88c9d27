import type { Clock } from '../clock.ts'
import { configMaps, isObject, type KubeObject } from '../kinds/object.ts'
import type { KubeClient } from '../kube/client.ts'
import { isExpired, isKubeError } from '../kube/errors.ts'
import type { Logger } from '../log.ts'

/** `waiting` until the first answer of the API, then what it said last. */
export type ConfigMapState = 'waiting' | 'present' | 'missing'

/** A typed read: a missing or bad value is an answer to handle, never a throw. */
export type Read<T> = { ok: true; value: T } | { ok: false; reason: 'missing' | 'invalid'; error: string }

export interface ConfigMapContent {
  readonly data: Readonly<Record<string, string>>
  readonly binaryData: Readonly<Record<string, Uint8Array>>
}

export interface ConfigMapMetrics {
  update(): void
  error(): void
}

/** Named ConfigMaps, as they are now. Reads cost nothing; during an outage they give what was known last. */
export interface ConfigMapStore {
  get(name: string): ConfigMapContent | undefined
  /** The text under a key; of `binaryData` when it is UTF-8. */
  value(name: string, key: string): string | undefined
  /**
   * The JSON under a key. `parse` narrows it (a zod schema's `parse`, say); what it throws becomes an `invalid` answer.
   */
  json(name: string, key: string): Read<unknown>
  json<T>(name: string, key: string, parse: (value: unknown) => T): Read<T>
  /** Whether the API has answered for each of them (for `name`). */
  isSynced(name?: string): boolean
  states(): Record<string, ConfigMapState>
  /** Calls `listener` with the name of each ConfigMap that has changed. Returns how to stop it. */
  subscribe(listener: (name: string) => void): () => void
}

export interface ConfigMapWatch extends ConfigMapStore {
  /** Lists and watches until `signal` is aborted. Never throws for trouble with the API. */
  run(signal: AbortSignal): Promise<void>
}

export interface ConfigMapOptions {
  /** Absent without a cluster; everything stays `waiting` then. */
  client?: KubeClient | undefined
  clock: Clock
  log: Logger
  namespace: string
  names: readonly string[]
  metrics?: ((name: string) => ConfigMapMetrics) | undefined
}

/** A watch that is denied, or fails in another way, is tried again after so long, in ms. */
const retryMs = 5_000
/** How long one watch connection lasts; the server ends it. */
const watchSeconds = 240
/** A connection on which the server should have said something by now is dead, in ms. */
const idleTimeoutMs = (watchSeconds + 15) * 1000

interface Entry {
  state: ConfigMapState
  content?: ConfigMapContent | undefined
  version?: string | undefined
}

/** A store of the ConfigMaps `names` in `namespace`; it knows nothing before `run`. */
export function configMapStore(options: ConfigMapOptions): ConfigMapWatch {
  const entries = new Map<string, Entry>(options.names.map((name) => [name, { state: 'waiting' }]))
  const listeners = new Set<(name: string) => void>()

  function set(name: string, object: KubeObject | undefined): void {
    const before = entries.get(name)
    const version = object?.metadata?.resourceVersion
    const state = object ? 'present' : 'missing'
    if (before?.state === state && before.version === version) return
    entries.set(name, { state, version, content: object && contentOf(object) })
    options.metrics?.(name).update()
    for (const listener of listeners) listener(name)
  }

  return {
    ...readsOf(entries),
    subscribe(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    async run(signal) {
      const { client, names } = options
      if (!client) return
      await Promise.all(
        names.map((name) => follow(name, { ...options, client }, (object) => set(name, object), signal)),
      )
    },
  }
}

function readsOf(entries: Map<string, Entry>) {
  const get = (name: string) => entries.get(name)?.content
  function value(name: string, key: string): string | undefined {
    const content = get(name)
    return content && (own(content.data, key) ?? textOf(own(content.binaryData, key)))
  }
  return {
    get,
    value,
    json<T>(name: string, key: string, parse = (json: unknown) => json as T): Read<T> {
      const text = value(name, key)
      if (text === undefined)
        return { ok: false, reason: 'missing', error: `ConfigMap ${name} has no value ${key}` }
      try {
        return { ok: true, value: parse(JSON.parse(text)) }
      } catch (error) {
        const why = error instanceof SyntaxError ? 'it is not JSON' : messageOf(error)
        return { ok: false, reason: 'invalid', error: `ConfigMap ${name}, value ${key}: ${why}` }
      }
    },
    isSynced: (name?: string) =>
      [...entries].every(([each, { state }]) => (name !== undefined && name !== each) || state !== 'waiting'),
    states: () => Object.fromEntries([...entries].map(([name, { state }]) => [name, state])),
  }
}

/** Keeps one ConfigMap followed. */
async function follow(
  name: string,
  options: ConfigMapOptions & { client: KubeClient },
  set: (object: KubeObject | undefined) => void,
  signal: AbortSignal,
): Promise<void> {
  const { client, clock, namespace } = options
  // With a field selector a Role can name the ConfigMap (`resourceNames`).
  const scope = { namespace, fieldSelector: `metadata.name=${name}` }
  const trouble = troubleOf(name, options)
  let version: string | undefined

  async function list(): Promise<string> {
    const { items, resourceVersion } = await client.list(configMaps, { ...scope, retries: 0, signal })
    set(items.find((item) => item.metadata.name === name))
    return resourceVersion
  }

  async function watch(from: string): Promise<void> {
    const started = { ...scope, resourceVersion: from, timeoutSeconds: watchSeconds, idleTimeoutMs, signal }
    for await (const { type, object } of client.watch(configMaps, started)) {
      trouble.over()
      version = object.metadata?.resourceVersion
      if (type !== 'BOOKMARK' && object.metadata?.name === name) set(type === 'DELETED' ? undefined : object)
    }
    trouble.over()
  }

  while (!signal.aborted) {
    try {
      version ??= await list()
      const startedMs = clock.monotonicMs()
      await watch(version)
      // A server that ends each watch at once must not make us spin.
      if (clock.monotonicMs() - startedMs < 1_000) await clock.sleep(1_000, signal)
    } catch (error) {
      if (signal.aborted) return
      version = undefined
      // Too old a version is no trouble: list again and go on.
      const expired = isExpired(error)
      if (!expired) trouble.met(error)
      await clock.sleep(expired ? 1_000 * clock.random() : retryMs, signal).catch(() => {})
    }
  }
}

/** Counts each failure, and logs once per outage, which is over when the watch works (a list may be allowed alone). */
function troubleOf(name: string, { log, metrics }: ConfigMapOptions) {
  let now = false
  return {
    met(error: unknown): void {
      metrics?.(name).error()
      if (!now)
        log.warn({ configMap: name, needs: permissionsFor(name), err: error }, 'cannot watch the ConfigMap')
      now = true
    },
    over(): void {
      if (now) log.info({ configMap: name }, 'watching the ConfigMap again')
      now = false
    },
  }
}

function permissionsFor(name: string): string {
  return `list and watch on configmaps with resourceNames [${name}]`
}

function contentOf(object: KubeObject): ConfigMapContent {
  const data: Record<string, string> = {}
  const binaryData: Record<string, Uint8Array> = {}
  for (const [key, value] of entriesOf(object.data)) if (typeof value === 'string') data[key] = value
  for (const [key, value] of entriesOf(object.binaryData))
    if (typeof value === 'string') binaryData[key] = Buffer.from(value, 'base64')
  return { data, binaryData }
}

const entriesOf = (value: unknown) => (isObject(value) ? Object.entries(value) : [])

function own<T>(record: Readonly<Record<string, T>>, key: string): T | undefined {
  return Object.hasOwn(record, key) ? record[key] : undefined
}

function textOf(bytes: Uint8Array | undefined): string | undefined {
  if (bytes === undefined) return undefined
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return undefined
  }
}

function messageOf(error: unknown): string {
  return isKubeError(error) || error instanceof Error ? error.message : String(error)
}
