import { type Clock, withTimeout } from '../../clock.ts'
import { freePort, type RunningProcess } from './process.ts'

/** One process of a function, and where it listens. */
export interface Instance {
  process: RunningProcess
  url: string
}

/** Sends one request to an instance. */
export type Send = (url: string, init: RequestInit) => Promise<Response>

/** Between two looks whether a process is ready, in ms. */
const probeIntervalMs = 20
const probeTimeoutMs = 1_000

/** Starts a process on a free port of the loopback interface. */
export async function startInstance(start: (port: number) => RunningProcess): Promise<Instance> {
  const port = await freePort()
  return { process: start(port), url: `http://127.0.0.1:${port}` }
}

export interface Readiness {
  clock: Clock
  send: Send
  /** Answers 2xx when the process is ready; undefined: any answer will do. */
  path: string | undefined
  withinMs: number
  signal: AbortSignal
}

/**
 * Waits until an instance is ready. Gives false when it has ended or was not ready in time; throws `signal.reason`
 * when that is aborted.
 */
export async function becomesReady(instance: Instance, readiness: Readiness): Promise<boolean> {
  const { clock, signal } = readiness
  const deadlineMs = clock.monotonicMs() + readiness.withinMs
  while (clock.monotonicMs() < deadlineMs) {
    signal.throwIfAborted()
    if (instance.process.hasExited()) return false
    if (await answers(instance.url, readiness)) return true
    await Promise.race([clock.sleep(probeIntervalMs, signal), instance.process.exited])
  }
  return false
}

async function answers(url: string, { clock, send, path }: Readiness): Promise<boolean> {
  try {
    const response = await withTimeout(clock, probeTimeoutMs, 'The readiness probe', (signal) =>
      send(url + (path ?? '/'), { method: 'GET', signal }),
    )
    await response.body?.cancel()
    return path === undefined || response.ok
  } catch {
    return false
  }
}
