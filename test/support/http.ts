import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'

/** A small HTTP server on a loopback port that was free, for tests of what talks over real sockets. */
export interface HttpServer {
  url: string
  port: number
  /** The requests it got, oldest first, bodies read. */
  requests: { method: string; url: string; headers: IncomingMessage['headers']; body: string }[]
  /** How many connections were opened. */
  connections(): number
  /** Ends every connection, in the middle of what it carries. */
  resetAll(): void
  close(): Promise<void>
}

/** `answer` may write, end, destroy the socket, or do nothing at all. */
export async function httpServer(
  answer: (request: HttpServer['requests'][number], response: ServerResponse) => unknown,
): Promise<HttpServer> {
  const requests: HttpServer['requests'] = []
  const sockets = new Set<Socket>()
  let opened = 0
  const server = createServer((incoming, response) => {
    let body = ''
    incoming.on('data', (chunk: Buffer) => {
      body += chunk.toString()
    })
    incoming.on('end', () => {
      const request = {
        method: incoming.method ?? '',
        url: incoming.url ?? '',
        headers: incoming.headers,
        body,
      }
      requests.push(request)
      answer(request, response)
    })
  })
  server.on('connection', (socket) => {
    opened++
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const resetAll = () => {
    for (const socket of sockets) socket.destroy()
  }
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    requests,
    connections: () => opened,
    resetAll,
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        resetAll()
      }),
  }
}

/** Answers with JSON. */
export function answerJson(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}
