import { connect, type Socket } from 'node:net'

/** A connection that sends what it is told, byte for byte, and keeps what comes back. */
export interface RawConnection {
  write(text: string | Buffer): void
  /** Hangs up at once, without a word (RST where the system does so). */
  cut(): void
  /** All that has come so far. */
  received(): string
  /** Resolves when the other side has closed. */
  closed: Promise<void>
  socket: Socket
}

export async function rawConnection(port: number): Promise<RawConnection> {
  const socket = connect(port, '127.0.0.1')
  let text = ''
  socket.on('data', (chunk: Buffer) => {
    text += chunk.toString('latin1')
  })
  socket.on('error', () => {})
  const closed = new Promise<void>((resolve) => socket.on('close', () => resolve()))
  await new Promise<void>((resolve, reject) => {
    socket.once('connect', resolve)
    socket.once('error', reject)
  })
  return {
    write: (data) => void socket.write(data),
    cut: () => socket.resetAndDestroy(),
    received: () => text,
    closed,
    socket,
  }
}

/** Sends one request as it stands, waits until the other side closes, and gives the answer as it stands. */
export async function exchange(port: number, request: string | Buffer): Promise<string> {
  const connection = await rawConnection(port)
  connection.write(request)
  await connection.closed
  return connection.received()
}

/** The status of a raw answer; 0 when there was none. */
export function statusOf(answer: string): number {
  return Number(/^HTTP\/1\.1 (\d{3})/.exec(answer)?.[1] ?? 0)
}

/** The body of a raw answer. */
export function rawBodyOf(answer: string): string {
  return answer.slice(answer.indexOf('\r\n\r\n') + 4)
}
