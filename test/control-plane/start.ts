import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Agent, fetch } from 'undici'
import type { Binaries } from './binaries.ts'
import { freePort, type Process, processGroup } from './processes.ts'

/** What a test needs to reach the cluster; plain data, so that it can be handed to other processes. */
export interface ClusterConnection {
  /** `https://127.0.0.1:<port>` */
  server: string
  adminToken: string
  /** A user in no group and with no role binding. */
  nobodyToken: string
  /** PEM file of the certificate that the server shows. */
  caFile: string
  kubeconfigFile: string
  /** One JSON object per request that was answered (audit.k8s.io/v1, level Metadata). */
  auditLogFile: string
  binaries: Binaries
}

export interface StartOptions {
  binaries: Binaries
  /** Controllers of kube-controller-manager to run. Default: {@link collectors}. Empty for none. */
  controllers?: string[]
  /** Done when the API server is ready and before the controllers start. */
  prepare?: (connection: ClusterConnection) => Promise<void>
}

/**
 * Garbage collection and the end of namespaces. The Deployment and ReplicaSet controllers are left out: without a
 * kubelet no pod of theirs would ever get ready, and they would overwrite the status that a test writes.
 */
export const collectors = ['garbage-collector-controller', 'namespace-controller']
/** Adds the rules of ClusterRoles so labelled to the built-in view, edit and admin. */
const roleController = 'clusterrole-aggregation-controller'
/** Makes ReplicaSets and pods (which stay Pending) of Deployments and keeps their status. */
export const workloadControllers = ['deployment-controller', 'replicaset-controller']

const readyTimeoutMs = 60_000
const startTries = 3

/** A running control plane. */
export interface ControlPlane {
  connection: ClusterConnection
  /** Stops everything and removes the folder. Safe to call twice. */
  stop(): Promise<void>
}

/** Starts etcd, kube-apiserver (RBAC on) and kube-controller-manager on ports that were free, and waits for readiness. */
export async function startControlPlane(options: StartOptions): Promise<ControlPlane> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await start(options)
    } catch (error) {
      // Another process may have taken a port between the look and the start.
      if (attempt === startTries || !String(error).includes('address already in use')) throw error
    }
  }
}

