import type { Clock } from '../clock.ts'
import type { Resource } from '../kinds/object.ts'
import type { Logger } from '../log.ts'
import type { KubeClient, List, ObjectMetadata } from './client.ts'
import { isExpired, isForbidden, isKubeError, KubeError } from './errors.ts'
import { type Change, informerStore, type Kept } from './informer-store.ts'
import { retryDelay } from './retry-delay.ts'

export type { Change, Kept }

export interface InformerOptions<K extends Kept> {
  client: KubeClient
  resource: Resource
  /** One namespace; without it all. */
  namespace?: string | undefined
  labelSelector?: string
  fieldSelector?: string
  /** Reads whole objects. Default: only their metadata, whatever their size. */
  wholeObjects?: boolean
  /** What to remember of an object: as little as its watcher needs, for there may be very many. */
  keep(object: ObjectMetadata): K
  clock: Clock
  log: Logger
  onChange(change: Change<K>): void
  /** Told of each thing that a metric counts. */
  onCount?: (what: InformerCount) => void
  limits?: Partial<InformerLimits> | undefined
}

/** `relist`: had to list again after a gap. `restart`: watches again after an outage. `denied`: a 403 (each one). */
export type InformerCount = 'relist' | 'restart' | 'denied' | 'error'

export interface InformerLimits {
  /** Objects per page of a list. */
  pageSize: number
  /** A watch that brought not a byte for so long is dead; the server sends a bookmark each minute, in ms. */
  idleTimeoutMs: number
  /** The server ends a watch after so long; up to half as much is added, so that not all end at once, in s. */
  watchSeconds: number
  backoffFirstMs: number
  backoffMaxMs: number
  /** How often a watch that is not allowed is tried again, in ms. */
  deniedRetryMs: number
}

export const informerLimits: InformerLimits = {
  pageSize: 500,
  idleTimeoutMs: 90_000,
  watchSeconds: 240,
  backoffFirstMs: 500,
  backoffMaxMs: 10_000,
  deniedRetryMs: 5_000,
}

/** A watch that ended sooner counts as failed, so that a server that hangs up at once is not asked in a loop, in ms. */
const watchMinMs = 1_000
/** After so many lists cut short by a continue token that ran out, one is asked for without pages. */
const expiredPagesMax = 2

export interface InformerState {
  namespace: string | undefined
  /** `watching` only while a watch stands that the server has accepted. */
  phase: 'listing' | 'watching' | 'retrying' | 'denied' | 'stopped'
  /** Whether a whole list has ever been read. */
  isSynced: boolean
  objects: number
}

export interface Informer<K extends Kept> {
  /** Lists and watches until `signal` is aborted, whatever happens; then it ends without an error. */
  run(signal: AbortSignal): Promise<void>
  /** Resolves when the first list has been read to its end. */
  synced: Promise<void>
  list(): IterableIterator<K>
  get(target: { namespace?: string | undefined; name: string }): K | undefined
  state(): InformerState
}

/**
 * Follows all objects of a resource: lists them in pages, watches from there on with bookmarks, resumes a watch that
 * ended, and lists and compares after a gap (410), so that nothing deleted meanwhile is forgotten. Each change is told
 * once with what was kept before and after.
 *
 * Failures are waited out with a growing, jittered delay and logged once per outage; a 429 is not asked again before it
 * said; a 403 is tried again every 5 s. There is no error that ends it.
 */
