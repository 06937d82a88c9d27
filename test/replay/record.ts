import { cpSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseAllDocuments } from 'yaml'
import { type ApiServer, apiServer } from '../../shared/apiserver/server.ts'
import { systemClock } from '../../shared/clock.ts'
import { objectTypes, pingType } from '../../shared/cloudevents/envelope.ts'
import { sink } from '../../shared/cloudevents/sink.ts'
import { type MutantKind, type MutantStatus, mutantKinds } from '../../shared/kinds/mutants.ts'
import { deployments, type KubeObject, type StoredObject } from '../../shared/kinds/object.ts'
import { type KubeClient, kubeClient } from '../../shared/kube/client.ts'
import { brokerTape } from '../../shared/local/events/tape.ts'
import type { KnativeReport } from '../../shared/local/knative.ts'
import { base, mutant } from '../support/builders.ts'
import { installCrds } from '../support/crds.ts'
import { eventually } from '../support/eventually.ts'
import { realProcesses } from '../support/real-processes.ts'

/**
 * Records the tapes of this folder anew: `npm exec -c 'node test/replay/record.ts'`. The real processes run on the embedded API; the tape
 * is what the broker takes, or what the dead-letter function is given. `api-server-source.jsonl` is none of these: it is
 * what Knative's own ApiServerSource sent of two objects, and stays.
 */

const root = fileURLToPath(new URL('../../', import.meta.url))
const namespace = 'default'
const patienceMs = 30_000

interface Run {
  admin: KubeClient
  server: ApiServer
  reports: KnativeReport[]
  /** Starts watcher, functions and broker. */
  start(): Promise<void>
  /** As the cron does. */
  ping(): Promise<void>
}

async function recorded(name: string, story: (run: Run) => Promise<void>, dead?: 'letters'): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'tape-'))
  const server = apiServer({ rollout: { delayMs: 200 } })
  const { url } = await server.listen()
  writeFileSync(join(folder, 'kubeconfig'), JSON.stringify(server.kubeconfig(url)), { mode: 0o600 })
  const admin = kubeClient({ transport: server.transport(), clock: systemClock, userAgent: 'admin' })
  await installCrds(admin)
  const tape = join(folder, 'tape')
  const taken = brokerTape(tape, (error) => {
    throw error
  })
  const reports: KnativeReport[] = []
  let running: Awaited<ReturnType<typeof realProcesses>> | undefined
  await story({
    admin,
    server,
    reports,
    async start() {
      running = await realProcesses({
        folder: dead ? impatient(folder) : `${root}knative`,
        env: ({ functionName }) => ({
          KUBECONFIG: join(folder, 'kubeconfig'),
          POD_NAMESPACE: namespace,
          ...(dead && functionName === 'dead-letter' && { TAPE: tape }),
        }),
        report(one) {
          reports.push(one)
          if (!dead && one.from === 'broker' && one.report.kind === 'accepted') taken.record(one.report.event)
        },
      })
      await running.ready
    },
    async ping() {
      const out = sink({
        url: `${running?.brokerUrl}/mutantops/default`,
        clock: systemClock,
        userAgent: 'cron',
      })
      const id = String(reports.length)
      await out.send({ specversion: '1.0', id, source: '/cron', type: pingType, extensions: {} })
      await out.close()
    },
  })
  await running?.stop()
  taken.close()
  await server.stop()
  renameSync(tape, `${root}test/replay/tapes/${name}.jsonl`)
  rmSync(folder, { recursive: true })
  process.stdout.write(`${name}\n`)
}

/** The manifests with a broker that gives up soon. */
function impatient(folder: string): string {
  const copy = join(folder, 'knative')
  cpSync(`${root}knative`, copy, { recursive: true })
  const file = join(copy, 'base/eventing.yaml')
  writeFileSync(
    file,
    readFileSync(file, 'utf8')
      .replaceAll('retry: 8', 'retry: 2')
      .replaceAll('backoffDelay: PT10S', 'backoffDelay: PT0.2S'),
  )
  return copy
}

