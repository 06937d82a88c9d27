import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'
import { systemClock } from '../../shared/clock.ts'
import { eventually } from '../support/eventually.ts'

export interface Line {
  [field: string]: unknown
  /** When it was read, on our monotonic clock in ms. */
  atMs: number
}

/** The example app as a process of its own. */
export interface Example {
  process: ChildProcess
  /** What it has said, a line of JSON each; the lines of its log are among them. */
  lines: Line[]
  /** Waits for a line with this field, beginning with line `from`. */
  says(field: string, from?: number, withinMs?: number): Promise<Line>
  get(path: string): Promise<Response>
  /** What it wrote to standard error. */
  errors(): string
  /** Resolves with the exit code. */
  ended: Promise<number | null>
}

export function startExample(env: Record<string, string>): Example {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'app.ts')], {
    env: { PATH: process.env.PATH, HOME: '/nowhere', PORT: '0', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let errors = ''
  child.stderr.on('data', (chunk: Buffer) => {
    errors += chunk.toString()
  })
  const lines: Line[] = []
  let rest = ''
  child.stdout.on('data', (chunk: Buffer) => {
    const parts = (rest + chunk.toString()).split('\n')
    rest = parts.pop() ?? ''
    for (const part of parts) lines.push({ ...JSON.parse(part), atMs: systemClock.monotonicMs() })
  })
  const ended = new Promise<number | null>((resolve) => child.on('close', resolve))
  const says = (field: string, from = 0, withinMs = 15_000) =>
    eventually(() => {
      const line = lines.slice(from).find((each) => field in each)
      if (!line) throw new Error(`It has not said "${field}": ${JSON.stringify(lines)} ${errors}`)
      return line
    }, withinMs)
  return {
    process: child,
    lines,
    says,
    ended,
    errors: () => errors,
    get: async (path) => fetch(`http://127.0.0.1:${(await says('port')).port}${path}`),
  }
}
