import { chmod, writeFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { stringify } from 'yaml'
import { type ApiServer, apiServer } from '../../apiserver/server.ts'
import type { Clock } from '../../clock.ts'
import { makeFolder } from '../../folder.ts'
import { type KubeClient, kubeClient } from '../../kube/client.ts'
import { connect } from '../../kube/connect.ts'
import { isKubeError } from '../../kube/errors.ts'
import { version } from '../../version.ts'

export interface ApiOptions {
  /** The user's cluster; without it the embedded API. */
  cluster: { kubeconfig: string | undefined; context: string | undefined } | undefined
  /** Where files of this run are written. */
  folder: string
  /** Where the embedded API keeps its objects; undefined: nowhere. */
  dataFolder?: string | undefined
  env: Record<string, string | undefined>
  clock: Clock
}

/** The Kubernetes API of a run. */
export interface Api {
  client: KubeClient
  isEmbedded: boolean
  /** Whether its objects outlive this run. */
  isKept: boolean
  /** For people: where it is. */
  describe: string
  /** KUBECONFIG for the user's kubectl. */
  kubeconfig: string
  /** How the processes find it. */
  env: Record<string, string>
  /** The namespace of a sample that names none. */
  namespace: string
  stop(): Promise<void>
}

const userAgent = `mutantops/${version} (local)`

/** Opens the API. Throws when the cluster cannot be found in the kubeconfig or does not answer. */
export async function openApi(options: ApiOptions): Promise<Api> {
  return options.cluster ? userCluster(options, options.cluster) : embedded(options)
}

async function embedded({ folder, dataFolder, clock }: ApiOptions): Promise<Api> {
  const server = apiServer({ clock, ...(dataFolder !== undefined && { dataFolder }) })
  const { url } = await server.listen()
  const kubeconfig = join(folder, 'kubeconfig')
  await writePrivate(kubeconfig, stringify(server.kubeconfig(url)))
  return {
    client: kubeClient({ transport: server.transport(), clock, userAgent }),
    isEmbedded: true,
    isKept: dataFolder !== undefined,
    describe: `${url} (embedded; ${dataFolder ? `its objects are kept in ${dataFolder}` : 'it keeps nothing'})`,
    kubeconfig,
    env: await asInPod(server, url, join(folder, 'serviceaccount')),
    namespace: 'default',
    stop: () => server.stop(),
  }
}

/**
 * Lets the processes find the embedded API as they find a cluster's in a pod: a kubeconfig would make each load
 * client-node, which takes longer than all else at its start.
 */
async function asInPod(server: ApiServer, url: string, account: string): Promise<Record<string, string>> {
  const config = server.kubeconfig(url) as { clusters: { cluster: Record<string, string> }[] }
  const ca = config.clusters[0]?.cluster['certificate-authority-data'] ?? ''
  await writePrivate(join(account, 'ca.crt'), Buffer.from(ca, 'base64').toString())
  await writePrivate(join(account, 'token'), server.token)
  await writePrivate(join(account, 'namespace'), 'default')
  const { hostname, port } = new URL(url)
  return { KUBERNETES_SERVICE_HOST: hostname, KUBERNETES_SERVICE_PORT: port, SERVICE_ACCOUNT_FOLDER: account }
}

async function userCluster(
  { folder, env, clock }: ApiOptions,
  { kubeconfig, context }: NonNullable<ApiOptions['cluster']>,
): Promise<Api> {
  const connection = await connect({
    env: withoutPod(env),
    kubeconfig: kubeconfig && resolve(kubeconfig),
    context,
    clock,
  })
  const client = kubeClient({ transport: connection, clock, userAgent })
  try {
    await client.request('GET', '/version', { retries: 0, timeoutMs: answerWithinMs })
  } catch (error) {
    await connection.close()
    throw notAnswering(connection, error)
  }
  const files = kubeconfig ? resolve(kubeconfig) : (env.KUBECONFIG ?? join(env.HOME ?? '', '.kube', 'config'))
  const chosen = context ? await withContext(files, context, folder) : files
  return {
    client,
    isEmbedded: false,
    isKept: true,
    describe: `${connection.baseUrl} (${connection.describe})`,
    kubeconfig: chosen,
    env: { KUBECONFIG: chosen },
    namespace: connection.namespace,
    stop: () => connection.close(),
  }
}

const answerWithinMs = 5_000

function notAnswering({ baseUrl, describe }: { baseUrl: string; describe: string }, error: unknown): unknown {
  if (!isKubeError(error) || error.code !== 0) return error
  const problem = `The API server of ${describe} at ${new URL(baseUrl).host} does not answer`
  return new Error(`${problem}: ${error.message}. Does the cluster run?`, { cause: error })
}

/** A run is never meant for the cluster whose pod it may happen to be in. */
function withoutPod(env: Record<string, string | undefined>): Record<string, string | undefined> {
  return { ...env, KUBERNETES_SERVICE_HOST: undefined }
}

/** Of several kubeconfigs the first that names a current-context wins: a small one before the user's chooses it. */
async function withContext(files: string, context: string, folder: string): Promise<string> {
  const chooser = join(folder, 'context.yaml')
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': context,
    clusters: [],
    users: [],
    contexts: [],
  }
  await writePrivate(chooser, stringify(config))
  return `${chooser}:${files}`
}

async function writePrivate(file: string, text: string): Promise<void> {
  makeFolder(dirname(file))
  // The mode counts only for a new file, so one that exists is closed before anything is written to it.
  await writeFile(file, '', { mode: 0o600 })
  await chmod(file, 0o600)
  await writeFile(file, text)
}
