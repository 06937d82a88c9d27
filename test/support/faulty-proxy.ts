import type { AddressInfo, Socket } from 'node:net'
import { type ServerType, serve } from '@hono/node-server'
import { ConnectionReset, type Trouble, withTrouble } from '../../shared/apiserver/faults.ts'
import { systemClock } from '../../shared/clock.ts'
import type { Transport } from '../../shared/kube/client.ts'

export interface FaultyProxy {
  url: string
  close(): Promise<void>
}

/**
 * A way to an API server over plain HTTP on which requests meet trouble: `troubles` is asked for each. A request whose
 * sender is gone reaches the server all the same.
 */
export async function faultyProxy(
  under: Transport,
  troubles: (request: { method: string; isWatch: boolean }) => Trouble[],
): Promise<FaultyProxy> {
  async function handle(request: Request, env: { incoming: { socket: Socket } }): Promise<Response> {
    const { method, signal } = request
    const { pathname, search, searchParams } = new URL(request.url)
    const isWatch = searchParams.has('watch')
    const body = method === 'GET' ? null : await bodyOf(request)
    if (body === undefined) return new Response(null, { status: 400 })
    const headers = new Headers()
    for (const name of ['accept', 'content-type', 'user-agent']) {
      const value = request.headers.get(name)
      if (value !== null) headers.set(name, value)
    }
    const met = troubles({ method, isWatch })
    const refusal = met.find((trouble) => 'status' in trouble)
    if (refusal && 'status' in refusal) return refused(refusal.status)
    try {
      return await withTrouble(systemClock, met, new AbortController().signal, async () => {
        const url = `${under.baseUrl}${pathname}${search}`
        const answer = await under.fetch(url, { method, headers, body, ...(isWatch && { signal }) })
        const type = answer.headers.get('content-type') ?? 'application/json'
        const events =
          isWatch && answer.body ? ReadableStream.from(untilGone(answer.body, signal)) : answer.body
        return new Response(events as typeof answer.body, {
          status: answer.status,
          headers: { 'content-type': type },
        })
      })
    } catch (error) {
      if (!(error instanceof ConnectionReset)) throw error
      env.incoming.socket.destroy()
      return new Response(null, { status: 500 })
    }
  }
  const server = await new Promise<ServerType>((resolve) => {
    const starting: ServerType = serve(
      { fetch: handle as never, port: 0, hostname: '127.0.0.1', overrideGlobalObjects: false },
      () => resolve(starting),
    )
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      if ('closeAllConnections' in server) server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** The events of a watch for as long as somebody listens. */
async function* untilGone(
  events: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  try {
    yield* events
  } catch (error) {
    if (!signal.aborted) throw error
  }
}

/** Undefined when its sender was gone before the end. */
async function bodyOf(request: Request): Promise<Buffer | undefined> {
  try {
    return Buffer.from(await request.arrayBuffer())
  } catch {
    return undefined
  }
}

function refused(code: number): Response {
  const status = { kind: 'Status', apiVersion: 'v1', status: 'Failure', code, message: 'trouble', reason: '' }
  return Response.json(status, { status: code })
}