async function start({
  binaries,
  controllers = [...collectors, roleController],
  prepare,
}: StartOptions): Promise<ControlPlane> {
  const folder = await mkdtemp(join(tmpdir(), 'mutantops-control-plane-'))
  const group = processGroup(folder)
  const running: Process[] = []
  let stopping: Promise<void> | undefined
  const stop = () => {
    stopping ??= (async () => {
      for (const process of running.toReversed()) await process.stop()
      group.dismiss()
      await rm(folder, { recursive: true, force: true })
    })()
    return stopping
  }
  try {
    const connection = await writeFiles(folder, binaries)
    const etcdUrl = `http://127.0.0.1:${await freePort()}`
    running.push(group.start('etcd', binaries.etcd, etcdArgs(folder, etcdUrl, await freePort())))
    const port = Number(new URL(connection.server).port)
    const apiserver = group.start(
      'kube-apiserver',
      binaries['kube-apiserver'],
      apiserverArgs(folder, etcdUrl, port),
    )
    running.push(apiserver)
    await untilReady(connection, apiserver)
    await prepare?.(connection)
    if (controllers.length > 0) {
      const args = controllerArgs(connection.kubeconfigFile, controllers)
      running.push(group.start('kube-controller-manager', binaries['kube-controller-manager'], args))
    }
    return { connection, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

/** Writes the keys, tokens, audit policy and kubeconfig that the processes read. */
async function writeFiles(folder: string, binaries: Binaries): Promise<ClusterConnection> {
  const adminToken = randomBytes(24).toString('base64url')
  const nobodyToken = randomBytes(24).toString('base64url')
  const server = `https://127.0.0.1:${await freePort()}`
  const caFile = join(folder, 'certificates', 'apiserver.crt')
  const keys = generateKeyPairSync('rsa', {
    modulusLength: 2048,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  })
  const kubeconfigFile = join(folder, 'kubeconfig')
  const secret = { mode: 0o600 }
  await writeFile(join(folder, 'service-account.pub'), keys.publicKey)
  await writeFile(join(folder, 'service-account.key'), keys.privateKey, secret)
  const tokens = [`${adminToken},admin,admin,"system:masters"`, `${nobodyToken},nobody,nobody`]
  await writeFile(join(folder, 'tokens.csv'), `${tokens.join('\n')}\n`, secret)
  await writeFile(join(folder, 'audit-policy.yaml'), JSON.stringify(auditPolicy))
  await writeFile(kubeconfigFile, JSON.stringify(kubeconfigOf(server, caFile, adminToken), null, 2), secret)
  const auditLogFile = join(folder, 'audit.log')
  return { server, adminToken, nobodyToken, caFile, kubeconfigFile, auditLogFile, binaries }
}

const auditPolicy = {
  apiVersion: 'audit.k8s.io/v1',
  kind: 'Policy',
  omitStages: ['RequestReceived', 'ResponseStarted'],
  rules: [{ level: 'None', userGroups: ['system:apiservers'] }, { level: 'Metadata' }],
}

/** A kubeconfig with one cluster, one user and one context (JSON is YAML). */
export function kubeconfigOf(server: string, caFile: string, token: string): object {
  return {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'test', cluster: { server, 'certificate-authority': caFile } }],
    users: [{ name: 'test', user: { token } }],
    contexts: [{ name: 'test', context: { cluster: 'test', user: 'test' } }],
    'current-context': 'test',
  }
}

function etcdArgs(folder: string, clientUrl: string, peerPort: number): string[] {
  const peerUrl = `http://127.0.0.1:${peerPort}`
  return [
    `--data-dir=${join(folder, 'etcd')}`,
    `--listen-client-urls=${clientUrl}`,
    `--advertise-client-urls=${clientUrl}`,
    `--listen-peer-urls=${peerUrl}`,
    `--initial-advertise-peer-urls=${peerUrl}`,
    `--initial-cluster=default=${peerUrl}`,
    '--unsafe-no-fsync',
    '--log-level=warn',
  ]
}

function apiserverArgs(folder: string, etcdUrl: string, port: number): string[] {
  return [
    `--etcd-servers=${etcdUrl}`,
    `--cert-dir=${join(folder, 'certificates')}`,
    '--bind-address=127.0.0.1',
    `--secure-port=${port}`,
    '--service-account-issuer=https://kubernetes.default.svc',
    `--service-account-key-file=${join(folder, 'service-account.pub')}`,
    `--service-account-signing-key-file=${join(folder, 'service-account.key')}`,
    `--token-auth-file=${join(folder, 'tokens.csv')}`,
    '--authorization-mode=RBAC',
    '--service-cluster-ip-range=10.96.0.0/16',
    '--disable-admission-plugins=ServiceAccount',
    // OpenShift's default: blockOwnerDeletion needs a right on the owner's finalizers.
    '--enable-admission-plugins=OwnerReferencesPermissionEnforcement',
    `--audit-policy-file=${join(folder, 'audit-policy.yaml')}`,
    `--audit-log-path=${join(folder, 'audit.log')}`,
  ]
}

function controllerArgs(kubeconfigFile: string, controllers: string[]): string[] {
  return [
    `--kubeconfig=${kubeconfigFile}`,
    `--controllers=${controllers.join(',')}`,
    '--leader-elect=false',
    '--secure-port=0',
    '--kube-api-qps=500',
    '--kube-api-burst=1000',
  ]
}

async function untilReady(connection: ClusterConnection, apiserver: Process): Promise<void> {
  const deadline = performance.now() + readyTimeoutMs
  while (performance.now() < deadline) {
    if (apiserver.hasEnded()) throw new Error(`kube-apiserver ended at start:\n${apiserver.tail()}`)
    if (await isReady(connection)) return
    await sleep(100)
  }
  throw new Error(`kube-apiserver was not ready after ${readyTimeoutMs} ms:\n${apiserver.tail()}`)
}

async function isReady({ server, caFile, adminToken }: ClusterConnection): Promise<boolean> {
  const ca = await readFile(caFile, 'utf8').catch(() => undefined)
  if (ca === undefined) return false
  const dispatcher = new Agent({ connect: { ca } })
  try {
    const headers = { authorization: `Bearer ${adminToken}` }
    return (await fetch(`${server}/readyz`, { headers, dispatcher })).ok
  } catch {
    return false
  } finally {
    await dispatcher.destroy()
  }
}
