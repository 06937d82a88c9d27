import { execFile } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { cpus, totalmem } from 'node:os'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { systemClock } from '../../shared/clock.ts'
import { type Mutation, mutations } from '../../shared/kinds/mutants.ts'
import { deployments, namespaces, type StoredObject, secrets } from '../../shared/kinds/object.ts'
import { type KubeClient, kubeClient } from '../../shared/kube/client.ts'
import { connect } from '../../shared/kube/connect.ts'
import { type KnativeReport, localKnative } from '../../shared/local/knative.ts'
import { readManifests } from '../../shared/local/manifests/manifests.ts'
import { binaries } from '../control-plane/binaries.ts'
import { startControlPlane } from '../control-plane/start.ts'
import { installCrds } from '../support/crds.ts'
import { eventually } from '../support/eventually.ts'
import { auditOf, isOurs, isWrite } from './audit.ts'
import { baseOf, mutationOf, namespace, variants } from './objects.ts'
import { plot } from './plot.ts'
import { cpuSecondsOf, peakMiBOf, pidOf } from './proc.ts'
import type { Results, Row } from './results.ts'
import { table } from './table.ts'

/**
 * `npm run bench -- [MUTATIONS]`: the whole operator (the bundle, the local broker) on a real API server without a
 * controller manager, so many Mutations of three variants each (default 500). Requests are counted in the audit log. The control
 * does the same writes with a plain client: the floor of this machine. Writes RESULTS.md beside it, its plot, and
 * results.json, with which the next run is compared. Linux only (/proc).
 */
const count = Number(process.argv[2] ?? 500)
const handEdits = 100
const unloaded = 100
const writers = 16
const root = fileURLToPath(new URL('../../', import.meta.url))

const names = Array.from({ length: count }, (_, index) => `web-${index}`)

async function each<T>(items: readonly T[], work: (item: T) => Promise<unknown>): Promise<void> {
  const queue = items.values()
  const worker = async () => {
    for (const item of queue) await work(item)
  }
  await Promise.all(Array.from({ length: writers }, worker))
}

const plane = await startControlPlane({ binaries: await binaries(() => {}), controllers: [] })
const { connection } = plane
const wire = await connect({ env: {}, kubeconfig: connection.kubeconfigFile })
const client = kubeClient({ transport: wire, clock: systemClock, userAgent: 'bench' })
const reports: KnativeReport[] = []
await installCrds(client)
// In `mutantops` the watcher has its Lease.
for (const name of [namespace, 'control', 'mutantops'])
  await client.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } })

const apiserverPid = pidOf(connection.binaries['kube-apiserver'], new URL(connection.server).port)
/** What each process that we started has used, the ended ones too as far as was seen. */
const used = new Map<number, number>()

/** CPU of all of them, this one (the local broker) included. */
function ourCpuSeconds(): number {
  for (const one of reports) {
    if ((one.from !== 'process' && one.from !== 'function') || one.report.kind !== 'starting') continue
    try {
      used.set(one.report.pid, cpuSecondsOf(one.report.pid))
    } catch {
      // It has ended: what was seen last stays.
    }
  }
  const { user, system } = process.cpuUsage()
  return (user + system) / 1e6 + [...used.values()].reduce((sum, one) => sum + one, 0)
}

/** How often the resync has looked at everything. */
function looks(): number {
  return reports.filter(
    (one) => one.from === 'output' && one.name === 'resync' && one.line.includes('"lookedAt"'),
  ).length
}

/** Of the watcher that was started last. */
function watcherPid(): number {
  const watcher = reports.findLast((one) => one.from === 'process' && one.report.kind === 'ready')
  return watcher?.from === 'process' ? watcher.report.pid : 0
}

async function quiet(): Promise<void> {
  for (let seen = -1; seen !== reports.length; ) {
    seen = reports.length
    await systemClock.sleep(2_000)
  }
}

/** Runs a story until `isDone`, and measures it until then; requests also of what follows until all is quiet. */
async function measured(
  what: string,
  per: number,
  start: () => Promise<unknown>,
  isDone: () => Promise<boolean>,
): Promise<Row> {
  await quiet()
  const before = (await auditOf(connection)).length
  const [ours, theirs, sinceMs] = [ourCpuSeconds(), cpuSecondsOf(apiserverPid), systemClock.monotonicMs()]
  await start()
  await eventually(async () => {
    await systemClock.sleep(100)
    ourCpuSeconds()
    if (!(await isDone())) throw new Error(`Not done in time: ${what}`)
  }, 300_000)
  const wallSeconds = (systemClock.monotonicMs() - sinceMs) / 1_000
  await quiet()
  const requests = (await auditOf(connection)).slice(before).filter(isOurs)
  const row = {
    what,
    wallSeconds,
    requests: requests.length,
    writes: requests.filter(isWrite).length,
    per,
    ourCpuSeconds: ourCpuSeconds() - ours,
    apiserverCpuSeconds: cpuSecondsOf(apiserverPid) - theirs,
  }
  process.stdout.write(`${JSON.stringify(row)}\n`)
  return row
}

async function children(): Promise<StoredObject[]> {
  return (await client.listMetadata(deployments, { namespace })).items as StoredObject[]
}

async function areReported(summary: string): Promise<boolean> {
  const { items } = await client.list<Mutation>(mutations, { namespace })
  return items.every(({ metadata, status }) => {
    const seen = status?.observedGeneration === metadata.generation
    return seen && status?.summary?.startsWith(summary)
  })
}

