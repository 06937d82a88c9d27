import { spawn } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { apiServer } from '../../shared/apiserver/server.ts'
import { systemClock } from '../../shared/clock.ts'
import { objectEvent } from '../../shared/cloudevents/envelope.ts'
import { binaryOf } from '../../shared/cloudevents/write.ts'
import { apiVersion, mutations, ownerLabel } from '../../shared/kinds/mutants.ts'
import { deployments } from '../../shared/kinds/object.ts'
import { kubeClient } from '../../shared/kube/client.ts'
import { mutation } from '../support/builders.ts'
import { installCrds } from '../support/crds.ts'

/**
 * `npm run bench:cold-start`: how long a function takes from its process's start until it listens, and until its first
 * request is answered (a Mutation of three variants reconciled from nothing, on the embedded API in this process), beside an
 * empty HTTP server of Node; and what memory it has then. Seconds depend on the machine: read the ratios. Processor time is
 * less disturbed by what else runs than the time on the wall.
 */

const root = join(import.meta.dirname, '..', '..')
const rounds = Number(process.argv[2] ?? 15)

interface Sample {
  wallMs: number
  /** Until the first request was answered; NaN where none was sent. */
  firstMs: number
  cpuMs: number
  rssMiB: number
}

async function sample({ args, first }: Subject, env: Record<string, string>): Promise<Sample> {
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
      if (/listening[^\n]*\n/.test(said)) resolve()
    })
    ended.then(
      () => reject(new Error(`It ended before it listened: ${said}`)),
      () => {},
    )
  })
  const wallMs = performance.now() - startMs
  try {
    await first?.(Number(/"port":(\d+)/.exec(said)?.[1]))
    const firstMs = first ? performance.now() - startMs : Number.NaN
    const [, rss] = /VmRSS:\s+(\d+)/.exec(await readFile(`/proc/${child.pid}/status`, 'utf8')) ?? []
    return { wallMs, firstMs, cpuMs: await cpuMsOf(child.pid ?? 0), rssMiB: Number(rss) / 1024 }
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

const server = apiServer({ rollout: false })
const client = kubeClient({ transport: server.transport(), clock: systemClock, userAgent: 'bench' })
await installCrds(client)
const { url } = await server.listen()
const [{ cluster }] = (server.kubeconfig(url) as { clusters: [{ cluster: Record<string, string> }] }).clusters

const folder = await mkdtemp(join(tmpdir(), 'mutantops-bench-'))
const empty = join(folder, 'empty.mjs')
await writeFile(
  empty,
  `import { createServer } from 'node:http'
const server = createServer((_, response) => response.end()).listen(0, '127.0.0.1', () =>
  process.stdout.write(\`"port":\${server.address().port} listening\\n\`))`,
)
await writeFile(join(folder, 'token'), server.token)
await writeFile(join(folder, 'ca.crt'), Buffer.from(cluster['certificate-authority-data'] ?? '', 'base64'))
const env = {
  HOST: '127.0.0.1',
  PORT: '0',
  K_SINK: 'http://127.0.0.1:9/',
  KUBERNETES_SERVICE_HOST: new URL(url).hostname,
  KUBERNETES_SERVICE_PORT: new URL(url).port,
  SERVICE_ACCOUNT_FOLDER: folder,
}

interface Subject {
  args: string[]
  /** Sends the first request, and resolves when it is answered as it should be. */
  first?(port: number): Promise<void>
}

let objects = 0
/** Has a new Mutation reconciled. */
async function reconcileOne(port: number): Promise<void> {
  const name = `web-${objects++}`
  const object = mutation(name).with('red', 1).with('green', 1).with('blue', 1).in('default')
  const own = object.based(({ metadata, spec }) => {
    metadata.name = name
    Object.assign(spec, { selector: { matchLabels: { app: name } } })
    spec.template.metadata.labels = { app: name }
  })
  const { metadata } = await client.create(mutations, own.object())
  const owner = { apiVersion, kind: 'Mutation', namespace: 'default', name, uid: metadata.uid }
  const event = objectEvent({ cluster: 'bench', verb: 'resync', owner, tick: name, cause: 'resync' })
  const { headers, body } = binaryOf(event)
  const answer = await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', headers, body: String(body) })
  const made = await client.list(deployments, {
    namespace: 'default',
    labelSelector: `${ownerLabel}=${name}`,
  })
  if (answer.status !== 204 || made.items.length !== 3)
    throw new Error(`The reconcile was answered with ${answer.status}`)
}

async function getRoot(port: number): Promise<void> {
  await (await fetch(`http://127.0.0.1:${port}/`)).arrayBuffer()
}

const bundled = join(root, 'dist/main.js')
const subjects: Record<string, Subject> = {
  'empty HTTP server': { args: [empty], first: getRoot },
  'mutation, bundled': { args: [bundled, 'mutation'], first: reconcileOne },
  'resync, bundled': { args: [bundled, 'resync'] },
  'dead-letter, bundled': { args: [bundled, 'dead-letter'] },
  'mutation, from source': { args: [join(root, 'functions/main.ts'), 'mutation'], first: reconcileOne },
}

const samples = new Map<string, Sample[]>()
// In turns, so that what else the machine does falls on all alike.
for (let round = 0; round < rounds; round++)
  for (const [name, subject] of Object.entries(subjects))
    samples.set(name, [...(samples.get(name) ?? []), await sample(subject, env)])
await rm(folder, { recursive: true })
await server.stop()

const middle = (name: string, field: keyof Sample) =>
  median((samples.get(name) ?? []).map((one) => one[field]))
const [base = ''] = Object.keys(subjects)
console.log(`Median of ${rounds}, Node ${process.version}\n`)
console.log(
  '| | listens, ms | × empty | first answer, ms | × empty | CPU ms | × empty | RSS MiB | over empty |',
)
console.log('|---|--:|--:|--:|--:|--:|--:|--:|--:|')
for (const name of Object.keys(subjects)) {
  const ratio = (field: keyof Sample) => (middle(name, field) / middle(base, field)).toFixed(2)
  const cells = [
    middle(name, 'wallMs').toFixed(0),
    ratio('wallMs'),
    middle(name, 'firstMs').toFixed(0),
    ratio('firstMs'),
    middle(name, 'cpuMs').toFixed(0),
    ratio('cpuMs'),
    middle(name, 'rssMiB').toFixed(1),
    (middle(name, 'rssMiB') - middle(base, 'rssMiB')).toFixed(1),
  ]
  console.log(`| ${name} | ${cells.join(' | ').replaceAll('NaN', '')} |`)
}
