import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { getRequestListener } from '@hono/node-server'
import { type Clock, withTimeout } from '../shared/clock.ts'

export interface Served {
  port: number
  url: string
  /**
   * Stops: takes no new connection, closes those that are idle at once, lets what is in flight end and closes its
   * connection with the answer. Resolves when all is closed, with false if that took longer than `withinMs` and what
   * was left was cut. A second call waits for the first.
   */
  drain(options: { withinMs: number }): Promise<boolean>
}

export interface ServeOptions {
  app: { fetch(request: Request): Response | Promise<Response> }
  /** 0 takes any free one. */
  port: number
  host?: string | undefined
  clock: Clock
}

/** A sender gets so long for its request's headers, and for the whole of it, in ms. */
const headersTimeoutMs = 20_000
const requestTimeoutMs = 30_000
/** Longer than what usually stands in front (an activator or a queue-proxy) keeps its idle connections, in ms. */
const keepAliveTimeoutMs = 95_000

/** Serves an app over HTTP. Rejects when the port cannot be had. */
export async function serve({ app, port, host, clock }: ServeOptions): Promise<Served> {
  const inFlight = new Set<ServerResponse>()
  let drained: Promise<boolean> | undefined
  const listener = getRequestListener((request) => app.fetch(request), {
    overrideGlobalObjects: false,
    // A sender that hung up is no error of ours.
    errorHandler: () => new Response(null, { status: 400 }),
  })
  const server = createServer({
    headersTimeout: headersTimeoutMs,
    requestTimeout: requestTimeoutMs,
    keepAliveTimeout: keepAliveTimeoutMs,
  })
  let onIdle = () => {}
  server.on('request', (request, response) => {
    inFlight.add(response)
    if (drained) response.setHeader('connection', 'close')
    response.on('close', () => {
      inFlight.delete(response)
      if (inFlight.size === 0) onIdle()
    })
    listener(request, response).catch(() => response.destroy())
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, resolve)
  })
  const address = server.address() as AddressInfo

  async function drainNow(withinMs: number): Promise<boolean> {
    const closed = new Promise<void>((resolve) => server.close(() => resolve()))
    server.closeIdleConnections()
    for (const response of inFlight) if (!response.headersSent) response.setHeader('connection', 'close')
    const idle = new Promise<void>((resolve) => {
      onIdle = resolve
      if (inFlight.size === 0) resolve()
    })
    const inTime = await withTimeout(clock, withinMs, 'Draining', () => idle).then(
      () => true,
      () => false,
    )
    // What is left was never a whole request, or had its time.
    server.closeAllConnections()
    await closed
    return inTime
  }

  return {
    port: address.port,
    url: `http://127.0.0.1:${address.port}`,
    drain({ withinMs }) {
      drained ??= drainNow(withinMs)
      return drained
    },
  }
}
