import { type Clock, withTimeout } from '../clock.ts'
import type { KubeClient } from '../kube/client.ts'
import { kubeClient } from '../kube/client.ts'
import { connect, NoClusterError } from '../kube/connect.ts'
import type { Transport } from '../kube/request.ts'
import type { KubernetesConfig } from './config.ts'
import type { Mode } from './health.ts'
import type { PodInfo } from './pod-info.ts'

/** How a process is tied to a cluster, if it is. */
export interface ClusterLink {
  mode: Mode
  /** Absent in the modes `detached` and `disabled`. */
  client?: KubeClient
  /** The connection's own namespace; empty when it has none. */
  namespace: string
  close(): Promise<void>
}

/** Makes the way to a cluster; throws `NoClusterError` when there is none to be tied to. */
export type Connect = (process: { podName: string | undefined }) => Promise<KubeClient | Transport>

export interface LinkOptions {
  config: Pick<KubernetesConfig, 'enabled' | 'required'>
  pod: PodInfo
  env: Record<string, string | undefined>
  clock: Clock
  userAgent: string
  /** A client made by the caller, or how to make one; neither: a kubeconfig, else the service account. */
  client?: KubeClient | undefined
  connect?: Connect | undefined
  /** Where the kubelet mounts the service account, if elsewhere. */
  serviceAccountFolder?: string | undefined
}

/** How long the API may take to answer a process that cannot do without it, in ms. */
const requiredTimeoutMs = 5_000

/**
 * Ties the process to its cluster: `disabled` by the configuration, `custom` with a client or connect function of the
 * caller's, `kubeconfig` when one exists, `in_cluster` with a service account, else `detached`.
 *
 * Throws when a kubeconfig exists but cannot be used, when `required` and there is no cluster, and when `required` and
 * the API does not answer `GET /version` within 5 s.
 */
export async function linkToCluster(options: LinkOptions): Promise<ClusterLink> {
  const { config, clock } = options
  if (!config.enabled) return { mode: 'disabled', namespace: '', close }
  const link = await find(options)
  const { client } = link
  if (!config.required || !client) return link
  try {
    await withTimeout(clock, requiredTimeoutMs, 'GET /version', (signal) =>
      client.request('GET', '/version', { timeoutMs: requiredTimeoutMs, signal }),
    )
  } catch (cause) {
    await link.close()
    throw new Error(`The Kubernetes API is required (mode ${link.mode}) and does not answer`, { cause })
  }
  return link
}

async function find(options: LinkOptions): Promise<ClusterLink> {
  const { env, clock, userAgent, pod } = options
  try {
    if (options.client) return { mode: 'custom', client: options.client, namespace: '', close }
    if (options.connect) {
      const made = await options.connect({ podName: pod.name })
      const client = 'fetch' in made ? kubeClient({ transport: made, clock, userAgent }) : made
      return { mode: 'custom', client, namespace: '', close }
    }
    const { serviceAccountFolder } = options
    const connection = await connect({ env, clock, ...(serviceAccountFolder && { serviceAccountFolder }) })
    const client = kubeClient({ transport: connection, clock, userAgent })
    return { mode: connection.mode, client, namespace: connection.namespace, close: connection.close }
  } catch (error) {
    if (error instanceof NoClusterError && !options.config.required)
      return { mode: 'detached', namespace: '', close }
    throw error
  }
}

async function close(): Promise<void> {}
