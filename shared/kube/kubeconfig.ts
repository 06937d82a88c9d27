import { readFile } from 'node:fs/promises'
import { delimiter, dirname, isAbsolute, resolve } from 'node:path'
import type { KubeConfig } from '@kubernetes/client-node'
import { parseDocument } from 'yaml'
import type { Tls } from '../http-pool.ts'
import { isObject } from '../kinds/object.ts'
import { KubeError } from './errors.ts'
import type { Credentials } from './wire.ts'

/** A kubeconfig that cannot be used. The message names the file and, where there is one, the context. */
export class KubeconfigError extends Error {
  override readonly name = 'KubeconfigError'
}

export interface Kubeconfig {
  server: string
  namespace: string
  proxyUrl: string | undefined
  /** Names file and context, never the address. */
  describe: string
  read(fresh: boolean): Promise<Credentials>
}

interface Entry {
  name?: unknown
  [part: string]: unknown
}

interface Merged {
  clusters: Entry[]
  users: Entry[]
  contexts: Entry[]
  'current-context'?: string
}

const sections = ['clusters', 'users', 'contexts'] as const

/**
 * Loads kubeconfig files (`paths` as in KUBECONFIG: one path, or several joined) and chooses a context, merging as
 * kubectl does: the first file to name a thing wins, and paths are relative to the file they stand in. Authentication is
 * @kubernetes/client-node's: tokens and token files, client certificates, exec plugins, OIDC. Throws
 * {@link KubeconfigError} for anything missing or unreadable, a path in the list included.
 */
export async function loadKubeconfig(paths: string, context?: string): Promise<Kubeconfig> {
  let merged = await mergedFiles(paths)
  const chosen = choose(merged, paths, context)
  let config = await authenticator(merged, chosen)
  const { cluster, where } = chosen
  return {
    server: chosen.server,
    namespace: chosen.namespace,
    proxyUrl: textOf(cluster['proxy-url']),
    describe: where,
    async read(fresh) {
      if (fresh) {
        merged = await mergedFiles(paths)
        config = await authenticator(merged, choose(merged, paths, context))
      }
      const options: Record<string, unknown> = {}
      try {
        await config.applyToHTTPSOptions(options)
      } catch (cause) {
        throw new KubeError(`Cannot get credentials for ${where}`, { code: 0, cause })
      }
      return credentialsOf(options)
    },
  }
}

/** What client-node has put in the options of a `node:https` request. */
function credentialsOf(options: Record<string, unknown>): Credentials {
  const headers: Record<string, string> = {}
  for (const [name, value] of Object.entries((options.headers as object) ?? {}))
    headers[name.toLowerCase()] = String(value).trim()
  if (typeof options.auth === 'string')
    headers.authorization = `Basic ${Buffer.from(options.auth).toString('base64')}`
  const { ca, cert, key, servername, rejectUnauthorized } = options as Tls
  return {
    headers,
    tls: {
      ...(ca && { ca }),
      ...(cert && { cert }),
      ...(key && { key }),
      ...(servername && { servername }),
      ...(rejectUnauthorized === false && { rejectUnauthorized }),
    },
  }
}

async function mergedFiles(paths: string): Promise<Merged> {
  const merged: Merged = { clusters: [], users: [], contexts: [] }
  for (const path of paths.split(delimiter).filter((part) => part !== '')) {
    const file = await readKubeconfig(path)
    for (const section of sections)
      for (const entry of entriesOf(file[section], section, path))
        if (!merged[section].some((other) => other.name === entry.name)) merged[section].push(entry)
    const current = textOf(file['current-context'])
    if (merged['current-context'] === undefined && current) merged['current-context'] = current
  }
  return merged
}

async function readKubeconfig(path: string): Promise<Record<string, unknown>> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    const why = { ENOENT: 'it does not exist', EISDIR: 'it is a folder', EACCES: 'it may not be read' }
    throw new KubeconfigError(
      `Cannot load kubeconfig ${path}: ${why[error.code as keyof typeof why] ?? error.code}`,
    )
  })
  const { errors, contents } = parseDocument(text, { logLevel: 'silent' })
  // The parser's own message quotes the line, and a token may stand in it.
  if (errors.length > 0) throw new KubeconfigError(`Cannot load kubeconfig ${path}: it is not YAML`)
  const document: unknown = contents?.toJSON()
  if (document === null || document === undefined)
    throw new KubeconfigError(`Cannot load kubeconfig ${path}: it is empty`)
  if (!isObject(document)) throw new KubeconfigError(`Cannot load kubeconfig ${path}: it is not a kubeconfig`)
  return document
}

/** The named entries of a section, with the paths in them made absolute. */
function entriesOf(list: unknown, section: (typeof sections)[number], path: string): Entry[] {
  if (list === undefined || list === null) return []
  const folder = dirname(path)
  if (!Array.isArray(list) || !list.every((entry) => isObject(entry) && textOf(entry.name)))
    throw new KubeconfigError(`Cannot load kubeconfig ${path}: ${section} is not a list of named entries`)
  return list.map((entry: Entry) => ({
    ...entry,
    ...(isObject(entry.cluster) && { cluster: absolute(entry.cluster, folder, ['certificate-authority']) }),
    ...(isObject(entry.user) && { user: userOf(entry.user, folder) }),
  }))
}

