import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { serviceAccountFolder } from '../kube/service-account.ts'

/** What a process knows about the pod that it runs in. What is unknown is absent, never an empty string. */
export interface PodInfo {
  readonly name?: string
  readonly namespace?: string
  readonly uid?: string
  readonly nodeName?: string
  readonly ip?: string
  readonly serviceAccount?: string
  readonly labels: Readonly<Record<string, string>>
}

export interface PodInfoOptions {
  env: Record<string, string | undefined>
  /** Default: where the kubelet mounts the service account's namespace. */
  namespaceFile?: string
  /** Default: where the generated manifests mount the pod's labels. */
  labelsFile?: string
}

/** Where the Downward API puts the pod's labels, in our manifests. */
export const labelsFilePath = '/etc/podinfo/labels'

/**
 * Reads the pod's identity: POD_NAME (else HOSTNAME), POD_NAMESPACE (else the service account's file), POD_UID,
 * NODE_NAME, POD_IP, POD_SERVICE_ACCOUNT and the labels file. Never throws: outside a pod most of it is absent.
 */
export async function podInfo(options: PodInfoOptions): Promise<PodInfo> {
  const {
    env,
    namespaceFile = join(serviceAccountFolder, 'namespace'),
    labelsFile = labelsFilePath,
  } = options
  const namespace = env.POD_NAMESPACE?.trim() || (await textOf(namespaceFile))?.trim()
  return {
    ...present('name', env.POD_NAME?.trim() || env.HOSTNAME),
    ...present('namespace', namespace),
    ...present('uid', env.POD_UID),
    ...present('nodeName', env.NODE_NAME),
    ...present('ip', env.POD_IP),
    ...present('serviceAccount', env.POD_SERVICE_ACCOUNT),
    labels: parseLabels((await textOf(labelsFile)) ?? ''),
  }
}

function present<K extends string>(key: K, value: string | undefined): { [P in K]?: string } {
  const text = value?.trim()
  return text ? ({ [key]: text } as { [P in K]?: string }) : {}
}

function textOf(path: string): Promise<string | undefined> {
  return readFile(path, 'utf8').catch(() => undefined)
}

/** Reads the Downward API's file of labels: a line for each, `key="value"`, the value quoted as Go does. */
export function parseLabels(text: string): Record<string, string> {
  const labels: Record<string, string> = {}
  for (const line of text.split('\n')) {
    const at = line.indexOf('=')
    const value = at > 0 ? unquoteGo(line.slice(at + 1).trim()) : undefined
    if (value !== undefined) labels[line.slice(0, at)] = value
  }
  return labels
}

const simpleEscapes: Record<string, string> = {
  a: '\x07',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
  '\\': '\\',
  '"': '"',
}
const escapes = /\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([abfnrtv\\"]))/g

/** The text that Go's `strconv.Quote` quoted, or undefined when it is not quoted so. `\x` stands for a byte. */
function unquoteGo(quoted: string): string | undefined {
  const inner = /^"((?:[^"\\]|\\.)*)"$/.exec(quoted)?.[1]
  if (inner === undefined) return undefined
  const bytes: Buffer[] = []
  let at = 0
  for (const match of inner.matchAll(escapes)) {
    const [whole, byte, short, long, letter] = match
    bytes.push(Buffer.from(inner.slice(at, match.index)))
    if (byte !== undefined) bytes.push(Buffer.from(byte, 'hex'))
    else if (letter !== undefined) bytes.push(Buffer.from(simpleEscapes[letter] ?? letter))
    else {
      const code = Number.parseInt(short ?? long ?? '', 16)
      bytes.push(Buffer.from(code <= 0x10ffff ? String.fromCodePoint(code) : '\ufffd'))
    }
    at = match.index + whole.length
  }
  bytes.push(Buffer.from(inner.slice(at)))
  return Buffer.concat(bytes).toString('utf8')
}
