import { type Clock, TimeoutError, withTimeout } from '../clock.ts'
import { type Answer, backoffMs, type Delivery, type Failure, verdictOf } from './delivery.ts'
import type { Gate } from './gate.ts'
import { headersOf, type WireEvent } from './wire-event.ts'

/** `fetch` as far as events need it: in-cluster names are resolved by whoever hands it in. */
export type Post = (url: string, init: RequestInit) => Promise<Response>

export interface Dispatch {
  url: string
  event: WireEvent
  headers: Record<string, string>
  delivery: Delivery
  /** Told before each wait. */
  onRetry(attempt: number, failure: Failure, waitMs: number): void
}

export type Outcome =
  | { kind: 'delivered'; status: number; tries: number; reply?: WireEvent }
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

/**
 * Sends an event until it is delivered, refused for good or out of tries. While it waits for its next try it takes no
 * place, so that one failing subscriber object does not hold up the others. Rejects only when `signal` is aborted.
 */
export async function dispatch(what: Dispatch, ctx: DispatchContext): Promise<Outcome> {
  for (let attempt = 0; ; attempt++) {
    const leave = await ctx.places.enter(ctx.signal)
    const answer = await once(what, ctx).finally(leave)
    const verdict = verdictOf(answer)
    const tries = attempt + 1
    if (verdict.kind === 'delivered') return { ...verdict, tries }
    const waitMs = verdict.again ? backoffMs(what.delivery, attempt) : undefined
    if (waitMs === undefined) return { kind: 'failed', tries, failure: verdict.failure }
    what.onRetry(tries, verdict.failure, waitMs)
    await ctx.clock.sleep(waitMs, ctx.signal)
  }
}

async function once({ url, event, headers, delivery }: Dispatch, ctx: DispatchContext): Promise<Answer> {
  try {
    return await withTimeout(
      ctx.clock,
      delivery.timeoutMs ?? tryTimeMaxMs,
      `POST ${url}`,
      async (signal) => {
        const response = await ctx.post(url, {
          method: 'POST',
          headers: { ...headersOf(event), ...headers },
          body: event.data.length === 0 ? null : event.data,
          redirect: 'manual',
          signal,
        })
        const body = await readUpTo(response, answerLengthMax)
        return { kind: 'answer', status: response.status, headers: response.headers, body }
      },
      ctx.signal,
    )
  } catch (error) {
    ctx.signal.throwIfAborted()
    if (error instanceof TimeoutError) return { kind: 'timeout' }
    return { kind: 'none', message: messageOf(error) }
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
