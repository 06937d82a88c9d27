import { type Clock, TimeoutError, untilAborted, withTimeout } from '../../clock.ts'
import { gate } from '../events/gate.ts'
import type { ServiceSpec } from '../manifests/workloads.ts'
import { becomesReady, type Instance, type Send, startInstance } from './instance.ts'
import type { RunningProcess } from './process.ts'

/** What happened to a function's process. */
export type RevisionReport = { service: string; pid: number } & (
  | { kind: 'starting' }
  | { kind: 'ready'; tookMs: number }
  | { kind: 'idle' }
  | { kind: 'stopped' }
  | { kind: 'crashed'; code: number | null; signal: string | null; pauseMs: number }
)

export interface RevisionOptions {
  spec: ServiceSpec
  clock: Clock
  /** Starts an instance that will listen on `port`. */
  start(port: number): RunningProcess
  send: Send
  report(report: RevisionReport): void
}

/** One function: its process while there is one, and the requests that wait for it. */
export interface Revision {
  /**
   * Passes a request on, starting the process when there is none. It answers itself with 502 (the process went away),
   * 503 (full, or being stopped) and 504 (too slow). Rejects only when `init.signal` is aborted.
   */
  handle(path: string, init: RequestInit): Promise<Response>
  /** The pid of the process that takes requests, if there is one. */
  pid(): number | undefined
  /** Starts it without a request; resolves when it is ready. */
  warm(): Promise<void>
  stop(): Promise<void>
}

/** A process that is not ready by then counts as crashed, in ms. */
const startTimeMaxMs = 60_000
/** So long a broken connection may be ahead of the news that the process has ended, in ms. */
const exitNoticeMs = 500
const firstPauseMs = 250
const pauseMaxMs = 10_000
/** Requests waiting at once; past it the answer is 503 and the broker tries again. */
const waitingMax = 10_000

/** How long to wait before the start that follows the `crashes`-th crash in a row, in ms. */
function pauseMs(crashes: number): number {
  return crashes === 0 ? 0 : Math.min(firstPauseMs * 2 ** (crashes - 1), pauseMaxMs)
}

/**
 * Starts a process on the first request, hands it at most `concurrency` requests at once, stops it by SIGTERM when no
 * request has come for `idleMs`, and starts it again after a crash, with growing pauses while it keeps crashing.
 */
export function revision(options: RevisionOptions): Revision {
  const { spec, clock } = options
  const stopping = new AbortController()
  const places = gate(spec.concurrency === 0 ? Number.POSITIVE_INFINITY : spec.concurrency)
  const isWanted = () => spec.alwaysOn || places.inside() > 0
  const running = keeper(options, isWanted, stopping.signal)
  let idle = new AbortController()

  /** Counts from now; a request that comes stops it. */
  function restartIdleTimer(): void {
    idle.abort()
    if (spec.alwaysOn || places.inside() > 0 || stopping.signal.aborted) return
    idle = new AbortController()
    clock.sleep(spec.idleMs, idle.signal).then(
      () => places.inside() === 0 && running.retire(),
      () => {},
    )
  }

  /** When the connection breaks the process has probably ended: the answer waits until that is known. */
  async function sendTo({ url, process }: Instance, path: string, init: RequestInit): Promise<Response> {
    try {
      return await options.send(url + path, init)
    } catch (error) {
      init.signal?.throwIfAborted()
      const noticed = new AbortController()
      const wait = clock.sleep(exitNoticeMs, noticed.signal).catch(() => {})
      await Promise.race([process.exited, wait])
      noticed.abort()
      throw error
    }
  }

  async function pass(path: string, init: RequestInit, signal: AbortSignal): Promise<Response> {
    const leave = await places.enter(signal)
    idle.abort()
    try {
      const instance = await untilAborted(running.instance(), signal)
      const response = await sendTo(instance, path, { ...init, signal })
      // Read here, so that the place is held until all of it has come.
      const body = await response.arrayBuffer()
      running.worked()
      const isEmpty = [204, 205, 304].includes(response.status)
      return new Response(isEmpty ? null : body, { status: response.status, headers: response.headers })
    } finally {
      leave()
      restartIdleTimer()
    }
  }

  return {
    async handle(path, init) {
      if (stopping.signal.aborted || places.waiting() >= waitingMax) return emptyAnswer(503)
      const parent = AbortSignal.any([stopping.signal, ...(init.signal ? [init.signal] : [])])
      const work = (signal: AbortSignal) => pass(path, init, signal)
      try {
        return await withTimeout(clock, spec.timeoutMs, `A request to ${spec.name}`, work, parent)
      } catch (error) {
        init.signal?.throwIfAborted()
        if (stopping.signal.aborted) return emptyAnswer(503)
        return emptyAnswer(error instanceof TimeoutError ? 504 : 502)
      }
    },
    pid: running.pid,
    async warm() {
      await running.instance()
      restartIdleTimer()
    },
    async stop() {
      stopping.abort(new Error(`${spec.name} is being stopped`))
      idle.abort()
      await running.stop()
    },
  }
}

