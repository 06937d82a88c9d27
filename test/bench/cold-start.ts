import { spawn } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/**
 * `npm run bench:cold-start`: how long a function takes from its process's start until it listens, beside an empty HTTP
 * server of Node, and what memory it has then. Seconds depend on the machine: read the ratios. Processor time is less
 * disturbed by what else runs than the time on the wall.
 */

const root = join(import.meta.dirname, '..', '..')
const rounds = Number(process.argv[2] ?? 15)

interface Sample {
  wallMs: number
  cpuMs: number
  rssMiB: number
}

async function sample(args: string[], env: Record<string, string>): Promise<Sample> {
  const startMs = performance.now()
  const child = spawn(process.execPath, args, {
    env: { PATH: process.env.PATH, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()))
  let said = ''
  await new Promise<void>((resolve, reject) => {
    child.stdout.on('data', (chunk: Buffer) => {
      said += chunk.toString()
      if (said.includes('listening')) resolve()
    })
    ended.then(
      () => reject(new Error(`It ended before it listened: ${said}`)),
      () => {},
    )
  })
  const wallMs = performance.now() - startMs
  try {
    const [, rss] = /VmRSS:\s+(\d+)/.exec(await readFile(`/proc/${child.pid}/status`, 'utf8')) ?? []
    return { wallMs, cpuMs: await cpuMsOf(child.pid ?? 0), rssMiB: Number(rss) / 1024 }
  } finally {
    child.kill('SIGKILL')
    await ended
  }
}

/** The processor time of all threads of a process so far. */
async function cpuMsOf(pid: number): Promise<number> {
  let cpuMs = 0
  for (const thread of await readdir(`/proc/${pid}/task`)) {
    // One that has just ended is left out.
    const text = await readFile(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').catch(() => '0')
    cpuMs += Number(text.split(' ', 1)[0]) / 1e6
  }
  return cpuMs
}

function median(values: number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
}

const folder = await mkdtemp(join(tmpdir(), 'mutantops-bench-'))
const empty = join(folder, 'empty.mjs')
await writeFile(
  empty,
  `import { createServer } from 'node:http'
createServer((_, response) => response.end()).listen(0, '127.0.0.1', () => process.stdout.write('listening\\n'))`,
)
await writeFile(join(folder, 'token'), 'none')
const env = {
  HOST: '127.0.0.1',
  PORT: '0',
  K_SINK: 'http://127.0.0.1:9/',
  KUBERNETES_SERVICE_HOST: '127.0.0.1',
  KUBERNETES_SERVICE_PORT: '9',
  SERVICE_ACCOUNT_FOLDER: folder,
}
const subjects: Record<string, string[]> = {
  'empty HTTP server': [empty],
  ...Object.fromEntries(
    ['mutation', 'resync', 'dead-letter'].map((name) => [
      `${name}, bundled`,
      [join(root, 'dist/main.js'), name],
    ]),
  ),
  'mutation, from source': [join(root, 'functions/main.ts'), 'mutation'],
}

const samples = new Map<string, Sample[]>()
// In turns, so that what else the machine does falls on all alike.
for (let round = 0; round < rounds; round++)
  for (const [name, args] of Object.entries(subjects))
    samples.set(name, [...(samples.get(name) ?? []), await sample(args, env)])
await rm(folder, { recursive: true })

const middle = (name: string, field: keyof Sample) =>
  median((samples.get(name) ?? []).map((one) => one[field]))
const [base = ''] = Object.keys(subjects)
console.log(`Median of ${rounds}, Node ${process.version}\n`)
console.log('| | wall ms | × empty | CPU ms | × empty | RSS MiB | over empty |')
console.log('|---|--:|--:|--:|--:|--:|--:|')
for (const name of Object.keys(subjects)) {
  const [wall, cpu, rss] = (['wallMs', 'cpuMs', 'rssMiB'] as const).map((field) => middle(name, field))
  const cells = [
    wall?.toFixed(0),
    ((wall ?? 0) / middle(base, 'wallMs')).toFixed(2),
    cpu?.toFixed(0),
    ((cpu ?? 0) / middle(base, 'cpuMs')).toFixed(2),
    rss?.toFixed(1),
    ((rss ?? 0) - middle(base, 'rssMiB')).toFixed(1),
  ]
  console.log(`| ${name} | ${cells.join(' | ')} |`)
}
