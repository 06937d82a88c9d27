import { type Clock, withTimeout } from '../clock.ts'
import { answerError, connectionError, connectionReset } from './answers.ts'
import { isKubeError, isUnreadableApply, KubeError } from './errors.ts'

/** `fetch` as far as the client uses it; the embedded API serves one in process, `connect` one over the network. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>

/** The wire under a client: where the API is and how to reach it, already authenticated. */
export interface Transport {
  /** Scheme, host and port, without a trailing slash. */
  baseUrl: string
  fetch: Fetch
}

export interface CallOptions {
  signal?: AbortSignal
  /** For one try, in ms. */
  timeoutMs?: number
  /** How often a transient failure may be tried again; 0 for callers that must see the first answer (elections). */
  retries?: number
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
  /**
   * Told of every answer, for metrics: `code` 0 when none came, and then whether a kept connection was reset (which
   * happens in health) or something failed.
   */
  onRequest?: (request: { method: string; code: number; wasReset: boolean }) => void
}

const defaultTimeoutMs = 10_000
const defaultRetries = 3
const firstBackoffMs = 100
const backoffMaxMs = 5_000
/** A server that asks to wait longer than this gets no retry from here; the caller decides. */
const retryAfterMaxMs = 5_000

const json = 'application/json'

/** Sends one request of the API and gives its status and JSON body. */
export type Send = (
  method: string,
  path: string,
  request?: RequestOptions,
) => Promise<{ status: number; body: unknown }>

/** Makes a {@link Send}: it has the timeout, the retries and the errors of all requests but the watches. */
export function sender(options: ClientOptions): Send {
  const { transport, clock, userAgent } = options

  async function once(method: string, path: string, request: RequestOptions): Promise<Answer> {
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
          options.onRequest?.({ method, code: response.status, wasReset: false })
          return { response, text }
        },
        request.signal,
      )
    } catch (error) {
      request.signal?.throwIfAborted()
      const failure = connectionError(what, error)
      options.onRequest?.({ method, code: 0, wasReset: failure.reason === connectionReset })
      throw failure
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
        const { response, text } = await once(method, path, request)
        const body = parsed(text, response.ok, `${method} ${path}`)
        if (response.ok) return { status: response.status, body }
        throw answerError(`${method} ${path}`, response, body)
      } catch (error) {
        const waitMs = attempt < retries ? retryWaitMs(error, attempt, idempotent, clock) : undefined
        if (waitMs === undefined) throw error
        if (waitMs > 0) await clock.sleep(waitMs, request.signal)
      }
    }
  }

  return send
}

interface Answer {
  response: Response
  text: string
}

/** `?a=1&b=2`, or nothing; undefined values are left out. */
export function queryOf(query: RequestOptions['query'] = {}): string {
  const parameters = new URLSearchParams()
  for (const [key, value] of Object.entries(query))
    if (value !== undefined) parameters.set(key, String(value))
  return parameters.size === 0 ? '' : `?${parameters}`
}

function parsed(text: string, isOk: boolean, what: string): unknown {
  if (text === '') return undefined
  try {
    return JSON.parse(text)
  } catch (cause) {
    if (!isOk) return undefined
    throw new KubeError(`${what}: the answer is not JSON`, { code: 0, cause })
  }
}

/**
 * How long to wait before the next try in ms, or undefined when there shall be none. 429 and a 503 were refused before
 * anything happened, so any request may be repeated; after a lost answer or another 5xx only an idempotent one. The
 * first reset is repeated at once: the server has closed a connection that was kept, it is not in trouble.
 */
function retryWaitMs(error: unknown, attempt: number, idempotent: boolean, clock: Clock): number | undefined {
  if (!isKubeError(error) || isUnreadableApply(error)) return undefined
  const refused = error.code === 429 || error.code === 503
  const lost = error.code === 0 || error.code === 500 || error.code === 504
  if (!refused && !(lost && idempotent)) return undefined
  if (error.reason === connectionReset && attempt === 0) return 0
  if (error.retryAfterSeconds !== undefined) {
    const askedMs = error.retryAfterSeconds * 1000
    return askedMs <= retryAfterMaxMs ? askedMs * (1 + clock.random() / 10) : undefined
  }
  return Math.min(firstBackoffMs * 2 ** attempt, backoffMaxMs) * (1 + clock.random())
}
