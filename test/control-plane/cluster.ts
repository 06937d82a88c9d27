import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { Agent, fetch } from 'undici'
import { inject } from 'vitest'
import { systemClock } from '../../shared/clock.ts'
import { namespaces, type StoredObject } from '../../shared/kinds/object.ts'
import { type ClientOptions, type KubeClient, kubeClient, type Transport } from '../../shared/kube/client.ts'
import type { ClusterConnection } from './start.ts'

declare module 'vitest' {
  interface ProvidedContext {
    cluster: ClusterConnection
  }
}

/** The real control plane, as tests use it. */
export interface RealCluster extends ClusterConnection {
  /** The wire with `token` (default: the admin's). */
  transport(token?: string): Transport
  client(options?: Partial<ClientOptions> & { token?: string }): KubeClient
  /** Makes a namespace of a fresh name and gives the name. */
  newNamespace(): Promise<string>
  /** Runs kubectl as the admin; `stdin` is piped to it. */
  kubectl(args: string[], stdin?: string): Promise<{ stdout: string; stderr: string; code: number }>
  /** Makes the service account if it is missing and gives a token for it, good for an hour. */
  tokenFor(namespace: string, serviceAccount: string): Promise<string>
  /** The requests that the server has answered, oldest first; `since` is the number of those to leave out. */
  requests(since?: number): Promise<AuditEntry[]>
}

/** One answered request, from the audit log. */
export interface AuditEntry {
  verb: string
  requestURI: string
  userAgent: string
  user: { username: string }
  responseStatus: { code: number }
  objectRef?: {
    resource?: string
    namespace?: string
    name?: string
    subresource?: string
    apiGroup?: string
  }
  stageTimestamp: string
}

/** The cluster that the global set-up of the project `cluster` has started. */
export const realCluster: RealCluster = clusterOf(inject('cluster'))

function clusterOf(connection: ClusterConnection): RealCluster {
  const dispatcher = new Agent({ connect: { ca: readFileSync(connection.caFile, 'utf8') } })

  function transport(token = connection.adminToken): Transport {
    return {
      baseUrl: connection.server,
      fetch: (url, init) => {
        const headers = new Headers(init.headers)
        headers.set('authorization', `Bearer ${token}`)
        const request = { ...init, headers: Object.fromEntries(headers), dispatcher }
        return fetch(url, request as Parameters<typeof fetch>[1]) as unknown as Promise<Response>
      },
    }
  }
  const client = (options: Partial<ClientOptions> & { token?: string } = {}) =>
    kubeClient({
      transport: transport(options.token),
      clock: systemClock,
      userAgent: 'mutantops-test',
      ...options,
    })
  const admin = client()

  return {
    ...connection,
    transport,
    client,
    async newNamespace() {
      const object = { apiVersion: 'v1', kind: 'Namespace', metadata: { generateName: 'test-' } }
      return (await admin.create<StoredObject>(namespaces, object)).metadata.name
    },
    kubectl: (args, stdin) => kubectl(connection, args, stdin),
    async tokenFor(namespace, serviceAccount) {
      const path = `/api/v1/namespaces/${namespace}/serviceaccounts`
      const body = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: serviceAccount } }
      await admin.request('POST', path, { body }).catch((error: { code?: number }) => {
        if (error.code !== 409) throw error
      })
      const answer = await admin.request('POST', `${path}/${serviceAccount}/token`, {
        body: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} },
      })
      return (answer.body as { status: { token: string } }).status.token
    },
    async requests(since = 0) {
      const lines = (await readFile(connection.auditLogFile, 'utf8')).split('\n')
      return lines.slice(since, -1).map((line) => JSON.parse(line) as AuditEntry)
    },
  }
}

function kubectl({ binaries, kubeconfigFile }: ClusterConnection, args: string[], stdin = '') {
  return new Promise<{ stdout: string; stderr: string; code: number }>((resolve, reject) => {
    const env = { PATH: process.env.PATH, HOME: process.env.HOME, KUBECONFIG: kubeconfigFile }
    const child = spawn(binaries.kubectl, args, { env, stdio: 'pipe' })
    let stdout = ''
    let stderr = ''
    child.stdout.on('data', (chunk: Buffer) => {
      stdout += chunk.toString()
    })
    child.stderr.on('data', (chunk: Buffer) => {
      stderr += chunk.toString()
    })
    child.on('error', reject)
    child.on('close', (code) => resolve({ stdout, stderr, code: code ?? 1 }))
    child.stdin.on('error', () => {})
    child.stdin.end(stdin)
  })
}
