import type { Clock } from '../../clock.ts'
import type { ProcessSpec } from '../manifests/workloads.ts'
import { becomesReady, type Instance, type Send, startInstance } from './instance.ts'
import type { RunningProcess } from './process.ts'

/** What happened to a process that runs all the time. */
export type SupervisorReport = { service: string; pid: number } & (
  | { kind: 'starting' }
  | { kind: 'ready'; tookMs: number }
  | { kind: 'stopped' }
  | { kind: 'crashed'; code: number | null; signal: string | null; pauseMs: number }
)

export interface SupervisorOptions {
  spec: ProcessSpec
  clock: Clock
  start(port: number): RunningProcess
  send: Send
  report(report: SupervisorReport): void
}

export interface Supervisor {
  /** Resolves when the process is ready for the first time. */
  ready: Promise<void>
  stop(): Promise<void>
}

const readyWithinMs = 60_000
const firstPauseMs = 500
const pauseMaxMs = 10_000
/** One that ran so long was well: the pause after its end is a first one again, in ms. */
const wellAfterMs = 30_000

/** Keeps one process running, as the kubelet does for a Deployment: starts it again when it ends. */
export function supervisor(options: SupervisorOptions): Supervisor {
  const { spec, clock } = options
  const stopping = new AbortController()
  let running: Instance | undefined
  let markReady = () => {}
  const ready = new Promise<void>((resolve) => {
    markReady = resolve
  })

  async function runOnce(instance: Instance): Promise<void> {
    const { process } = instance
    const startedMs = clock.monotonicMs()
    const who = { service: spec.name, pid: process.pid }
    options.report({ ...who, kind: 'starting' })
    const readiness = {
      ...options,
      path: spec.readinessPath,
      withinMs: readyWithinMs,
      signal: stopping.signal,
    }
    if (await becomesReady(instance, readiness).catch(() => false)) {
      options.report({ ...who, kind: 'ready', tookMs: clock.monotonicMs() - startedMs })
      markReady()
    }
    await process.exited
  }

  async function run(): Promise<void> {
    let failures = 0
    while (!stopping.signal.aborted) {
      const startedMs = clock.monotonicMs()
      const instance = await startInstance(options.start)
      running = instance
      if (stopping.signal.aborted) instance.process.stop(0).catch(() => {})
      await runOnce(instance)
      const who = { service: spec.name, pid: instance.process.pid }
      if (stopping.signal.aborted) return options.report({ ...who, kind: 'stopped' })
      failures = clock.monotonicMs() - startedMs > wellAfterMs ? 0 : failures + 1
      const pauseMs = Math.min(firstPauseMs * 2 ** Math.max(0, failures - 1), pauseMaxMs)
      options.report({ ...who, kind: 'crashed', ...(await instance.process.exited), pauseMs })
      await clock.sleep(pauseMs, stopping.signal).catch(() => {})
    }
  }

  const loop = run()
  return {
    ready,
    async stop() {
      stopping.abort(new Error(`${spec.name} is being stopped`))
      await running?.process.stop(spec.gracePeriodMs)
      await loop
    },
  }
}
