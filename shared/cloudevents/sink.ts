import { readFile } from 'node:fs/promises'
import { getCACertificates } from 'node:tls'
import { type Clock, TimeoutError, withTimeout } from '../clock.ts'
import { type Fetch, type HttpPool, httpPool } from '../http-pool.ts'
import type { CloudEvent } from './event.ts'
import { addressOf, type SinkConfig } from './sink-config.ts'

/** Where events are sent to. */
export interface Sink {
  /**
   * Sends one event in binary mode and tells the status that it was answered with, whatever it is; redirects are not
   * followed. Throws a {@link SinkError} when no whole answer came, and `signal.reason` when that is aborted.
   */
  send(event: CloudEvent, options?: SendOptions): Promise<SinkAnswer>
  /** Closes the connections, those in use too. */
  close(): Promise<void>
}

export interface SendOptions {
  signal?: AbortSignal
  /** For the whole send, its repetition included, in ms. Default: the sink's own. */
  timeoutMs?: number
}

export interface SinkAnswer {
  status: number
  /** What the sink asked to wait before the next try, in seconds. */
  retryAfterSeconds?: number
  /** How many times the event had to be repeated because the connection was reset. */
  resets: number
}

/** No whole answer came from the sink. `reason` is one of few, for metrics; the message holds no address. */
export class SinkError extends Error {
  override readonly name = 'SinkError'
  readonly reason: 'timeout' | 'reset' | 'refused' | 'failed'

  constructor(message: string, reason: SinkError['reason'], cause?: unknown) {
    super(message, { cause })
    this.reason = reason
  }
}

export interface SinkOptions extends SinkConfig {
  clock: Clock
  userAgent: string
  /** How to reach the sink. Default: over connections kept by this sink. */
  fetch?: Fetch
  /** Told of every reset that was repeated, for metrics. */
  onReset?: () => void
}

const defaultTimeoutMs = 30_000
/** A reset is repeated at once so many times, then it is an error. */
const resetsMax = 1
/** The token that a SinkBinding mounts is rotated; it is read again after this long, in ms. */
const tokenKeptMs = 30_000
const answerBytesMax = 64 * 1024

/**
 * Makes a sink that sends as a Knative source does: to `url` (or the function's own, see {@link SinkConfig}), with the extensions of `K_CE_OVERRIDES`, trusting
 * `K_CA_CERTS`, and with the OIDC token if one is mounted.
 *
 * A connection that was kept may be closed by the sink at the very moment that it is used; such a reset is repeated
 * at once, on a new connection, and counted apart. The receiver sees the same event (same source and id) twice at
 * most.
 */
export function sink(options: SinkOptions): Sink {
  const { clock, timeoutMs: ownTimeoutMs = defaultTimeoutMs } = options
  const pool = poolFor(options.caCerts)
  const send = options.fetch ?? pool.fetch
  const token = tokenReader(options.tokenFile, clock)

  async function once(event: CloudEvent, signal: AbortSignal): Promise<Omit<SinkAnswer, 'resets'>> {
    // With the first event only: a cold start shall not pay for it.
    const { binaryOf } = await import('./write.ts')
    const { headers, body } = binaryOf(overridden(event, options.extensions))
    const bearer = await token()
    const response = await send(addressOf(event, options.url), {
      method: 'POST',
      headers: {
        ...headers,
        'user-agent': options.userAgent,
        ...(bearer && { authorization: `Bearer ${bearer}` }),
      },
      body,
      signal,
      redirect: 'manual',
    })
    await drained(response.body)
    const retryAfter = Number(response.headers.get('retry-after') ?? Number.NaN)
    return { status: response.status, ...(Number.isFinite(retryAfter) && { retryAfterSeconds: retryAfter }) }
  }

  async function untilAnswered(event: CloudEvent, signal: AbortSignal): Promise<SinkAnswer> {
    for (let resets = 0; ; resets++) {
      try {
        return { ...(await once(event, signal)), resets }
      } catch (error) {
        signal.throwIfAborted()
        if (reasonOf(error) !== 'reset' || resets === resetsMax) throw error
        options.onReset?.()
      }
    }
  }

  return {
    async send(event, { signal, timeoutMs = ownTimeoutMs } = {}) {
      const what = `POST of event ${event.id}`
      try {
        return await withTimeout(clock, timeoutMs, what, (inner) => untilAnswered(event, inner), signal)
      } catch (error) {
        signal?.throwIfAborted()
        const code = systemCode(error)
        throw new SinkError(`${what}: no answer (${code ?? reasonOf(error)})`, reasonOf(error), error)
      }
    },
    close: async () => pool.destroy(),
  }
}

function poolFor(caCerts: string | undefined): HttpPool {
  return httpPool(caCerts === undefined ? {} : { ca: [...getCACertificates('default'), caCerts] })
}

function overridden(event: CloudEvent, extensions: Record<string, string> | undefined): CloudEvent {
  return extensions ? { ...event, extensions: { ...event.extensions, ...extensions } } : event
}

/** Reads an answer's body to its end, so that the connection can be kept, and throws it away; a long one is left. */
async function drained(body: AsyncIterable<Uint8Array> | null): Promise<void> {
  let bytes = 0
  for await (const chunk of body ?? []) {
    bytes += chunk.byteLength
    if (bytes > answerBytesMax) break
  }
}

function tokenReader(file: string | undefined, clock: Clock): () => Promise<string | undefined> {
  let kept: { token: string | undefined; atMs: number } | undefined
  return async () => {
    if (file === undefined) return undefined
    if (kept && clock.monotonicMs() - kept.atMs < tokenKeptMs) return kept.token
    const token = await readFile(file, 'utf8').then(
      (text) => text.trim() || undefined,
      () => undefined,
    )
    kept = { token, atMs: clock.monotonicMs() }
    return token
  }
}

const resetCodes = new Set(['ECONNRESET', 'EPIPE'])

function reasonOf(error: unknown): SinkError['reason'] {
  if (error instanceof TimeoutError) return 'timeout'
  const code = systemCode(error)
  if (code !== undefined && resetCodes.has(code)) return 'reset'
  return code === 'ECONNREFUSED' ? 'refused' : 'failed'
}

function systemCode(error: unknown, depth = 0): string | undefined {
  if (!(error instanceof Error) || depth > 3) return undefined
  const code = (error as NodeJS.ErrnoException).code
  return typeof code === 'string' ? code : systemCode(error.cause, depth + 1)
}
