import { spawn } from 'node:child_process'
import { createServer } from 'node:net'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { Clock } from '../../clock.ts'

/** What to start: a Node program with its arguments. */
export interface Command {
  args: string[]
  env: Record<string, string | undefined>
}

/** How a process ended. */
export interface Exit {
  code: number | null
  signal: string | null
}

export interface RunningProcess {
  pid: number
  /** Resolves when it has ended. */
  exited: Promise<Exit>
  /** Whether it has ended. */
  hasExited(): boolean
  /** SIGTERM, and SIGKILL when it is not gone `withinMs` later. A second call waits for the first. */
  stop(withinMs: number): Promise<Exit>
}

const tether = fileURLToPath(new URL('./tether.ts', import.meta.url))

/**
 * Starts Node with `command`, in a process group of its own, so that a Ctrl-C reaches only the runner, which ends its
 * processes in order; bound to this process by {@link tether}. Each line that it prints goes to `onLine`.
 */
export function startProcess(command: Command, clock: Clock, onLine: (line: string) => void): RunningProcess {
  const child = spawn(process.execPath, ['--import', tether, ...command.args], {
    env: command.env,
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    detached: true,
  })
  for (const stream of [child.stdout, child.stderr])
    if (stream) createInterface({ input: stream }).on('line', onLine)
  let ended: Exit | undefined
  let stopping: Promise<Exit> | undefined
  const exited = new Promise<Exit>((resolve) => {
    const end = (exit: Exit) => {
      ended ??= exit
      resolve(ended)
    }
    child.once('exit', (code, signal) => end({ code, signal }))
    child.once('error', (error) => {
      onLine(`Cannot start: ${error.message}`)
      end({ code: null, signal: null })
    })
  })

  async function stopNow(withinMs: number): Promise<Exit> {
    if (ended) return ended
    child.kill('SIGTERM')
    const done = new AbortController()
    clock.sleep(withinMs, done.signal).then(
      () => child.kill('SIGKILL'),
      () => {},
    )
    const exit = await exited
    done.abort()
    return exit
  }

  return {
    pid: child.pid ?? 0,
    exited,
    hasExited: () => ended !== undefined,
    stop(withinMs) {
      stopping ??= stopNow(withinMs)
      return stopping
    },
  }
}

/** A port of the loopback interface that was free a moment ago. */
export async function freePort(): Promise<number> {
  const server = createServer()
  const port = await new Promise<number>((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      if (address && typeof address === 'object') resolve(address.port)
    })
  })
  await new Promise((resolve) => server.close(resolve))
  return port
}
