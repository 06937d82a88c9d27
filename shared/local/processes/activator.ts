import { Hono } from 'hono'
import { Agent, fetch as undiciFetch } from 'undici'
import type { Clock } from '../../clock.ts'
import type { ServiceSpec } from '../manifests/workloads.ts'
import type { Send } from './instance.ts'
import type { RunningProcess } from './process.ts'
import { type Revision, type RevisionReport, revision } from './revision.ts'

export interface ActivatorOptions {
  services: ServiceSpec[]
  clock: Clock
  /** Starts an instance of a service that will listen on `port`. */
  start(spec: ServiceSpec, port: number): RunningProcess
  report(report: RevisionReport): void
}

/** Stands before the functions: starts each on its first request and stops it when idle. */
export interface Activator {
  /** A request to the service as such. */
  fetch(namespace: string, name: string, path: string, init: RequestInit): Promise<Response>
  /** `ANY /NAMESPACE/NAME/…` is the same over HTTP. */
  app: Hono
  /** Name and pid of each function that takes requests now. */
  running(): { name: string; pid: number }[]
  /** Ends all processes. */
  stop(): Promise<void>
}

/** Longest request body taken from outside, in bytes: more than any function takes, so that its own 413 is seen. */
const bodyLengthMax = 8 * 1024 * 1024
/** What belongs to one connection and is not passed on (RFC 9110, 7.6.1). `expect` has been answered here. */
const hopByHop = new Set([
  'connection',
  'keep-alive',
  'transfer-encoding',
  'upgrade',
  'te',
  'host',
  'content-length',
  'expect',
])

export function activator(options: ActivatorOptions): Activator {
  const agent = new Agent({ connections: null, headersTimeout: 0, bodyTimeout: 0 })
  const send: Send = (url, init) =>
    undiciFetch(url, { ...init, dispatcher: agent } as Parameters<
      typeof undiciFetch
    >[1]) as unknown as Promise<Response>
  const revisions = new Map<string, Revision>()
  for (const spec of options.services) {
    const start = (port: number) => options.start(spec, port)
    const made = revision({ spec, start, send, clock: options.clock, report: options.report })
    revisions.set(`${spec.namespace}/${spec.name}`, made)
    if (spec.alwaysOn) made.warm().catch(() => {})
  }

  async function handle(namespace: string, name: string, path: string, init: RequestInit): Promise<Response> {
    const found = revisions.get(`${namespace}/${name}`)
    if (!found) return new Response(`There is no function ${namespace}/${name}`, { status: 404 })
    return found.handle(path, init)
  }

  return {
    fetch: handle,
    app: front(handle),
    running: () =>
      [...revisions].flatMap(([key, { pid }]) => {
        const running = pid()
        return running === undefined ? [] : [{ name: key.split('/')[1] ?? key, pid: running }]
      }),
    async stop() {
      await Promise.all([...revisions.values()].map((one) => one.stop()))
      await agent.destroy()
    },
  }
}

function front(handle: Activator['fetch']): Hono {
  const app = new Hono()
  app.all('/:namespace/:name/*', async (c) => {
    const { raw } = c.req
    const { namespace, name } = c.req.param()
    const url = new URL(raw.url)
    const rest = url.pathname.split('/').slice(3).join('/')
    const body = await readBody(raw)
    if (body === undefined) return c.text(`A body may have ${bodyLengthMax} bytes`, 413)
    const headers = Object.fromEntries([...raw.headers].filter(([header]) => !hopByHop.has(header)))
    const init = { method: raw.method, headers, signal: raw.signal, ...(body.length > 0 && { body }) }
    return handle(namespace, name, `/${rest}${url.search}`, init)
  })
  return app
}

async function readBody(request: Request): Promise<Uint8Array<ArrayBuffer> | undefined> {
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of request.body ?? []) {
    length += chunk.length
    if (length > bodyLengthMax) return undefined
    chunks.push(chunk)
  }
  return new Uint8Array(Buffer.concat(chunks))
}
