import { type Clock, TimeoutError, withTimeout } from '../../clock.ts'
import {
  type Answer,
  backoffMs,
  type Delivery,
  type Failure,
  type Reply,
  type Route,
  verdictOf,
} from './delivery.ts'
import type { Gate } from './gate.ts'
import { headersOf, structuredOf, type WireEvent } from './wire-event.ts'

/** `fetch` as far as events need it: in-cluster names are resolved by whoever hands it in. */
export type Post = (url: string, init: RequestInit) => Promise<Response>

export interface Dispatch {
  url: string
  event: WireEvent
  headers: Record<string, string>
  delivery: Delivery
  /** Subscribers are reached through the broker filter, dead letter sinks and the broker itself directly. */
  through: Route
  /** Told before each wait. */
  onRetry(attempt: number, failure: Failure, waitMs: number): void
}

export type Outcome =
  | { kind: 'delivered'; status: number; tries: number; reply?: Reply }
  | { kind: 'failed'; tries: number; failure: Failure }

export interface DispatchContext {
  post: Post
  clock: Clock
  signal: AbortSignal
  /** The places for tries under way. */
  places: Gate
}

/** Where a Trigger sets no timeout: the in-memory channel gives any delivery up after this, in ms. */
const tryTimeMaxMs = 15 * 60_000
/** A subscriber's answer is a small event or an error text; what is longer is cut, in bytes. */
const answerLengthMax = 1024 * 1024
/** Redirects of one try, the first request counted. */
const requestsMax = 10
const redirects = new Set([301, 302, 303, 307, 308])

/**
 * Sends an event until it is delivered, refused for good or out of tries. While it waits for its next try it takes no
 * place, so that one failing subscriber object does not hold up the others. Rejects only when `signal` is aborted.
 */
export async function dispatch(what: Dispatch, ctx: DispatchContext): Promise<Outcome> {
  for (let attempt = 0; ; attempt++) {
    const leave = await ctx.places.enter(ctx.signal)
    const answer = await once(what, ctx).finally(leave)
    const verdict = verdictOf(answer, what.through)
    const tries = attempt + 1
    if (verdict.kind === 'delivered') return { ...verdict, tries }
    const waitMs = verdict.again ? backoffMs(what.delivery, attempt) : undefined
    if (waitMs === undefined) return { kind: 'failed', tries, failure: verdict.failure }
    what.onRetry(tries, verdict.failure, waitMs)
    await ctx.clock.sleep(waitMs, ctx.signal)
  }
}

async function once(what: Dispatch, ctx: DispatchContext): Promise<Answer> {
  try {
    return await withTimeout(
      ctx.clock,
      what.delivery.timeoutMs ?? tryTimeMaxMs,
      `POST ${what.url}`,
      async (signal) => {
        const response = await follow(what.url, { ...requestOf(what), signal }, ctx.post)
        const { status, headers } = response
        const body = await readUpTo(response, answerLengthMax).catch(() => {
          signal.throwIfAborted()
          return undefined
        })
        return body ? { kind: 'answer', status, headers, body } : { kind: 'cut off', status }
      },
      ctx.signal,
    )
  } catch (error) {
    ctx.signal.throwIfAborted()
    if (error instanceof TimeoutError) return { kind: 'timeout' }
    return { kind: 'none', message: `POST ${what.url}: ${messageOf(error)}` }
  }
}

function requestOf({ event, headers, delivery, through }: Dispatch): RequestInit {
  const init = { method: 'POST', redirect: 'manual' } as const
  if (through === 'filter' && delivery.format === 'json') {
    const { contentType, body } = structuredOf(event)
    return { ...init, headers: { 'content-type': contentType, ...headers }, body }
  }
  const body = event.data.length === 0 ? null : event.data
  return { ...init, headers: { ...headersOf(event), ...headers }, body }
}

/** Follows redirects as Go's HTTP client does: 307 and 308 with the same request, the others with a GET. */
async function follow(url: string, first: RequestInit, post: Post): Promise<Response> {
  let init = first
  let at = url
  for (let requests = 1; ; requests++) {
    const response = await post(at, init)
    const location = response.headers.get('location')
    if (!redirects.has(response.status) || location === null) return response
    await response.body?.cancel()
    if (requests === requestsMax) throw new Error(`stopped after ${requestsMax} redirects`)
    const headers = new Headers(init.headers)
    headers.set('referer', at)
    init = { ...init, headers }
    if (response.status < 307) {
      headers.delete('content-type')
      init = { ...init, method: 'GET', body: null }
    }
    at = new URL(location, at).href
  }
}

async function readUpTo(response: Response, lengthMax: number): Promise<Uint8Array<ArrayBuffer>> {
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of response.body ?? []) {
    chunks.push(chunk)
    length += chunk.length
    if (length >= lengthMax) break
  }
  return new Uint8Array(Buffer.concat(chunks).subarray(0, lengthMax))
}

function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const code = (error as NodeJS.ErrnoException).code
  if (error.cause !== undefined) return messageOf(error.cause)
  return code ?? error.message
}
