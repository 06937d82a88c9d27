import type { Clock } from '../clock.ts'
import { apiVersionOf, type KubeObject, type StoredObject } from '../kinds/object.ts'
import type { ServerContext } from './context.ts'
import { type ListOptions, listOptions, revisionOf } from './http/options.ts'
import type { Target } from './http/request.ts'
import { metadataOnly, type Shape, wireObject } from './http/wire.ts'
import { tableOf } from './printing/table.ts'
import { matcherOf, prefixOf, refuseFuture } from './read.ts'
import type { ApiResource } from './resources.ts'
import type { Matcher } from './selectors.ts'
import { ApiError } from './status.ts'
import type { Change } from './store.ts'

/** What one watcher may leave unread, in bytes; past it the server ends its watch, so that no reader holds others up. */
const unreadMax = 32 * 1024 * 1024
/** How long a watch lasts when the client names no time: half an hour to an hour. */
const timeoutMinSeconds = 1800
const bookmarkEveryMs = 60_000

type Type = 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR'

/**
 * Answers a watch: a stream with one JSON object per line. It begins with the changes after `resourceVersion`, or, without one,
 * with what is there. It ends at `timeoutSeconds`, when the reader has left more than a limit unread, and when `stop` is
 * aborted. Throws 400, 422 and 504; a version that is too old is an ERROR event.
 */
export function watchObjects(
  ctx: ServerContext,
  target: Target,
  url: URL,
  shape: Shape,
  stop: AbortSignal,
): ReadableStream<Uint8Array> {
  const options = listOptions(url.searchParams, true)
  if (target.name !== undefined) options.fieldSelector = `metadata.name=${target.name}`
  const matches = matcherOf(target, options)
  const from = revisionOf(options.resourceVersion, true)
  const done = new AbortController()
  const end = () => done.abort()
  let leave = () => {}
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        const sink = sinkFor(controller, end)
        leave = follow(ctx, { target, options, shape, matches, from, sink })
        done.signal.addEventListener('abort', () => {
          leave()
          sink.close()
        })
        stop.addEventListener('abort', end, { once: true, signal: done.signal })
        endInTime(ctx.clock, options.timeoutSeconds, done.signal, end)
        if (options.allowWatchBookmarks) sendBookmarks(ctx, target.resource, shape, sink, done.signal)
      },
      cancel: end,
    },
    { highWaterMark: unreadMax, size: (chunk) => chunk?.byteLength ?? 0 },
  )
}

interface Sink {
  send(bytes: Uint8Array): void
  close(): void
}

function sinkFor(controller: ReadableStreamDefaultController<Uint8Array>, end: () => void): Sink {
  let isOpen = true
  return {
    send(bytes) {
      if (!isOpen) return
      controller.enqueue(bytes)
      if ((controller.desiredSize ?? 0) < 0) end()
    },
    close() {
      if (!isOpen) return
      isOpen = false
      try {
        controller.close()
      } catch {
        // The reader has gone already.
      }
    },
  }
}

interface Watch {
  target: Target
  options: ListOptions
  shape: Shape
  matches: Matcher
  from: number
  sink: Sink
}

/** Sends what the watch begins with, then each change. Gives what ends it. */
function follow(ctx: ServerContext, watch: Watch): () => void {
  const { target, options, shape, matches, from, sink } = watch
  const { resource } = target
  const prefix = prefixOf(target)
  const lines = lineWriter(resource, shape, ctx.clock)
  const tell = (change: Change) => {
    if (!change.key.startsWith(prefix)) return
    const type = typeFor(change, matches)
    if (type) sink.send(lines.change(type, change))
  }
  const begins = from === 0 ? options.sendInitialEvents !== false : options.sendInitialEvents === true
  try {
    if (options.sendInitialEvents) refuseFuture(ctx, from)
    if (begins) {
      for (const object of ctx.store.list(resource.storage, prefix))
        if (matches(object)) sink.send(lines.object('ADDED', object))
      if (options.allowWatchBookmarks) sink.send(lines.bookmark(ctx.store.revision(), true))
    } else if (from > 0) for (const change of ctx.store.since(resource.storage, from)) tell(change)
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    sink.send(encoded('ERROR', error.status))
    sink.close()
    return () => {}
  }
  return ctx.store.subscribe(resource.storage, (change) => {
    // Whoever asks for what is yet to come gets only that.
    if (change.revision > from) tell(change)
  })
}