function numbered(index: number, revision = 1) {
  const [kind] = mutantKinds.slice(index % 2) as [MutantKind]
  return mutant(kind, `web-${index}`)
    .in(namespace)
    .on(base(`web-${index}`))
    .with('red', revision)
    .with('blue', 0)
}

async function made({ admin }: Run, count: number): Promise<void> {
  for (let index = 0; index < count; index++)
    await admin.create(numbered(index).kind, numbered(index).object())
}

async function change({ admin }: Run, index: number, revision: number): Promise<void> {
  const object = numbered(index, revision)
  const { spec } = object.object()
  const path = { op: 'replace', path: '/spec', value: spec } as const
  await admin.patchJson(object.kind, { namespace, name: object.name }, [path])
}

/** Until all objects are as wanted, and told so. */
async function allReady({ admin }: Run): Promise<void> {
  await eventually(async () => {
    for (const kind of mutantKinds)
      for (const { metadata, status } of (await admin.list<StoredObject>(kind, { namespace })).items) {
        const { observedGeneration, conditions = [] } = (status ?? {}) as Partial<MutantStatus>
        const isReady = conditions.some((one) => one.type === 'Ready' && one.status === 'True')
        if (!isReady || observedGeneration !== metadata.generation)
          throw new Error(`${metadata.name} is not ready`)
      }
  }, patienceMs)
}

/** Until the broker has taken so many events of a type. */
const taken = ({ reports }: Run, type: string, count: number) =>
  eventually(() => {
    const those = reports.filter(
      (one) =>
        one.from === 'broker' && one.report.kind === 'accepted' && one.report.event.attributes.type === type,
    )
    if (those.length < count) throw new Error(`Only ${those.length} of ${type}`)
  }, patienceMs)

await recorded('samples', async (run) => {
  await run.start()
  for (const file of readdirSync(`${root}knative/samples`).filter((name) => name.endsWith('.yaml')))
    for (const document of parseAllDocuments(readFileSync(`${root}knative/samples/${file}`, 'utf8'))) {
      const object = document.toJS() as KubeObject
      const kind = mutantKinds.find((one) => one.kind === object.kind)
      const metadata = { ...object.metadata, namespace }
      if (kind) await run.admin.create(kind, { ...object, metadata } as KubeObject)
    }
  await allReady(run)
})

await recorded('churn', async (run) => {
  await run.start()
  await made(run, 50)
  await allReady(run)
  for (let index = 0; index < 50; index += 3) await change(run, index, 2)
  for (let index = 1; index < 50; index += 5)
    await run.admin.delete(deployments, { namespace, name: `web-${index}-red` })
  await allReady(run)
  for (let index = 48; index < 50; index++)
    await run.admin.delete(numbered(index).kind, { namespace, name: `web-${index}` })
  await taken(run, objectTypes.deleted, 2)
})

await recorded('start', async (run) => {
  await made(run, 6)
  await run.start()
  await allReady(run)
})

await recorded('resync', async (run) => {
  await made(run, 4)
  await run.start()
  await allReady(run)
  await run.ping()
  await taken(run, pingType, 1)
  await run.admin.delete(deployments, { namespace, name: 'web-2-red' })
  await allReady(run)
})

await recorded(
  'dead-letter',
  async (run) => {
    await run.start()
    for (const { plural: resource } of mutantKinds)
      run.server.faults.add({ on: { resource, verb: 'get' }, trouble: { status: 503 } })
    await made(run, 3)
    await eventually(() => {
      const told = run.reports.filter(
        (one) => one.from === 'output' && one.line.includes('"deadLetter":true'),
      )
      if (told.length < 3) throw new Error(`Only ${told.length} dead letters`)
    }, patienceMs)
  },
  'letters',
)