function userOf(user: Record<string, unknown>, folder: string): Record<string, unknown> {
  const { tokenFile, ...rest } = absolute(user, folder, ['client-certificate', 'client-key', 'tokenFile'])
  const exec = rest.exec
  return {
    ...rest,
    // client-node knows token files only in this form; kubectl lets the file win over the token.
    ...(tokenFile !== undefined && {
      token: undefined,
      'auth-provider': { name: 'tokenFile', config: { tokenFile } },
    }),
    ...(isObject(exec) && { exec: execOf(exec, folder) }),
  }
}

/** An exec plugin with its command found from the file's folder, and told what kubectl would tell it. */
function execOf(exec: Record<string, unknown>, folder: string): Record<string, unknown> {
  const command = textOf(exec.command)
  const info = { apiVersion: exec.apiVersion, kind: 'ExecCredential', spec: { interactive: false } }
  return {
    ...exec,
    ...(command?.includes('/') && { command: resolve(folder, command) }),
    env: [
      { name: 'KUBERNETES_EXEC_INFO', value: JSON.stringify(info) },
      ...(Array.isArray(exec.env) ? exec.env : []),
    ],
  }
}

function absolute(part: Record<string, unknown>, folder: string, fields: string[]): Record<string, unknown> {
  const changed = fields.flatMap((field) => {
    const path = textOf(part[field])
    return path && !isAbsolute(path) ? [[field, resolve(folder, path)]] : []
  })
  return { ...part, ...Object.fromEntries(changed) }
}

interface Chosen {
  name: string
  where: string
  server: string
  namespace: string
  cluster: Record<string, unknown>
}

function choose(merged: Merged, paths: string, wanted: string | undefined): Chosen {
  const fail = (why: string): never => {
    throw new KubeconfigError(`Cannot use kubeconfig ${paths}: ${why}`)
  }
  const name =
    wanted || merged['current-context'] || fail('it has no current-context, and no context was asked for')
  const context = partOf(merged.contexts, name, 'context')
  if (!context) {
    const known = merged.contexts.map((entry) => JSON.stringify(entry.name)).join(', ') || 'none'
    return fail(`it has no context "${name}" (it has: ${known})`)
  }
  const clusterName = textOf(context.cluster) ?? fail(`context "${name}" names no cluster`)
  const cluster = partOf(merged.clusters, clusterName, 'cluster')
  if (!cluster) return fail(`context "${name}" names the cluster "${clusterName}", which it does not have`)
  const userName = textOf(context.user)
  if (userName && !merged.users.some((user) => user.name === userName))
    return fail(`context "${name}" names the user "${userName}", which it does not have`)
  const server = textOf(cluster.server)?.replace(/\/+$/, '')
  if (!server || !URL.canParse(server)) return fail(`the cluster of context "${name}" has no valid server`)
  if (!isEncrypted(server))
    return fail(
      `the server of context "${name}" is reached by plain http, which only a loopback address may be`,
    )
  const namespace = textOf(context.namespace) ?? 'default'
  return { name, where: `context "${name}" of kubeconfig ${paths}`, server, namespace, cluster }
}

function partOf(list: Entry[], name: string, part: string): Record<string, unknown> | undefined {
  const found = list.find((entry) => entry.name === name)?.[part]
  return isObject(found) ? found : undefined
}

/** https, or plain http that does not leave the machine. */
function isEncrypted(server: string): boolean {
  const { protocol, hostname } = new URL(server)
  if (protocol === 'https:') return true
  return (
    protocol === 'http:' &&
    (/^127\.\d+\.\d+\.\d+$/.test(hostname) || ['localhost', '[::1]'].includes(hostname))
  )
}

/** client-node's view of the chosen context alone. It takes seconds to import where the disk is slow, so only here. */
async function authenticator(merged: Merged, { name, cluster, server }: Chosen): Promise<KubeConfig> {
  const { KubeConfig } = await import('@kubernetes/client-node')
  const context = partOf(merged.contexts, name, 'context') ?? {}
  // Without a user client-node would not even read the CA; and it takes plain http only where nothing is verified.
  const user = merged.users.find((entry) => entry.name === context.user)?.user ?? {}
  const plain = server.startsWith('http:') && { 'insecure-skip-tls-verify': true }
  const config = new KubeConfig()
  config.loadFromString(
    JSON.stringify({
      clusters: [{ name: 'chosen', cluster: { ...cluster, server, ...plain } }],
      users: [{ name: 'chosen', user }],
      contexts: [{ name: 'chosen', context: { cluster: 'chosen', user: 'chosen' } }],
      'current-context': 'chosen',
    }),
  )
  return config
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}
