import type { AddressInfo } from 'node:net'
import { type ServerType, serve } from '@hono/node-server'

export interface Listening {
  url: string
  close(): Promise<void>
}

interface App {
  fetch(request: Request): Response | Promise<Response>
}

const loopback = '127.0.0.1'
const ownHosts = /^(127\.0\.0\.1|localhost|\[::1\])(:\d+)?$/

/**
 * Serves an app on a free port of the loopback interface. A request with an `Origin` or with another `Host` comes from
 * a web page that the user happens to look at, and is refused.
 */
export async function listenLocally(app: App): Promise<Listening> {
  const guarded = (request: Request) => (isForeign(request) ? refusal() : app.fetch(request))
  const server = await new Promise<ServerType>((resolve, reject) => {
    const starting: ServerType = serve(
      { fetch: guarded, port: 0, hostname: loopback, overrideGlobalObjects: false },
      () => resolve(starting),
    )
    starting.once('error', reject)
  })
  const { port } = server.address() as AddressInfo
  return {
    url: `http://${loopback}:${port}`,
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        if ('closeAllConnections' in server) server.closeAllConnections()
      }),
  }
}

function isForeign(request: Request): boolean {
  return request.headers.has('origin') || !ownHosts.test(request.headers.get('host') ?? '')
}

function refusal(): Response {
  return new Response('Only for programs on this machine\n', { status: 403 })
}
