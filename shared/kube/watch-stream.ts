import { type Clock, TimeoutError, untilAborted } from '../clock.ts'
import type { KubeObject, Status } from '../kinds/object.ts'
import { answerError, connectionError, statusError } from './answers.ts'
import { KubeError } from './errors.ts'

export interface WatchEvent {
  type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK'
  object: KubeObject
}

/** No object of the API comes near this (etcd takes 1.5 MiB); a line without end must not eat the memory. */
const lineLengthMax = 16 * 1024 * 1024

/** How long a watch may take to be answered, in ms. */
const openTimeoutMs = 15_000

export interface WatchStream {
  /** For error messages. */
  what: string
  clock: Clock
  idleTimeoutMs: number | undefined
  signal: AbortSignal | undefined
  /** Told when the server has accepted the watch, which is long before the first event where nothing happens. */
  onOpen: (() => void) | undefined
  open(signal: AbortSignal): Promise<Response>
}

/**
 * Reads one watch connection, a JSON object per line, until the server ends it. Throws a {@link KubeError} when the
 * watch is refused, when an ERROR event comes, when a line is not JSON, and when nothing came for `idleTimeoutMs`
 * (a half-open connection); when the caller's signal is aborted it throws its reason. Leaving the loop closes the
 * connection.
 */
export async function* readWatch(stream: WatchStream): AsyncGenerator<WatchEvent, void> {
  const { what, clock, signal } = stream
  const connection = new AbortController()
  const onAbort = () => connection.abort(signal?.reason)
  signal?.throwIfAborted()
  signal?.addEventListener('abort', onAbort, { once: true })
  const idle = idleTimer(clock, connection)
  try {
    idle.restart(openTimeoutMs)
    const response = await untilAborted(stream.open(connection.signal), connection.signal)
    if (!response.ok) throw answerError(what, response, await response.json().catch(() => undefined))
    stream.onOpen?.()
    idle.restart(stream.idleTimeoutMs)
    const onBytes = () => idle.restart(stream.idleTimeoutMs)
    for await (const line of linesOf(response, connection.signal, onBytes)) yield eventOf(what, line)
  } catch (error) {
    signal?.throwIfAborted()
    throw connectionError(what, connection.signal.aborted ? connection.signal.reason : error)
  } finally {
    idle.stop()
    signal?.removeEventListener('abort', onAbort)
    connection.abort()
  }
}

async function* linesOf(
  response: Response,
  signal: AbortSignal,
  onBytes: () => void,
): AsyncGenerator<string> {
  const reader = response.body?.getReader()
  if (!reader) return
  const cancel = () => {
    reader.cancel(signal.reason).catch(() => {})
  }
  signal.addEventListener('abort', cancel, { once: true })
  const decoder = new TextDecoder()
  let rest = ''
  try {
    for (;;) {
      const { done, value } = await reader.read()
      signal.throwIfAborted()
      // The server ends each event with a line feed: what is left was cut off, and comes again with the next watch.
      if (done) return
      onBytes()
      const lines = (rest + decoder.decode(value, { stream: true })).split('\n')
      rest = lines.pop() ?? ''
      if (rest.length > lineLengthMax)
        throw new KubeError(`A watch event is longer than ${lineLengthMax} bytes`, { code: 0 })
      for (const line of lines) if (line.trim() !== '') yield line
    }
  } finally {
    signal.removeEventListener('abort', cancel)
    cancel()
  }
}

function eventOf(what: string, line: string): WatchEvent {
  let event: { type: string; object: KubeObject }
  try {
    event = JSON.parse(line)
  } catch (cause) {
    throw new KubeError(`${what}: a line of the stream is not JSON`, { code: 0, cause })
  }
  if (event.type !== 'ERROR') return event as WatchEvent
  const status = event.object as unknown as Status
  throw statusError(what, status.code ?? 500, status, status.details?.retryAfterSeconds)
}

/**
 * Aborts `connection` when it was not restarted for the time given at the last restart. A later deadline costs nothing:
 * the sleeper looks again when it wakes; an earlier one wakes it.
 */
function idleTimer(clock: Clock, connection: AbortController) {
  let deadlineMs = Number.POSITIVE_INFINITY
  let wakesAtMs = Number.POSITIVE_INFINITY
  let sleeper = new AbortController()

  function sleepUntilDeadline(): void {
    sleeper.abort()
    sleeper = new AbortController()
    wakesAtMs = deadlineMs
    clock.sleep(deadlineMs - clock.monotonicMs(), sleeper.signal).then(onWake, () => {})
  }

  function onWake(): void {
    wakesAtMs = Number.POSITIVE_INFINITY
    if (deadlineMs <= clock.monotonicMs())
      connection.abort(new TimeoutError('The watch was silent for too long'))
    else if (deadlineMs !== Number.POSITIVE_INFINITY) sleepUntilDeadline()
  }

  return {
    restart(ms: number | undefined): void {
      deadlineMs = ms === undefined ? Number.POSITIVE_INFINITY : clock.monotonicMs() + ms
      if (deadlineMs < wakesAtMs) sleepUntilDeadline()
    },
    stop(): void {
      deadlineMs = Number.POSITIVE_INFINITY
      sleeper.abort()
    },
  }
}
