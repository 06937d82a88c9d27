import { randomBytes } from 'node:crypto'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { type ServerType, serve } from '@hono/node-server'
import { type Clock, systemClock } from '../clock.ts'
import { apiApp } from './app.ts'
import { builtInResources } from './built-in.ts'
import { selfSigned } from './certificate.ts'
import { serveCrds } from './crds.ts'
import { collectGarbage } from './garbage.ts'
import { emptyNamespaces } from './namespaces.ts'
import { createObject } from './operations.ts'
import { createRegistry } from './resources.ts'
import { type RolloutOptions, rollOut } from './rollout.ts'
import { createStore } from './store.ts'

export interface ApiServerOptions {
  clock?: Clock
  /** What a client must show as its bearer token. Default: a random one. */
  token?: string
  /** Names and addresses by which the server may be called besides localhost. */
  hosts?: readonly string[]
  /** How Deployments get ready; false leaves them to somebody else. */
  rollout?: RolloutOptions | false
  /** How long after a change garbage is collected and namespaces are emptied, in ms. Default 0: at once. */
  controllerDelayMs?: number
  /** How many changes of a collection a watch can be resumed over. */
  historyLengthMax?: number
}

/** A wire to the server, as our client takes it. */
export interface InProcessTransport {
  baseUrl: string
  fetch(url: string, init: RequestInit): Promise<Response>
}

export interface Listening {
  url: string
  port: number
  close(): Promise<void>
}

/** An embedded Kubernetes API. */
export interface ApiServer {
  /** Answers one request as the server would over HTTP; it needs the token like any other. */
  fetch(request: Request): Promise<Response>
  /** In process and authenticated as admin. */
  transport(): InProcessTransport
  /** Serves on a socket, by default on a free port of 127.0.0.1. */
  listen(options?: { port?: number; host?: string }): Promise<Listening>
  token: string
  /** A kubeconfig (as an object) for a server that listens at `url`. */
  kubeconfig(url: string): object
  /** Ends watches, controllers and sockets; safe to call twice. */
  stop(): Promise<void>
}

/** Where nobody listens: requests of the in-process transport never leave the process. */
const inProcessUrl = 'http://embedded.invalid'

/** Starts an embedded Kubernetes API with the four namespaces that every cluster has. */
export function apiServer(options: ApiServerOptions = {}): ApiServer {
  const clock = options.clock ?? systemClock
  const token = options.token ?? randomBytes(24).toString('base64url')
  const store = createStore(
    options.historyLengthMax === undefined ? {} : { historyLengthMax: options.historyLengthMax },
  )
  const registry = createRegistry(builtInResources())
  const ctx = { store, registry, clock }
  const stopping = new AbortController()
  const delays = { delayMs: options.controllerDelayMs ?? 0 }
  const controllers = [
    serveCrds(ctx),
    collectGarbage(ctx, delays),
    emptyNamespaces(ctx, delays),
    ...(options.rollout === false ? [] : [rollOut(ctx, options.rollout ?? {})]),
  ]
  const namespaces = registry.find('', 'v1', 'namespaces')
  for (const name of ['default', 'kube-node-lease', 'kube-public', 'kube-system'])
    if (namespaces)
      createObject(
        ctx,
        namespaces,
        undefined,
        { apiVersion: 'v1', kind: 'Namespace', metadata: { name } },
        { manager: 'kube-apiserver' },
      )
  const inProcess = apiApp(ctx, { door: { token }, stop: stopping.signal })
  const hosts = [...new Set(['127.0.0.1', '::1', 'localhost', ...(options.hosts ?? [])])]
  let identity: ReturnType<typeof selfSigned> | undefined
  const identify = () => (identity ??= selfSigned({ hosts, now: clock.now() }))
  const sockets = new Set<Listening>()
  return {
    token,
    fetch: async (request) => inProcess.fetch(request),
    transport: () => ({
      baseUrl: inProcessUrl,
      fetch: async (url, init) => {
        const request = new Request(url, init)
        request.headers.set('authorization', `Bearer ${token}`)
        return answerUntilAborted(inProcess.fetch(request), request.signal)
      },
    }),
    async listen({ port = 0, host = '127.0.0.1' } = {}) {
      const app = apiApp(ctx, { door: { token, hosts }, stop: stopping.signal })
      const listening = await listen(app.fetch, { port, host, identity: identify() })
      sockets.add(listening)
      return listening
    },
    kubeconfig: (url) => kubeconfig(url, token, identify().certificate),
    async stop() {
      stopping.abort()
      for (const end of controllers) end()
      await Promise.all([...sockets].map((socket) => socket.close()))
      sockets.clear()
    },
  }
}

/** A client that gives up is not kept waiting, and its watch ends, as when a connection is closed. */
async function answerUntilAborted(
  answering: Response | Promise<Response>,
  signal: AbortSignal,
): Promise<Response> {
  signal.throwIfAborted()
  const response = await answering
  if (!response.body) return response
  const body = response.body.pipeThrough(new TransformStream(), { signal })
  return new Response(body, response)
}

async function listen(
  fetch: (request: Request) => Response | Promise<Response>,
  options: { port: number; host: string; identity: { key: string; certificate: string } },
): Promise<Listening> {
  const { port, host, identity } = options
  const server = await new Promise<ServerType>((resolve, reject) => {
    const starting: ServerType = serve(
      {
        fetch,
        port,
        hostname: host,
        overrideGlobalObjects: false,
        createServer: createTlsServer,
        serverOptions: { key: identity.key, cert: identity.certificate },
      },
      () => resolve(starting),
    )
    starting.once('error', reject)
  })
  const address = server.address() as AddressInfo
  return {
    url: `https://${host.includes(':') ? `[${host}]` : host}:${address.port}`,
    port: address.port,
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        if ('closeAllConnections' in server) server.closeAllConnections()
      }),
  }
}

function kubeconfig(url: string, token: string, certificate: string): object {
  const name = 'mutantops'
  const authority = Buffer.from(certificate).toString('base64')
  return {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name, cluster: { server: url, 'certificate-authority-data': authority } }],
    users: [{ name, user: { token } }],
    contexts: [{ name, context: { cluster: name, user: name, namespace: 'default' } }],
    'current-context': name,
  }
}
