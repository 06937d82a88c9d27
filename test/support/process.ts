import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

/** A function as a process of its own, as a cluster runs it. */
export interface FunctionProcess {
  child: ChildProcess
  port: number
  url: string
  /** The lines of its log, parsed. */
  lines: Record<string, unknown>[]
  /** Its exit code, or the name of the signal that ended it. */
  ended: Promise<number | string>
}

const sourceProgram = fileURLToPath(new URL('../../functions/main.ts', import.meta.url))

/**
 * Starts `node functions/main.ts NAME` (or another `program`) and waits until it listens or has ended. `before` stands
 * before `node`.
 */
export async function functionProcess(
  name: string,
  env: Record<string, string>,
  options: { before?: string[]; program?: string } = {},
): Promise<FunctionProcess> {
  const { before = [], program = sourceProgram } = options
  const [command = process.execPath, ...args] = [...before, process.execPath, program, name]
  const child = spawn(command, args, {
    env: { PATH: process.env.PATH, HOST: '127.0.0.1', PORT: '0', ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const lines: Record<string, unknown>[] = []
  const ended = new Promise<number | string>((resolve) => {
    child.on('close', (code, signal) => resolve(code ?? signal ?? 'unknown'))
  })
  const listening = new Promise<number>((resolve) => {
    createInterface({ input: child.stdout }).on('line', (line) => {
      const entry = JSON.parse(line)
      lines.push(entry)
      if (entry.msg === 'listening') resolve(entry.port)
    })
  })
  const port = await Promise.race([listening, ended.then(() => 0)])
  return { child, port, url: `http://127.0.0.1:${port}`, lines, ended }
}
