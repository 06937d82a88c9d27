import { readFile } from 'node:fs/promises'
import { isIPv6 } from 'node:net'
import { join } from 'node:path'
import { KubeError } from './errors.ts'
import type { Credentials } from './wire.ts'

/** Where the kubelet mounts a pod's service account. */
export const serviceAccountFolder = '/var/run/secrets/kubernetes.io/serviceaccount'

export interface InCluster {
  server: string
  namespace: string
  read(): Promise<Credentials>
}

/**
 * The API server as a pod sees it: its address from KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT, token, CA and
 * namespace from `folder`. Answers undefined when the variables or the token are missing (no pod, or one without a
 * service account's token). The token is read again at each `read`: the kubelet replaces it.
 */
export async function inClusterConfig(
  env: Record<string, string | undefined>,
  folder = serviceAccountFolder,
): Promise<InCluster | undefined> {
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = env
  if (!host || !port) return undefined
  if ((await readText(join(folder, 'token'))) === undefined) return undefined
  return {
    server: `https://${isIPv6(host) ? `[${host}]` : host}:${port}`,
    namespace: (await readText(join(folder, 'namespace')))?.trim() || 'default',
    async read() {
      const token = (await readText(join(folder, 'token')))?.trim()
      if (!token) throw new KubeError(`Cannot read the service account's token in ${folder}`, { code: 0 })
      const ca = await readText(join(folder, 'ca.crt'))
      return { headers: { authorization: `Bearer ${token}` }, tls: ca === undefined ? {} : { ca } }
    },
  }
}

function readText(path: string): Promise<string | undefined> {
  return readFile(path, 'utf8').catch(() => undefined)
}
