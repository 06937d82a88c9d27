import { type Clock, TimeoutError } from '../clock.ts'
import { type HttpPool, httpPool, type Tls } from '../http-pool.ts'
import type { Transport } from './request.ts'

/** How requests are authenticated at one moment. */
export interface Credentials {
  headers: Record<string, string>
  tls: Tls
}

export interface WireOptions {
  baseUrl: string
  clock: Clock
  proxyUrl?: string | undefined
  /**
   * Reads the credentials. `fresh` when the server has just refused (401) the ones it gave before: then nothing that was
   * kept may be given again unseen.
   */
  read(fresh: boolean): Promise<Credentials>
}

/** How long credentials are used before they are read again, in ms: a kubelet replaces a token minutes before its end. */
const credentialsAgeMaxMs = 20_000
/** A server that refuses everything must not make us run an exec plugin for each request, in ms. */
const freshReadsApartMs = 2_000

/** A pool that is younger than this is not replaced, however many requests in it run out of time together, in ms. */
const poolAgeMinMs = 1_000

interface Held {
  credentials: Credentials
  pool: HttpPool
  madeAtMs: number
  tlsKey: string
  readAtMs: number
}

/**
 * A {@link Transport} over the network: one pool of connections is kept, and replaced only when the CA or the client
 * certificate have changed, or a request or watch ran out of time: then the network may have lost all of its connections
 * without a word, and what comes next must not wait on another dead one. A 401 makes it read the credentials afresh and
 * repeat the request once, if they have changed. The proxy variables of the environment are not followed, only
 * `proxyUrl`.
 */
export function wire(options: WireOptions): Transport & { close(): Promise<void> } {
  const { baseUrl, clock, proxyUrl } = options
  let held: Held | undefined
  let reading: { fresh: boolean; done: Promise<Held> } | undefined

  function current(fresh: boolean): Promise<Held> {
    const ageMs = held ? clock.monotonicMs() - held.readAtMs : Number.POSITIVE_INFINITY
    if (held && ageMs < (fresh ? freshReadsApartMs : credentialsAgeMaxMs)) return Promise.resolve(held)
    // One reading serves all that wait for it; but one that may have used what was kept does not serve a refused request.
    if (reading && (reading.fresh || !fresh)) return reading.done
    const mine = { fresh, done: readNow(fresh) }
    reading = mine
    const forget = () => {
      if (reading === mine) reading = undefined
    }
    mine.done.then(forget, forget)
    return mine.done
  }

  async function readNow(fresh: boolean): Promise<Held> {
    const credentials = await options.read(fresh)
    const tlsKey = JSON.stringify(credentials.tls)
    const kept = held?.tlsKey === tlsKey ? held : undefined
    // What is in flight on it (a watch, say) ends in peace.
    if (!kept) held?.pool.retire()
    const pool = kept?.pool ?? (await poolFor(credentials.tls, proxyUrl))
    const readAtMs = clock.monotonicMs()
    held = { credentials, pool, madeAtMs: kept?.madeAtMs ?? readAtMs, tlsKey, readAtMs }
    return held
  }

  function suspect(used: Held): void {
    if (held?.pool !== used.pool || clock.monotonicMs() - used.madeAtMs < poolAgeMinMs) return
    used.pool.retire()
    held = undefined
  }

  function send(url: string, init: RequestInit, used: Held): Promise<Response> {
    const { credentials, pool } = used
    const { signal } = init
    const onAbort = () => {
      if (signal?.reason instanceof TimeoutError) suspect(used)
    }
    signal?.addEventListener('abort', onAbort, { once: true })
    const headers = { ...Object.fromEntries(new Headers(init.headers)), ...credentials.headers }
    return pool.fetch(url, { ...init, headers })
  }

  return {
    baseUrl,
    async fetch(url, init) {
      const before = await current(false)
      const response = await send(url, init, before)
      if (response.status !== 401) return response
      const after = await current(true).catch(() => before)
      if (isSame(before, after)) return response
      await response.body?.cancel()
      return send(url, init, after)
    },
    async close() {
      held?.pool.destroy()
    },
  }
}

function isSame(a: Held, b: Held): boolean {
  return (
    a.tlsKey === b.tlsKey && JSON.stringify(a.credentials.headers) === JSON.stringify(b.credentials.headers)
  )
}

/** Through a proxy by undici, which is loaded only then. */
async function poolFor(tls: Tls, proxyUrl: string | undefined): Promise<HttpPool> {
  if (proxyUrl === undefined) return httpPool(tls)
  const { proxyPool } = await import('./proxy-pool.ts')
  return proxyPool(proxyUrl, tls)
}
