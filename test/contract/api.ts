import { isObject, type KubeObject } from '../../shared/kinds/object.ts'
import type { Transport } from '../../shared/kube/client.ts'

/** One server under contract. */
export interface Connection {
  transport: Transport
  /** Sends a request without the token, as a stranger would. */
  stranger(path: string, headers?: Record<string, string>): Promise<Response>
  stop(): Promise<void>
}

export interface Answer {
  code: number
  // Each test knows what it asked for.
  body: KubeObject & {
    code?: number
    reason?: string
    message?: string
    items: KubeObject[]
    status: unknown
  }
  text: string
  headers: Headers
}

export const types = {
  json: 'application/json',
  merge: 'application/merge-patch+json',
  jsonPatch: 'application/json-patch+json',
  strategic: 'application/strategic-merge-patch+json',
  apply: 'application/apply-patch+yaml',
} as const

export const accepts = {
  table: 'application/json;as=Table;v=v1;g=meta.k8s.io',
  metadata: 'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io',
  metadataList: 'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io',
} as const

export interface Call {
  type?: string
  accept?: string
  signal?: AbortSignal
}

export interface WatchLine {
  type: string
  object: KubeObject
}

/** Plain requests of the API: no client of ours stands between a test and the server. */
export interface Api {
  send(method: string, path: string, body?: unknown, call?: Call): Promise<Answer>
  get(path: string, call?: Call): Promise<Answer>
  post(path: string, body: unknown, call?: Call): Promise<Answer>
  put(path: string, body: unknown, call?: Call): Promise<Answer>
  patch(path: string, body: unknown, type?: string): Promise<Answer>
  apply(path: string, body: unknown, query?: string): Promise<Answer>
  del(path: string, body?: unknown): Promise<Answer>
  /** Reads a watch until `enough`, or until the server ends it. */
  watch(path: string, enough?: (lines: WatchLine[]) => boolean, call?: Call): Promise<WatchLine[]>
  /** Asks again until `isTrue`; fails after ten seconds with the last answer. */
  until(path: string, isTrue: (answer: Answer) => boolean): Promise<Answer>
  namespace(): Promise<string>
}

const untilTriesMax = 200
const untilPauseMs = 50

export function apiOf({ transport }: Connection): Api {
  const open = (method: string, path: string, body?: unknown, call: Call = {}) =>
    transport.fetch(transport.baseUrl + path, {
      method,
      headers: {
        accept: call.accept ?? types.json,
        'user-agent': 'contract/1',
        ...(body !== undefined && { 'content-type': call.type ?? types.json }),
      },
      body: body === undefined ? null : typeof body === 'string' ? body : JSON.stringify(body),
      ...(call.signal && { signal: call.signal }),
    })
  async function send(method: string, path: string, body?: unknown, call?: Call): Promise<Answer> {
    const response = await open(method, path, body, call)
    const text = await response.text()
    const isJson = response.headers.get('content-type')?.startsWith('application/json')
    return { code: response.status, text, headers: response.headers, body: isJson ? JSON.parse(text) : {} }
  }
  return {
    send,
    get: (path, call) => send('GET', path, undefined, call),
    post: (path, body, call) => send('POST', path, body, call),
    put: (path, body, call) => send('PUT', path, body, call),
    patch: (path, body, type = types.merge) => send('PATCH', path, body, { type }),
    apply: (path, body, query = 'fieldManager=contract') =>
      send('PATCH', `${path}?${query}`, body, { type: types.apply }),
    del: (path, body) => send('DELETE', path, body),
    async watch(path, enough = () => false, call = {}) {
      const ended = new AbortController()
      const response = await open('GET', path, undefined, { ...call, signal: ended.signal })
      if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`)
      const lines: WatchLine[] = []
      enough(lines)
      let rest = ''
      const decoder = new TextDecoder()
      for await (const chunk of response.body ?? []) {
        const parts = (rest + decoder.decode(chunk, { stream: true })).split('\n')
        rest = parts.pop() ?? ''
        lines.push(...parts.filter((part) => part !== '').map((part) => JSON.parse(part) as WatchLine))
        if (enough(lines)) break
      }
      ended.abort()
      return lines
    },
    async until(path, isTrue) {
      for (let attempt = 0; ; attempt++) {
        const answer = await send('GET', path)
        if (isTrue(answer)) return answer
        if (attempt === untilTriesMax) throw new Error(`${path} stayed: ${answer.code} ${answer.text}`)
        await new Promise((resolve) => setTimeout(resolve, untilPauseMs))
      }
    },
    async namespace() {
      const object = { metadata: { generateName: 'contract-' } }
      const { body } = await send('POST', '/api/v1/namespaces', object)
      return String(body.metadata?.name)
    },
  }
}

const stamp = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g
const uid = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g

/** A value without what no two servers share: uids, versions, times. */
export function normal(value: unknown, key = ''): unknown {
  if (Array.isArray(value)) return value.map((item) => normal(item))
  if (isObject(value))
    return Object.fromEntries(Object.entries(value).map(([name, field]) => [name, normal(field, name)]))
  if (typeof value !== 'string') return value
  if (key === 'resourceVersion' && value !== '') return '<version>'
  return value.replace(stamp, '<time>').replace(uid, '<uid>')
}

/** The Status of a refusal, without its head, which is always the same. */
export function refusal({ code, body }: Answer): { code: number; reason?: string; message?: string } {
  if (body.kind !== 'Status') throw new Error(`${code} is no refusal: ${JSON.stringify(body)}`)
  return { code, ...(body.reason !== undefined && { reason: body.reason }), message: body.message ?? '' }
}
