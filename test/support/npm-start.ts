import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../../', import.meta.url))

/** A run of `npm start`, as a user's. */
export interface NpmStart {
  /** All that it has printed so far. */
  output(): string
  /** The pids of the processes that it said it started. */
  pids(): number[]
  kill(signal: NodeJS.Signals): void
  exited: Promise<{ code: number | null; signal: string | null }>
}

/** Starts `npm start -- …args` in the repository. */
export function npmStart(args: string[], env: Record<string, string> = {}): NpmStart {
  const child = spawn('npm', ['start', '--', ...args], {
    cwd: root,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let text = ''
  const take = (data: Buffer) => {
    text += data.toString()
  }
  child.stdout.on('data', take)
  child.stderr.on('data', take)
  return {
    output: () => text,
    pids: () => [...new Set([...text.matchAll(/\(pid (\d+)\)/g)].map(([, pid]) => Number(pid)))],
    kill: (signal) => child.kill(signal),
    // `close`: when all that it and its children had to print has come.
    exited: new Promise((resolve) => child.once('close', (code, signal) => resolve({ code, signal }))),
  }
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}
