import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Command } from 'commander'
import { systemClock } from '../clock.ts'
import { version } from '../version.ts'
import { sourceProgram } from './processes/launch.ts'
import { look } from './session/look.ts'
import { session } from './session/session.ts'
import { terminal } from './session/terminal.ts'

/** The command behind `npm start`. */

interface Flags {
  exitWhenReady?: true
  kubeconfig?: string
  context?: string
  samples: boolean
  built?: true
  folder: string
  data?: string
  tape?: string
}

/** Ctrl-C reaches this process from the terminal and once more from npm, which passes it on: within this time, in ms, it is one. */
const onceWithinMs = 500

const root = fileURLToPath(new URL('../../', import.meta.url))

const command = new Command('mutantops')
  .description(
    'Runs the operator on this machine: an embedded Kubernetes API, an embedded Knative and the samples.',
  )
  .version(version)
  .option('--exit-when-ready', 'end with 0 once both samples are Ready, with 1 after 60 s')
  .option('--kubeconfig <file>', 'use the cluster of this kubeconfig in place of the embedded API')
  .option('--context <name>', 'use this context (of --kubeconfig, else of KUBECONFIG or ~/.kube/config)')
  .option('--no-samples', 'apply no samples')
  .option('--data <folder>', 'keep the objects of the embedded API there, for the next run')
  .option('--tape <file>', 'record the events that the broker accepts there (default: TAPE)')
  .option('--built', 'run the bundles in dist/ (npm run build) in place of the sources')
  .option('--folder <folder>', 'where kubeconfig and logs go', resolve(root, '.mutantops'))

async function main(): Promise<number> {
  const flags = command.parse().opts<Flags>()
  const cluster =
    flags.kubeconfig || flags.context ? { kubeconfig: flags.kubeconfig, context: flags.context } : undefined
  if (cluster && flags.data)
    throw new Error('--data is for the embedded API; a cluster keeps its objects itself')
  const program = flags.built ? resolve(root, 'dist/main.js') : sourceProgram
  if (!existsSync(program)) throw new Error(`${program} is not there: npm run build`)
  const ending = untilEnded()
  const isTerminal = process.stdout.isTTY === true && process.env.TERM !== 'dumb'
  return session({
    cluster,
    samples: flags.samples,
    exitWhenReady: flags.exitWhenReady === true,
    root,
    folder: resolve(flags.folder),
    dataFolder: flags.data && resolve(flags.data),
    tape: flags.tape ?? (process.env.TAPE || undefined),
    program,
    env: process.env,
    clock: systemClock,
    look: look(isTerminal && !process.env.NO_COLOR),
    terminal: terminal(
      (text) => process.stdout.write(text),
      () => (isTerminal ? process.stdout.columns || 80 : undefined),
    ),
    signal: ending,
  })
}

/**
 * Aborted by the first signal, and when nobody reads what is printed (`npm start | head`). Asked again by a signal, the
 * process ends at once; what it started then ends by itself.
 */
function untilEnded(): AbortSignal {
  const ending = new AbortController()
  let askedMs = 0
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.on(signal, () => {
      if (!ending.signal.aborted) askedMs = systemClock.monotonicMs()
      else if (systemClock.monotonicMs() - askedMs > onceWithinMs) process.exit(130)
      ending.abort(new Error(signal))
    })
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE' && !ending.signal.aborted) process.stderr.write(`${error.message}\n`)
    ending.abort(error)
  })
  return ending.signal
}

main().then(
  (code) => {
    process.exitCode = code
  },
  (error: unknown) => {
    process.stderr.write(`${error instanceof Error ? error.message : error}\n`)
    process.exitCode = 1
  },
)
