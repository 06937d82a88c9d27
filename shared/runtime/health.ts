import type { Clock } from '../clock.ts'
import type { KubeClient } from '../kube/client.ts'
import { isKubeError } from '../kube/errors.ts'
import type { ConfigMapState, ConfigMapStore } from './config-maps.ts'
import type { Leadership } from './leadership.ts'

export type Mode = 'kubeconfig' | 'in_cluster' | 'custom' | 'detached' | 'disabled'

/** Why the API is down, in a word of a closed set: no address, version or text of an error gets out. */
export type HealthError =
  | 'timeout'
  | 'connection'
  | 'unauthorized'
  | 'forbidden'
  | 'throttled'
  | 'server'
  | 'other'

/** What may be shown to anybody who can reach the process. */
export interface HealthReport {
  status: 'up' | 'down' | 'unknown'
  mode: Mode
  namespace: string
  leader?: { lease: string; leading: boolean }
  configMaps?: Record<string, ConfigMapState>
  error?: HealthError
}

export interface HealthOptions {
  mode: Mode
  namespace: string
  clock: Clock
  /** Absent without a cluster; health is `unknown` then. */
  client?: KubeClient | undefined
  leader?: { lease: string; leadership: Leadership } | undefined
  configMaps?: ConfigMapStore | undefined
  /** Told of each check. */
  onCheck?: ((up: boolean) => void) | undefined
}

export interface Health {
  /** Asks the API, unless the last answer is young enough. Never throws. */
  check(): Promise<HealthReport>
  /** Checks again and again until `signal` is aborted, so that no answer (and no metric) gets old. */
  run(signal: AbortSignal): Promise<void>
}

/** How long the API may take to tell its version, in ms. */
const timeoutMs = 1_500
/** How long an answer is used, in ms. */
const reuseMs = { up: 5_000, down: 1_000 }

/** The health check `kubernetes`: whether the API answers, and what this process holds of it. */
export function health(options: HealthOptions): Health {
  const { clock, client } = options
  let last: { atMs: number; error: HealthError | undefined } | undefined
  let asking: Promise<void> | undefined

  const reuseFor = () => (last?.error === undefined ? reuseMs.up : reuseMs.down)

  async function ask(kube: KubeClient, signal?: AbortSignal): Promise<void> {
    let error: HealthError | undefined
    try {
      await kube.request('GET', '/version', { timeoutMs, retries: 0, ...(signal && { signal }) })
    } catch (thrown) {
      // Broken off by us: that tells nothing about the API.
      if (signal?.aborted) return
      error = classOf(thrown)
    }
    last = { atMs: clock.monotonicMs(), error }
    options.onCheck?.(error === undefined)
  }

  /** One request serves all that ask meanwhile. */
  function refresh(kube: KubeClient, signal?: AbortSignal): Promise<void> {
    asking ??= ask(kube, signal).finally(() => {
      asking = undefined
    })
    return asking
  }

  return {
    async check() {
      if (client && !(last && clock.monotonicMs() - last.atMs < reuseFor())) await refresh(client)
      return reportOf(options, last)
    },
    async run(signal) {
      if (!client) return
      while (!signal.aborted) {
        await refresh(client, signal)
        await clock.sleep(reuseFor(), signal).catch(() => {})
      }
    },
  }
}

function reportOf(
  options: HealthOptions,
  last: { error: HealthError | undefined } | undefined,
): HealthReport {
  const { mode, namespace, leader, configMaps } = options
  const status = last === undefined ? 'unknown' : last.error === undefined ? 'up' : 'down'
  return {
    status,
    mode,
    namespace,
    ...(leader && { leader: { lease: leader.lease, leading: leader.leadership.isLeader() } }),
    ...(configMaps && { configMaps: configMaps.states() }),
    ...(last?.error && { error: last.error }),
  }
}

function classOf(error: unknown): HealthError {
  if (!isKubeError(error)) return 'other'
  if (error.code === 0) return error.reason === 'Timeout' ? 'timeout' : 'connection'
  if (error.code === 401) return 'unauthorized'
  if (error.code === 403) return 'forbidden'
  if (error.code === 429) return 'throttled'
  return error.code >= 500 ? 'server' : 'other'
}