export function informer<K extends Kept>(options: InformerOptions<K>): Informer<K> {
  const { client, resource, namespace, labelSelector, fieldSelector, clock, log, onCount } = options
  const limits = { ...informerLimits, ...options.limits }
  const store = informerStore(options)
  const delay = retryDelay(clock, limits)
  const selectors = { ...(labelSelector && { labelSelector }), ...(fieldSelector && { fieldSelector }) }
  const scope = { resource: resource.plural, ...(namespace && { namespace }) }
  let phase: InformerState['phase'] = 'listing'
  let isSynced = false
  let outage: { sinceMs: number; tries: number } | undefined
  let markSynced = () => {}
  const synced = new Promise<void>((resolve) => {
    markSynced = resolve
  })

  /** Waits as long as the error asks, having told of it: once per outage, not per try. */
  async function waitOut(error: unknown, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    const isDenied = isForbidden(error)
    phase = isDenied ? 'denied' : 'retrying'
    onCount?.(isDenied ? 'denied' : 'error')
    if (!outage)
      log.warn({ ...scope, error: messageOf(error) }, isDenied ? 'watch denied' : 'watch interrupted')
    outage ??= { sinceMs: clock.monotonicMs(), tries: 0 }
    outage.tries++
    await clock.sleep(delay.next(error), signal)
  }

  function recovered(): void {
    phase = 'watching'
    if (!outage) return
    const { tries, sinceMs } = outage
    outage = undefined
    onCount?.('restart')
    log.info({ ...scope, tries, afterMs: Math.round(clock.monotonicMs() - sinceMs) }, 'watch restored')
  }

  /** Reads one page, however often it must be tried; throws only when the continue token has run out. */
  async function page(
    token: string | undefined,
    isPaged: boolean,
    signal: AbortSignal,
  ): Promise<List<ObjectMetadata>> {
    const list = options.wholeObjects ? client.list<ObjectMetadata> : client.listMetadata
    for (;;) {
      try {
        return await list(resource, {
          namespace,
          ...selectors,
          ...(isPaged && { limit: limits.pageSize }),
          ...(token && { continue: token }),
          signal,
          retries: 0,
        })
      } catch (error) {
        if (isExpired(error) && token !== undefined) throw error
        await waitOut(error, signal)
      }
    }
  }

  /** Lists all and compares with what is known; gives the version to watch from. */
  async function listAll(signal: AbortSignal): Promise<string> {
    for (let expired = 0; ; ) {
      const listing = store.beginList()
      try {
        let token: string | undefined
        for (;;) {
          const {
            items,
            resourceVersion,
            continue: next,
          } = await page(token, expired < expiredPagesMax, signal)
          for (const item of items) listing.seen(item)
          if (next === undefined) {
            listing.end()
            return resourceVersion
          }
          token = next
        }
      } catch (error) {
        // A page is lost: what stood on it is neither gone nor known. Begin anew, and believe only a whole list.
        if (!isExpired(error)) throw error
        expired++
        onCount?.('relist')
        await clock.sleep(delay.next(error), signal)
      }
    }
  }

  /** One watch, to its end; `at` follows what it brings, so that the next one can go on from there. */
  async function watchOnce(at: { version: string }, signal: AbortSignal): Promise<void> {
    const beganMs = clock.monotonicMs()
    const events = client.watch(resource, {
      metadataOnly: !options.wholeObjects,
      namespace,
      ...selectors,
      resourceVersion: at.version,
      timeoutSeconds: Math.round(limits.watchSeconds * (1 + clock.random() / 2)),
      idleTimeoutMs: limits.idleTimeoutMs,
      signal,
      onOpen: recovered,
    })
    for await (const event of events) {
      if (event.type !== 'BOOKMARK') store.apply(event.type, event.object as ObjectMetadata)
      at.version = event.object.metadata?.resourceVersion ?? at.version
      delay.reset()
    }
    if (clock.monotonicMs() - beganMs < watchMinMs)
      throw new KubeError(`The watch of ${resource.plural} ended at once`, { code: 0 })
    delay.reset()
  }

  /** Watches on and on from `version`; ends when that is too old. */
  async function watchFrom(version: string, signal: AbortSignal): Promise<void> {
    const at = { version }
    for (;;) {
      try {
        await watchOnce(at, signal)
      } catch (error) {
        signal.throwIfAborted()
        if (!isExpired(error)) {
          await waitOut(error, signal)
          continue
        }
        await clock.sleep(delay.next(error), signal)
        return
      }
    }
  }

  async function follow(signal: AbortSignal): Promise<never> {
    for (;;) {
      const version = await listAll(signal)
      isSynced = true
      markSynced()
      await watchFrom(version, signal)
      phase = 'listing'
      onCount?.('relist')
    }
  }

  return {
    async run(signal) {
      try {
        await follow(signal)
      } catch (error) {
        if (!signal.aborted) throw error
      } finally {
        phase = 'stopped'
      }
    },
    synced,
    list: () => store.list(),
    get: (target) => store.get(target),
    state: () => ({ namespace, phase, isSynced, objects: store.size() }),
  }
}

function messageOf(error: unknown): string {
  return isKubeError(error) ? error.message : String(error)
}
