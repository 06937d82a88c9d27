import { type ChildProcess, spawn } from 'node:child_process'
import { createWriteStream } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

/** A process of the control plane; what it writes goes to `<name>.log` in the cluster's folder. */
export interface Process {
  name: string
  pid: number
  /** Resolves when it has ended. */
  ended: Promise<void>
  hasEnded(): boolean
  /** The last lines of its log, for an error message. */
  tail(): string
  /** SIGTERM, and SIGKILL when it has not ended after `withinMs`. */
  stop(withinMs?: number): Promise<void>
}

/**
 * Starts processes that cannot outlive this one: a guard in its own session reads their ids from a pipe and, when the
 * pipe closes before it was dismissed (this process crashed, was killed, or left without cleaning up), ends them by id
 * and removes the folder.
 */
export function processGroup(folder: string) {
  const script =
    'pids=; while read -r line; do case $line in done) exit 0;; *) pids="$pids $line";; esac; done; ' +
    'for pid in $pids; do kill -9 "$pid"; done; sleep 0.2; rm -rf "$1"'
  const guard = spawn('sh', ['-c', script, 'sh', folder], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  guard.unref()
  guard.stdin.on('error', () => {})

  return {
    start(name: string, path: string, args: string[]): Process {
      const child = spawn(path, args, { stdio: ['ignore', 'pipe', 'pipe'] })
      guard.stdin.write(`${child.pid}\n`)
      return processOf(name, child, join(folder, `${name}.log`))
    },
    /** To be called when every process has ended. */
    dismiss(): void {
      guard.stdin.end('done\n')
    },
  }
}

function processOf(name: string, child: ChildProcess, logPath: string): Process {
  let tail = ''
  const log = createWriteStream(logPath)
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', (chunk: Buffer) => {
      log.write(chunk)
      tail = (tail + chunk.toString()).slice(-3_000)
    })
  let over = false
  const ended = new Promise<void>((resolve) => {
    child.on('error', (error) => {
      tail += error.message
      over = true
      resolve()
    })
    child.on('close', () => {
      over = true
      log.end()
      resolve()
    })
  })
  return {
    name,
    pid: child.pid ?? 0,
    ended,
    hasEnded: () => over,
    tail: () => tail,
    async stop(withinMs = 5_000) {
      if (over) return
      child.kill('SIGTERM')
      const timer = new AbortController()
      await Promise.race([ended, sleep(withinMs, undefined, { signal: timer.signal }).catch(() => {})])
      timer.abort()
      if (!over) child.kill('SIGKILL')
      await ended
    },
  }
}

/** A port of the loopback address that was free a moment ago. */
export async function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.on('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      const port = typeof address === 'object' && address ? address.port : 0
      server.close(() => resolve(port))
    })
  })
}