/** Keeps at most one process that takes requests, and knows of all that have not ended yet. */
function keeper(options: RevisionOptions, isWanted: () => boolean, signal: AbortSignal) {
  const { spec, clock } = options
  const alive = new Set<Instance>()
  const asked = new WeakSet<Instance>()
  let current: Promise<Instance> | undefined
  let serving: Instance | undefined
  let crashes = 0

  const tell = (instance: Instance, report: Told) =>
    options.report({ service: spec.name, pid: instance.process.pid, ...report })

  async function startUntilReady(): Promise<Instance> {
    for (;;) {
      await clock.sleep(pauseMs(crashes), signal)
      if (crashes > 0 && !isWanted()) throw new Error(`${spec.name} keeps crashing, and nobody waits for it`)
      const startedMs = clock.monotonicMs()
      const instance = await startInstance(options.start)
      alive.add(instance)
      instance.process.exited.then((exit) => hasEnded(instance, exit)).catch(() => {})
      tell(instance, { kind: 'starting' })
      const readiness = { ...options, path: spec.readinessPath, withinMs: startTimeMaxMs, signal }
      if (await becomesReady(instance, readiness)) {
        tell(instance, { kind: 'ready', tookMs: clock.monotonicMs() - startedMs })
        serving = instance
        return instance
      }
      await instance.process.stop(0)
    }
  }

  function hasEnded(instance: Instance, exit: { code: number | null; signal: string | null }): void {
    alive.delete(instance)
    if (serving === instance) forget()
    if (asked.has(instance)) {
      tell(instance, { kind: 'stopped' })
      return
    }
    crashes++
    tell(instance, { kind: 'crashed', ...exit, pauseMs: pauseMs(crashes) })
  }

  function forget(): void {
    serving = undefined
    current = undefined
  }

  async function end(instance: Instance): Promise<void> {
    asked.add(instance)
    await instance.process.stop(spec.gracePeriodMs)
  }

  return {
    /** The process that takes requests, started if there is none. */
    instance(): Promise<Instance> {
      current ??= startUntilReady().catch((error) => {
        forget()
        throw error
      })
      return current
    },
    /** It has answered: the next crash is a first one. */
    worked: () => {
      crashes = 0
    },
    pid: () => serving?.process.pid,
    /** Takes the process out of service, then lets it finish. */
    retire(): void {
      if (!serving) return
      const leaver = serving
      forget()
      tell(leaver, { kind: 'idle' })
      end(leaver).catch(() => {})
    },
    /** Ends every process; a start under way ends by the signal. */
    async stop(): Promise<void> {
      await current?.catch(() => {})
      await Promise.all([...alive].map(end))
    },
  }
}

type Told =
  | { kind: 'starting' | 'idle' | 'stopped' }
  | { kind: 'ready'; tookMs: number }
  | { kind: 'crashed'; code: number | null; signal: string | null; pauseMs: number }

function emptyAnswer(status: number): Response {
  return new Response(null, { status })
}