/** What a change is for somebody who sees only what matches: it may come into view, or go out of it. */
function typeFor(change: Change, matches: Matcher): Type | undefined {
  const isSeen = change.type !== 'DELETED' && matches(change.object)
  const wasSeen = change.before !== undefined && matches(change.before)
  if (isSeen) return wasSeen ? 'MODIFIED' : 'ADDED'
  return wasSeen ? 'DELETED' : undefined
}

const encoder = new TextEncoder()

function encoded(type: Type, object: object): Uint8Array {
  return encoder.encode(`${JSON.stringify({ type, object })}\n`)
}

/** The lines of a change, by resource, form and type: made once for all who watch. */
const shared = new WeakMap<Change, Map<string, Uint8Array>>()

function lineWriter(resource: ApiResource, shape: Shape, clock: Clock) {
  let isFirstRow = true
  const form = `${apiVersionOf(resource)} ${shape.form}`
  const shown = (object: StoredObject): object => {
    if (shape.form === 'object') return wireObject(resource, object)
    if (shape.form !== 'table') return metadataOnly(object)
    const table = tableOf(resource, [object], versionOf(object), shape, clock.now(), !isFirstRow)
    isFirstRow = false
    return table
  }
  const bookmarkObject = (metadata: KubeObject['metadata'] & object): object => {
    if (shape.form === 'table') {
      const { resourceVersion } = metadata
      const row = { metadata } as StoredObject
      const table = tableOf(resource, [row], { resourceVersion }, shape, clock.now(), !isFirstRow)
      isFirstRow = false
      return table
    }
    if (shape.form !== 'object') return metadataOnly({ metadata })
    return { kind: resource.kind, apiVersion: apiVersionOf(resource), metadata }
  }
  return {
    object: (type: Type, object: StoredObject) => encoded(type, shown(object)),
    change(type: Type, change: Change): Uint8Array {
      // Who can no longer see an object is given its last seen state, at the version of the change.
      const object =
        type === 'DELETED' && change.before && change.type !== 'DELETED'
          ? withVersionOf(change.before, change.object)
          : change.object
      if (shape.form === 'table') return encoded(type, shown(object))
      const known = shared.get(change) ?? new Map<string, Uint8Array>()
      shared.set(change, known)
      const key = `${form} ${type}`
      const line = known.get(key) ?? encoded(type, shown(object))
      known.set(key, line)
      return line
    },
    bookmark(revision: number, isInitialEnd = false): Uint8Array {
      const annotations = { 'k8s.io/initial-events-end': 'true' }
      const metadata = { resourceVersion: String(revision), ...(isInitialEnd && { annotations }) }
      return encoded('BOOKMARK', bookmarkObject(metadata))
    },
  }
}

const versionOf = ({ metadata }: StoredObject) => ({ resourceVersion: metadata.resourceVersion })

function withVersionOf(object: StoredObject, newer: StoredObject): StoredObject {
  return { ...object, metadata: { ...object.metadata, resourceVersion: newer.metadata.resourceVersion } }
}

function endInTime(clock: Clock, seconds: number | undefined, ended: AbortSignal, end: () => void): void {
  const limit = seconds || timeoutMinSeconds * (1 + clock.random())
  clock.sleep(limit * 1000, ended).then(end, () => {})
}

function sendBookmarks(
  ctx: ServerContext,
  resource: ApiResource,
  shape: Shape,
  sink: Sink,
  ended: AbortSignal,
): void {
  const lines = lineWriter(resource, shape, ctx.clock)
  const run = async () => {
    while (!ended.aborted) {
      await ctx.clock.sleep(bookmarkEveryMs, ended)
      sink.send(lines.bookmark(ctx.store.revision()))
    }
  }
  run().catch(() => {})
}
