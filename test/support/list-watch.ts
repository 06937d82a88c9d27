import type { Clock } from '../../shared/clock.ts'
import type { StoredObject } from '../../shared/kinds/object.ts'
import type { Transport } from '../../shared/kube/client.ts'

type Answer = (url: URL) => Response | undefined

/**
 * The list and watch half of an API, in process, for one collection: what it does wrong, and when, is the test's to say.
 * That an informer is right about the right half is proved on the real API; this one is for what that cannot be made to
 * do at will.
 */
export function listWatchApi(clock: Clock) {
  const objects = new Map<string, StoredObject>()
  const history: { version: number; type: string; object: StoredObject }[] = []
  const streams = new Set<ReadableStreamDefaultController<Uint8Array>>()
  const requests: { atMs: number; url: URL; isWatch: boolean; status: number }[] = []
  let version = 100
  let faults: { when: 'list' | 'watch' | 'any'; answer: Answer }[] = []
  let isDown = false
  /** Versions up to this one have been forgotten. */
  let compacted = 0

  function record(type: string, object: StoredObject): void {
    history.push({ version, type, object })
    const line = new TextEncoder().encode(`${JSON.stringify({ type, object })}\n`)
    for (const stream of streams) stream.enqueue(line)
  }

  function put(name: string, change: Partial<StoredObject['metadata']> = {}): StoredObject {
    version++
    const before = objects.get(name)
    const object: StoredObject = {
      metadata: {
        namespace: 'shop',
        uid: `${name}-${version}`,
        ...before?.metadata,
        name,
        ...change,
        resourceVersion: `${version}`,
      },
    }
    objects.set(name, object)
    record(before ? 'MODIFIED' : 'ADDED', object)
    return object
  }

  function remove(name: string): void {
    const object = objects.get(name)
    if (!object) return
    version++
    objects.delete(name)
    record('DELETED', { metadata: { ...object.metadata, resourceVersion: `${version}` } })
  }

  function list(url: URL): Response {
    const limit = Number(url.searchParams.get('limit') ?? 0) || objects.size
    const from = Number(url.searchParams.get('continue') ?? 0)
    const all = [...objects.values()]
    const items = all.slice(from, from + limit)
    const rest = from + limit < all.length ? { continue: `${from + limit}` } : {}
    return Response.json({ metadata: { resourceVersion: `${version}`, ...rest }, items })
  }

  function watch(url: URL, signal: AbortSignal | null | undefined): Response {
    const from = Number(url.searchParams.get('resourceVersion'))
    if (from < compacted) return statusOf(410, 'Expired')
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        for (const { version: at, type, object } of history)
          if (at > from) controller.enqueue(new TextEncoder().encode(`${JSON.stringify({ type, object })}\n`))
        streams.add(controller)
        signal?.addEventListener('abort', () => {
          if (!streams.delete(controller)) return
          controller.error(signal.reason)
        })
      },
    })
    return new Response(body)
  }

  const transport: Transport = {
    baseUrl: 'http://api',
    async fetch(text, init) {
      const url = new URL(text)
      const isWatch = url.searchParams.has('watch')
      const request = { atMs: clock.monotonicMs(), url, isWatch, status: 0 }
      requests.push(request)
      if (isDown) throw Object.assign(new TypeError('fetch failed'), { code: 'ECONNREFUSED' })
      const due = faults.findIndex(({ when }) => when === 'any' || (when === 'watch') === isWatch)
      const wrong = due < 0 ? undefined : faults.splice(due, 1)[0]?.answer(url)
      const response = wrong ?? (isWatch ? watch(url, init.signal) : list(url))
      request.status = response.status
      return response
    },
  }

  return {
    transport,
    requests,
    put,
    remove,
    /** The next request of the sort is answered so (undefined: as it should be). */
    next(when: 'list' | 'watch' | 'any', ...answers: Answer[]) {
      faults = [...faults, ...answers.map((answer) => ({ when, answer }))]
    },
    /** Every watch ends, as when the server's time limit is over. */
    endWatches() {
      for (const stream of streams) stream.close()
      streams.clear()
    },
    /** Every watch stays open and says nothing more. */
    freezeWatches: () => streams.clear(),
    /** Every watch is told something that is no event of an object. */
    tell(text: string) {
      for (const stream of streams) stream.enqueue(new TextEncoder().encode(`${text}\n`))
    },
    /** Forgets the past: a watch from an earlier version gets a 410. */
    compact: () => {
      compacted = version
    },
    setDown: (down: boolean) => {
      isDown = down
      if (down) for (const stream of streams) stream.error(new TypeError('terminated'))
      if (down) streams.clear()
    },
    openWatches: () => streams.size,
  }
}

export function statusOf(code: number, reason: string, retryAfter?: number): Response {
  const headers = retryAfter === undefined ? {} : { 'retry-after': `${retryAfter}` }
  return Response.json({ kind: 'Status', code, reason, message: reason }, { status: code, headers })
}
