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
  /** What Ctrl-C in a terminal does: npm and what it runs get a SIGINT. Only for a run in a group of its own. */
  pressCtrlC(): void
  /** Closes the pipe that it prints to, as `head` does; its errors are still read. */
  stopReading(): void
  exited: Promise<{ code: number | null; signal: string | null }>
}

/** Starts `npm start -- …args` in the repository; in a process group of its own, as a shell does, if so asked. */
export function npmStart(
  args: string[],
  env: Record<string, string> = {},
  { hasOwnGroup = false } = {},
): NpmStart {
  const child = spawn('npm', ['start', '--', ...args], {
    cwd: root,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: hasOwnGroup,
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
    pressCtrlC: () => void (child.pid !== undefined && process.kill(-child.pid, 'SIGINT')),
    stopReading: () => void child.stdout.destroy(),
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
