import { Agent, type IncomingMessage, type RequestOptions, request as requestPlain } from 'node:http'
import { request as requestTls, Agent as TlsAgent } from 'node:https'
import { Readable } from 'node:stream'

/** What a TLS connection shows and checks. */
export interface Tls {
  ca?: string | Buffer | (string | Buffer)[]
  cert?: string | Buffer
  key?: string | Buffer
  servername?: string
  rejectUnauthorized?: boolean
}

/** `fetch` as far as this project sends requests: text bodies, absolute URLs. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>

/** Connections that are kept between requests. */
export interface HttpPool {
  fetch: Fetch
  /** Keeps no connection any longer; what is in flight ends in peace. */
  retire(): void
  /** Closes all connections; what is in flight fails. */
  destroy(): void
}

/** Above the 4 or 5 s that are common, so that a warm function does not shake hands anew for each event, in ms. */
const keptForMs = 30_000
/** When a quiet connection is first asked whether it still stands, in ms. */
const keepAliveProbeMs = 30_000

/**
 * Makes a {@link HttpPool} over Node's own HTTP client, HTTP/1.1. It is used rather than a `fetch` of a library because
 * it is there already wherever something is served: the latter costs a parser in WebAssembly, some 20 MiB and a tenth of
 * a second at each cold start. Redirects are not followed: with `redirect: 'error'` they are an error, else an answer. The
 * proxy variables of the environment are not followed either.
 */
export function httpPool(tls: Tls = {}): HttpPool {
  const kept = { keepAlive: true, keepAliveMsecs: keepAliveProbeMs, timeout: keptForMs }
  const agents = { 'http:': new Agent(kept), 'https:': new TlsAgent({ ...kept, ...tls }) }
  const all = Object.values(agents)

  return {
    fetch: (url, init) => {
      const { protocol } = new URL(url)
      if (protocol === 'https:') return send(requestTls, url, { agent: agents[protocol] }, init)
      if (protocol === 'http:') return send(requestPlain, url, { agent: agents[protocol] }, init)
      return Promise.reject(new TypeError(`Cannot fetch over ${protocol}`))
    },
    retire() {
      for (const agent of all) {
        Object.assign(agent, { keepAlive: false })
        for (const sockets of Object.values(agent.freeSockets))
          for (const socket of sockets ?? []) socket.destroy()
      }
    },
    destroy() {
      for (const agent of all) agent.destroy()
    },
  }
}

function send(
  request: typeof requestPlain | typeof requestTls,
  url: string,
  options: RequestOptions,
  init: RequestInit,
): Promise<Response> {
  const { signal, method = 'GET' } = init
  const body = bodyOf(init)
  const headers = Object.fromEntries(new Headers(init.headers))
  if (body !== undefined) headers['content-length'] = String(body.byteLength)
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted()
    const outgoing = request(url, { ...options, method, headers })
    let answer: IncomingMessage | undefined
    const onAbort = () => {
      // The answer first, so that whoever reads its body learns the reason and not only that it broke off.
      answer?.destroy(signal?.reason)
      outgoing.destroy(signal?.reason)
    }
    signal?.addEventListener('abort', onAbort, { once: true })
    outgoing.on('close', () => signal?.removeEventListener('abort', onAbort))
    outgoing.on('error', reject)
    outgoing.on('response', (incoming) => {
      answer = incoming
      // Whoever reads the body learns of it there; a body that nobody reads must not end the process.
      incoming.on('error', () => {})
      const status = incoming.statusCode ?? 0
      const isRedirect = incoming.headers.location !== undefined && status >= 300 && status < 400
      if (isRedirect && init.redirect === 'error') {
        incoming.destroy()
        reject(new TypeError('The answer is a redirect, and none is followed'))
      } else resolve(responseOf(incoming))
    })
    outgoing.end(body)
  })
}

function bodyOf({ body }: RequestInit): Buffer | undefined {
  if (body === undefined || body === null) return undefined
  if (typeof body === 'string') return Buffer.from(body)
  if (body instanceof Uint8Array) return Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  throw new TypeError('Only text and bytes can be sent')
}

const withoutBody = new Set([204, 205, 304])

function responseOf(incoming: IncomingMessage): Response {
  const headers = new Headers()
  for (let index = 0; index + 1 < incoming.rawHeaders.length; index += 2)
    headers.append(incoming.rawHeaders[index] ?? '', incoming.rawHeaders[index + 1] ?? '')
  const status = incoming.statusCode ?? 0
  if (withoutBody.has(status)) {
    incoming.resume()
    return new Response(null, { status, headers })
  }
  return new Response(Readable.toWeb(incoming) as ReadableStream, { status, headers })
}
