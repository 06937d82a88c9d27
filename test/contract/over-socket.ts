import { Agent, fetch } from 'undici'
import type { ApiServer } from '../../shared/apiserver/server.ts'
import type { Transport } from '../../shared/kube/client.ts'

export interface EmbeddedSocket {
  url: string
  /** Authenticated as admin. */
  transport: Transport
  /** The same wire without the token. */
  dispatch(url: string, init: RequestInit): Promise<Response>
}

/** Lets an embedded API listen on a free port, and gives the wire to it; the server's `stop` closes both ends. */
export async function overSocket(server: ApiServer): Promise<EmbeddedSocket> {
  const { url } = await server.listen()
  const { clusters } = server.kubeconfig(url) as {
    clusters: { cluster: { 'certificate-authority-data': string } }[]
  }
  const authority = clusters[0]?.cluster['certificate-authority-data'] ?? ''
  const dispatcher = new Agent({ connect: { ca: Buffer.from(authority, 'base64').toString() } })
  const dispatch = (path: string, init: RequestInit) =>
    fetch(path, { ...init, dispatcher } as Parameters<typeof fetch>[1]) as unknown as Promise<Response>
  const authorization = `Bearer ${server.token}`
  const transport: Transport = {
    baseUrl: url,
    fetch: (path, init) =>
      dispatch(path, { ...init, headers: { ...(init.headers as object), authorization } }),
  }
  return { url, transport, dispatch }
}
