import { Agent, type Dispatcher, fetch, ProxyAgent, Socks5ProxyAgent } from 'undici'
import { type Clock, TimeoutError } from '../clock.ts'
import { KubeError } from './errors.ts'
import type { Transport } from './request.ts'

/** What a connection shows and checks. */
export interface Tls {
  ca?: string | Buffer
  cert?: string | Buffer
  key?: string | Buffer
  servername?: string
  rejectUnauthorized?: boolean
}

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

const connectTimeoutMs = 10_000
/** Above the 4 s of undici, so that a warm function does not shake hands anew for each event, in ms. */
const keepAliveMs = 30_000

/** A pool that is younger than this is not replaced, however many requests in it run out of time together, in ms. */
const poolAgeMinMs = 1_000

interface Held {
  credentials: Credentials
  dispatcher: Dispatcher
  madeAtMs: number
  tlsKey: string
  readAtMs: number
}

/**
 * A {@link Transport} over the network: one dispatcher (so one pool of connections) is kept, and replaced only when the
 * CA or the client certificate have changed, or a request or watch ran out of time: then the network may have lost all
 * of its connections without a word, and what comes next must not wait on another dead one. A 401 makes it read the
 * credentials afresh and repeat the request once, if they have changed. The proxy variables of the environment are not followed, only `proxyUrl`.
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
    if (!kept) retire(held)
    const dispatcher = kept?.dispatcher ?? dispatcherFor(credentials.tls, proxyUrl)
    const readAtMs = clock.monotonicMs()
    held = { credentials, dispatcher, madeAtMs: kept?.madeAtMs ?? readAtMs, tlsKey, readAtMs }
    return held
  }

  /** What is in flight on it (a watch, say) ends in peace. */
  function retire(old: Held | undefined): void {
    old?.dispatcher.close().catch(() => {})
  }

  function suspect(used: Held): void {
    const nowMs = clock.monotonicMs()
    if (held?.dispatcher !== used.dispatcher || nowMs - held.madeAtMs < poolAgeMinMs) return
    retire(held)
    held = { ...held, dispatcher: dispatcherFor(held.credentials.tls, proxyUrl), madeAtMs: nowMs }
  }

  function send(url: string, init: RequestInit, used: Held): Promise<Response> {
    const { credentials, dispatcher } = used
    const { signal } = init
    const onAbort = () => {
      if (signal?.reason instanceof TimeoutError) suspect(used)
    }
    signal?.addEventListener('abort', onAbort, { once: true })
    const headers = { ...Object.fromEntries(new Headers(init.headers)), ...credentials.headers }
    const request = { ...init, headers, dispatcher } as Parameters<typeof fetch>[1]
    return fetch(url, request) as unknown as Promise<Response>
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
      await held?.dispatcher.destroy(new KubeError('The connection was closed', { code: 0 }))
    },
  }
}

function isSame(a: Held, b: Held): boolean {
  return (
    a.tlsKey === b.tlsKey && JSON.stringify(a.credentials.headers) === JSON.stringify(b.credentials.headers)
  )
}

function dispatcherFor(tls: Tls, proxyUrl: string | undefined): Dispatcher {
  const limits = {
    // HTTP/1.1: one lost connection then takes one watch or request with it, not all of them.
    allowH2: false,
    // A watch may be quiet for long; it has its own limit, and so has each request.
    bodyTimeout: 0,
    keepAliveTimeout: keepAliveMs,
  }
  const connect = { ...tls, timeout: connectTimeoutMs, keepAlive: true, keepAliveInitialDelay: 30_000 }
  if (proxyUrl === undefined) return new Agent({ ...limits, connect })
  if (proxyUrl.startsWith('socks')) return new Socks5ProxyAgent(proxyUrl, { ...limits, requestTls: connect })
  return new ProxyAgent({ ...limits, uri: proxyUrl, requestTls: connect })
}
