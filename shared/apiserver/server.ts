import { randomBytes } from 'node:crypto'
import { type Clock, systemClock } from '../clock.ts'
import { apiApp } from './app.ts'
import { builtInResources } from './built-in.ts'
import type { ServerContext } from './context.ts'
import { collectGarbage } from './controllers/garbage.ts'
import { emptyNamespaces } from './controllers/namespaces.ts'
import { type RolloutOptions, rollOut } from './controllers/rollout.ts'
import { serveCrds } from './custom/crds.ts'
import { ConnectionReset, createFaults, type Faults } from './faults.ts'
import { selfSigned } from './http/certificate.ts'
import { kubeconfig, type Listening, listen } from './http/listen.ts'
import { journal, recover } from './journal.ts'
import { createObject } from './operations.ts'
import { createRegistry } from './resources.ts'
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
  /** How many changes of a collection a watch can be resumed over. Default 20,000. */
  historyLengthMax?: number
  /** A folder in which the objects outlive the process. Default: none. */
  dataFolder?: string
}

/** A wire to the server, as our client takes it. */
export interface InProcessTransport {
  baseUrl: string
  fetch(url: string, init: RequestInit): Promise<Response>
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
  /** Trouble on demand. */
  faults: Faults
  /** Forgets the history, as etcd does every few minutes: a watch from before is answered with 410. */
  compact(): void
  /** Ends every watch, as a server that restarts does; with its history `lost`, a watch from before is a 410. */
  restart(options?: { history?: 'kept' | 'lost' }): void
  /** Moves the clock that the server stamps with, by ms against the process's. */
  skew(ms: number): void
  /** Ends watches, controllers and sockets; safe to call twice. */
  stop(): Promise<void>
}

/** Where nobody listens: requests of the in-process transport never leave the process. */
const inProcessUrl = 'http://embedded.invalid'

/** Starts an embedded Kubernetes API with the four namespaces that every cluster has. */
export function apiServer(options: ApiServerOptions = {}): ApiServer {
  const token = options.token ?? randomBytes(24).toString('base64url')
  let skewMs = 0
  const real = options.clock ?? systemClock
  const clock: Clock = { ...real, now: () => new Date(real.now().getTime() + skewMs) }
  const { historyLengthMax, dataFolder } = options
  const recovered = dataFolder === undefined ? undefined : recover(dataFolder)
  const store = createStore({ historyLengthMax, ...(recovered && { recovered }) })
  const ctx: ServerContext = {
    store,
    registry: createRegistry(builtInResources()),
    clock,
    unwritten: new WeakSet(),
  }
  if (dataFolder !== undefined) store.subscribe('*', journal(dataFolder))
  const controllers = startControllers(ctx, options)
  createNamespaces(ctx)
  const faults = createFaults(clock.random)
  let watches = new AbortController()
  const shared = { faults, stop: () => watches.signal }
  const inProcess = apiApp(ctx, { ...shared, door: { token }, reset: resetInProcess })
  const fetch = async (request: Request) => unlessReset(await inProcess.fetch(request))
  const hosts = [...new Set(['127.0.0.1', '::1', 'localhost', ...(options.hosts ?? [])])]
  let identity: ReturnType<typeof selfSigned> | undefined
  const identify = () => {
    identity ??= selfSigned({ hosts, now: real.now() })
    return identity
  }
  const sockets = new Set<Listening>()
  return {
    token,
    faults,
    fetch,
    compact: () => store.compact(),
    restart({ history = 'kept' } = {}) {
      watches.abort()
      watches = new AbortController()
      if (history === 'lost') store.compact()
    },
    skew: (ms) => {
      skewMs = ms
    },
    transport: () => ({
      baseUrl: inProcessUrl,
      fetch: async (url, init) => {
        const request = new Request(url, init)
        request.headers.set('authorization', `Bearer ${token}`)
        request.signal.throwIfAborted()
        return untilAborted(await fetch(request), request)
      },
    }),
    async listen({ port = 0, host = '127.0.0.1' } = {}) {
      const door = { token, hosts }
      const app = (reset: Parameters<typeof apiApp>[1]['reset']) => apiApp(ctx, { ...shared, door, reset })
      const listening = await listen(app, { port, host, identity: identify() })
      sockets.add(listening)
      return listening
    },
    kubeconfig: (url) => kubeconfig(url, token, identify().certificate),
    async stop() {
      watches.abort()
      for (const end of controllers) end()
      await Promise.all([...sockets].map((socket) => socket.close()))
      sockets.clear()
    },
  }
}

function startControllers(ctx: ServerContext, options: ApiServerOptions): (() => void)[] {
  const delays = { delayMs: options.controllerDelayMs ?? 0 }
  return [
    serveCrds(ctx),
    collectGarbage(ctx, delays),
    emptyNamespaces(ctx, delays),
    ...(options.rollout === false ? [] : [rollOut(ctx, options.rollout ?? {})]),
  ]
}

function createNamespaces(ctx: ServerContext): void {
  const namespaces = ctx.registry.find('', 'v1', 'namespaces')
  for (const name of ['default', 'kube-node-lease', 'kube-public', 'kube-system']) {
    if (!namespaces || ctx.store.get('namespaces', name)) continue
    const object = { apiVersion: 'v1', kind: 'Namespace', metadata: { name } }
    createObject(ctx, namespaces, undefined, object, { manager: 'kube-apiserver' })
  }
}

/** Where there is no connection to break, the answer says that it is none. */
const resetHeader = 'x-connection-reset'

function resetInProcess(): Response {
  return new Response(null, { status: 500, headers: { [resetHeader]: 'true' } })
}

/** Throws as `fetch` does for a broken connection. */
function unlessReset(response: Response): Response {
  if (!response.headers.has(resetHeader)) return response
  throw new TypeError('fetch failed', { cause: new ConnectionReset('the connection was reset') })
}

/** A watch ends when its client gives up, as when a connection is closed. */
function untilAborted(response: Response, { url, signal }: Request): Response {
  if (!response.body || !/[?&]watch=|\/watch\//.test(url)) return response
  return new Response(response.body.pipeThrough(new TransformStream(), { signal }), response)
}
