import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import { type ServerType, serve } from '@hono/node-server'
import type { Context, Hono } from 'hono'

export interface Listening {
  url: string
  port: number
  close(): Promise<void>
}

/** Breaks the connection that a request came over; what it gives is never sent. */
function resetSocket(c: Context): Response {
  const { incoming } = c.env as { incoming: { socket: Socket } }
  incoming.socket.destroy()
  return new Response(null, { status: 500 })
}

/** Serves what `makeApp` makes over TLS. */
export async function listen(
  makeApp: (reset: (c: Context) => Response) => Hono,
  options: { port: number; host: string; identity: { key: string; certificate: string } },
): Promise<Listening> {
  const { port, host, identity } = options
  const { fetch } = makeApp(resetSocket)
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

/** A kubeconfig for a server at `url`, as an object. */
export function kubeconfig(url: string, token: string, certificate: string): object {
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
