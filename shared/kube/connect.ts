import { access } from 'node:fs/promises'
import { join } from 'node:path'
import { type Clock, systemClock } from '../clock.ts'
import type { Transport } from './request.ts'
import { inClusterConfig } from './service-account.ts'
import { wire } from './wire.ts'

export interface ConnectOptions {
  /** The environment: KUBECONFIG, HOME, KUBERNETES_SERVICE_HOST, KUBERNETES_SERVICE_PORT. */
  env: Record<string, string | undefined>
  /** A path, or several joined as in KUBECONFIG, which it overrides. */
  kubeconfig?: string | undefined
  /** Default: the kubeconfig's current-context. */
  context?: string | undefined
  /** Only the pod's service account; no kubeconfig is looked for. */
  inCluster?: boolean
  /** Default: where the kubelet mounts it. */
  serviceAccountFolder?: string
  clock?: Clock
}

export interface Connection extends Transport {
  mode: 'kubeconfig' | 'in_cluster'
  /** The context's namespace or the pod's own. */
  namespace: string
  /** Says where the connection was read from, for people; no address and no credential. */
  describe: string
  /** Closes all connections; what is in flight fails. */
  close(): Promise<void>
}

/** There is neither a kubeconfig nor a service account: this process is not meant for any cluster. */
export class NoClusterError extends Error {
  override readonly name = 'NoClusterError'
}

/**
 * Finds the cluster and makes an authenticated {@link Transport} to it: from a kubeconfig (the option, KUBECONFIG, or
 * ~/.kube/config where that exists), else from the pod's service account. No request is sent.
 *
 * Throws `KubeconfigError` for a kubeconfig that is named or found but cannot be used, and {@link NoClusterError} when
 * there is nothing to connect to; never falls back to an address of its own.
 */
export async function connect(options: ConnectOptions): Promise<Connection> {
  const { env, clock = systemClock } = options
  const paths = options.inCluster ? undefined : await kubeconfigPaths(options)
  if (paths !== undefined) {
    // Loaded only here: a pod needs neither it nor client-node, and each module makes a cold start slower.
    const { loadKubeconfig } = await import('./kubeconfig.ts')
    const {
      server: baseUrl,
      namespace,
      proxyUrl,
      describe,
      read,
    } = await loadKubeconfig(paths, options.context)
    return { mode: 'kubeconfig', namespace, describe, ...wire({ baseUrl, clock, proxyUrl, read }) }
  }
  const pod = await inClusterConfig(env, options.serviceAccountFolder)
  if (!pod) throw new NoClusterError(noCluster(options))
  const { server: baseUrl, namespace, read } = pod
  return {
    mode: 'in_cluster',
    namespace,
    describe: "the pod's service account",
    ...wire({ baseUrl, clock, read }),
  }
}

function noCluster({ inCluster }: ConnectOptions): string {
  const pod = "no service account's token and KUBERNETES_SERVICE_HOST"
  return inCluster
    ? `No cluster: ${pod}`
    : `No cluster: no kubeconfig (KUBECONFIG, ~/.kube/config) and ${pod}`
}

async function kubeconfigPaths({ kubeconfig, context, env }: ConnectOptions): Promise<string | undefined> {
  const named = kubeconfig || env.KUBECONFIG
  if (named) return named
  if (!env.HOME) return undefined
  const usual = join(env.HOME, '.kube', 'config')
  // Asked for by context, it must be there, and its absence is told by name.
  if (context) return usual
  return access(usual).then(
    () => usual,
    () => undefined,
  )
}