/** The same writes by a plain client, straight after one another: what this machine can do. */
async function control(clientOf: KubeClient): Promise<number> {
  const sinceMs = systemClock.monotonicMs()
  await each(names, async (name) => {
    const owner = await clientOf.create<StoredObject>(mutations, {
      ...mutationOf(name),
      metadata: { namespace: 'control', name },
    })
    const write = async (label: string) => {
      const base = baseOf(name)
      const metadata = { ...base.metadata, name: `${name}-${label}`, namespace: 'control' }
      const object = { apiVersion: 'apps/v1', kind: 'Deployment', ...base, metadata }
      await clientOf.apply(deployments, object, { fieldManager: 'control' })
    }
    await Promise.all(variants.map(write))
    const metadata = { name: `${name}-token`, namespace: 'control' }
    await clientOf.create(secrets, { apiVersion: 'v1', kind: 'Secret', metadata, stringData: { token: 'x' } })
    await clientOf.replace(mutations, { ...owner, status: { summary: 'done' } }, { subresource: 'status' })
  })
  return (systemClock.monotonicMs() - sinceMs) / 1_000
}

const patch = (name: string, body: object) =>
  client.request('PATCH', `/apis/neiam.org/v1/namespaces/${namespace}/mutations/${name}`, {
    body,
    contentType: 'application/merge-patch+json',
  })
async function makeReady(name: string): Promise<void> {
  const child = await client.get<StoredObject>(deployments, { namespace, name: `${name}-green` })
  if (!child) throw new Error(`${name} has no child`)
  const { generation: observedGeneration } = child.metadata
  const status = {
    replicas: 1,
    updatedReplicas: 1,
    readyReplicas: 1,
    availableReplicas: 1,
    observedGeneration,
  }
  await client.replace(deployments, { ...child, status }, { subresource: 'status' })
}

const withVariants = (list: object[]) => ({ spec: { variants: list } })

async function oneAtATime(): Promise<number[]> {
  const times: number[] = []
  for (let index = 0; index < unloaded; index++) {
    const name = `alone-${index}`
    const sinceMs = systemClock.monotonicMs()
    await client.create(mutations, mutationOf(name))
    const missing = new Set(variants)
    while (missing.size > 0) {
      for (const label of missing)
        if (await client.getMetadata(deployments, { namespace, name: `${name}-${label}` }))
          missing.delete(label)
    }
    times.push(systemClock.monotonicMs() - sinceMs)
    await systemClock.sleep(100)
  }
  return times.sort((a, b) => a - b)
}

const controlSeconds = await control(client)
await promisify(execFile)(process.execPath, [`${root}knative/build.ts`])
const manifests = await readManifests(`${root}knative/`)
const running = await localKnative({
  // Without the cron: a resync in the middle of a story would be counted with it.
  manifests: { ...manifests, pings: [] },
  launch: {
    program: `${root}dist/main.js`,
    baseEnv: { ...process.env, WATCH_NAMESPACES: namespace },
    env: () => ({ KUBECONFIG: connection.kubeconfigFile }),
  },
  clock: systemClock,
  report: (report) => reports.push(report),
})
await running.ready
await quiet()

const rows: Row[] = []
rows.push(
  await measured(
    'created from nothing',
    count,
    () => each(names, (name) => client.create(mutations, mutationOf(name))),
    async () => (await children()).length === 3 * count && (await areReported('0/3')),
  ),
  await measured(
    'resync, in sync',
    count,
    () =>
      fetch(`${running.functionsUrl}/mutantops/resync`, {
        method: 'POST',
        body: '{"mode":"needed"}',
        headers: { 'content-type': 'application/json' },
      }),
    async () => true,
  ),
  await measured(
    'the watcher started again',
    count,
    async () => {
      const before = looks()
      // In order, so that the Lease is free for the next.
      process.kill(watcherPid(), 'SIGTERM')
      await eventually(() => {
        if (looks() === before) throw new Error('The next watcher has not asked for a look at everything')
      }, 60_000)
    },
    async () => true,
  ),
  await measured(
    'one child of each made ready',
    count,
    () => each(names, makeReady),
    async () => areReported('1/3'),
  ),
  await measured(
    'one variant changed on all',
    count,
    () => {
      const [red, ...others] = variants.map((label) => ({ label, instances: 1 }))
      return each(names, (name) => patch(name, withVariants([{ ...red, env: { B: 'c' } }, ...others])))
    },
    async () => areReported('1/3'),
  ),
  await measured(
    'one variant removed from all',
    count,
    () => {
      const [red, green] = variants.map((label) => ({ label, instances: 1 }))
      return each(names, (name) => patch(name, withVariants([{ ...red, env: { B: 'c' } }, { ...green }])))
    },
    async () => (await children()).length === 2 * count && (await areReported('1/2')),
  ),
  await measured(
    `${handEdits} children deleted by hand`,
    handEdits,
    () =>
      each(names.slice(0, handEdits), (name) =>
        client.delete(deployments, { namespace, name: `${name}-red` }),
      ),
    async () => (await children()).length === 2 * count,
  ),
)
const times = await oneAtATime()
const folder = `${root}test/bench/`
const earlier = await readFile(`${folder}results.json`, 'utf8').then(
  (text) => JSON.parse(text) as Results,
  () => undefined,
)
const results: Results = {
  date: systemClock.now().toISOString(),
  machine: `${cpus().length} cores, ${Math.round(totalmem() / 2 ** 30)} GiB`,
  count,
  controlSeconds,
  rows,
  p50Ms: times[Math.floor(times.length / 2)] ?? 0,
  p99Ms: times[Math.floor(times.length * 0.99)] ?? 0,
  watcherPeakMiB: peakMiBOf(watcherPid()),
}
await writeFile(`${folder}RESULTS.md`, table(results, earlier))
await writeFile(`${folder}convergence.svg`, plot(results))
await writeFile(`${folder}results.json`, `${JSON.stringify(results, null, 2)}\n`)
await running.stop()
await wire.close()
await plane.stop()
