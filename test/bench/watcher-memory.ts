import { execFile, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { copyFile, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { systemClock } from '../../shared/clock.ts'
import { fieldManager, mutations, ownerLabel } from '../../shared/kinds/mutants.ts'
import { deployments, namespaces, type StoredObject } from '../../shared/kinds/object.ts'
import { type KubeClient, kubeClient } from '../../shared/kube/client.ts'
import { connect } from '../../shared/kube/connect.ts'
import { binaries } from '../control-plane/binaries.ts'
import { startControlPlane } from '../control-plane/start.ts'
import { installCrds } from '../support/crds.ts'

/**
 * `node test/bench/watcher-memory.ts [MUTATIONS]`: what the idle watcher costs beside an empty Node process, with so many
 * Mutations of three children each (default 500) on a real API server; resident memory in MiB, after the list and a
 * minute of quiet. Tells too how long after its start the watcher sends its first event (it asks for a resync when it has
 * listed everything). Linux only (/proc).
 */
const count = Number(process.argv[2] ?? 500)
const childrenEach = 3
const creators = 16
const quietMs = Number(process.env.QUIET_MS ?? 60_000)

const residentMiB = (pid: number | undefined) =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1_024

async function fill(client: KubeClient): Promise<void> {
  await client.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'bench' } })
  let next = 0
  const create = async () => {
    for (let index = next++; index < count; index = next++) await createFamily(client, `web-${index}`)
  }
  await Promise.all(Array.from({ length: creators }, create))
}

async function createFamily(client: KubeClient, name: string): Promise<void> {
  const labels = { app: name }
  const template = {
    metadata: { labels },
    spec: { containers: [{ name: 'web', image: 'nginx:1', env: [{ name: 'A', value: 'b' }] }] },
  }
  const base = { metadata: { name, labels }, spec: { selector: { matchLabels: labels }, template } }
  const metadata = { namespace: 'bench', name }
  const variants = Array.from({ length: childrenEach }, (_, index) => ({ label: `v${index}`, instances: 1 }))
  const spec = { deployment: base, variants }
  const owner = await client.create<StoredObject>(mutations, {
    apiVersion: 'neiam.org/v1',
    kind: 'Mutation',
    metadata,
    spec,
  })
  const reference = {
    apiVersion: 'neiam.org/v1',
    kind: 'Mutation',
    name,
    uid: owner.metadata.uid,
    controller: true,
    blockOwnerDeletion: true,
  }
  for (const { label } of variants)
    await client.apply(
      deployments,
      {
        apiVersion: 'apps/v1',
        kind: 'Deployment',
        metadata: {
          namespace: 'bench',
          name: `${name}-${label}`,
          labels: { ...labels, [ownerLabel]: name, mutation: label },
          ownerReferences: [reference],
        },
        spec: base.spec,
      },
      { fieldManager },
    )
}

/** The bundle that the image runs. */
async function bundled(folder: string): Promise<string> {
  const program = fileURLToPath(new URL('../../knative/build.ts', import.meta.url))
  await promisify(execFile)(process.execPath, [program, join(folder, 'dist')])
  return join(folder, 'dist', 'main.js')
}

const plane = await startControlPlane({ binaries: await binaries(console.log), controllers: [] })
const folder = await mkdtemp(join(tmpdir(), 'watcher-memory-'))
let firstEventMs: number | undefined
const sink = createServer((_, response) => {
  firstEventMs ??= systemClock.monotonicMs()
  response.writeHead(202).end()
})
await new Promise<void>((resolve) => sink.listen(0, '127.0.0.1', resolve))
const empty = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1e6)'])
try {
  const transport = await connect({ env: {}, kubeconfig: plane.connection.kubeconfigFile })
  const client = kubeClient({ transport, clock: systemClock, userAgent: 'bench' })
  await installCrds(client)
  await fill(client)
  await writeFile(join(folder, 'token'), plane.connection.adminToken)
  await copyFile(plane.connection.caFile, join(folder, 'ca.crt'))
  const { hostname, port } = new URL(plane.connection.server)
  const program = await bundled(folder)
  const startMs = systemClock.monotonicMs()
  const watcher = spawn(process.execPath, [program, 'watcher'], {
    env: {
      KUBERNETES_SERVICE_HOST: hostname,
      KUBERNETES_SERVICE_PORT: port,
      SERVICE_ACCOUNT_FOLDER: folder,
      K_SINK: `http://127.0.0.1:${(sink.address() as AddressInfo).port}`,
      POD_NAMESPACE: 'bench',
      PORT: '0',
    },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  for (let second = 0; second <= quietMs / 1_000; second += 10) {
    await systemClock.sleep(10_000)
    const [watched, nothing] = [residentMiB(watcher.pid), residentMiB(empty.pid)]
    console.log(
      `${count} Mutations, ${count * (1 + childrenEach)} objects: watcher ${watched.toFixed(1)}, empty process ${nothing.toFixed(1)}, difference ${(watched - nothing).toFixed(1)} MiB`,
    )
  }
  console.log(`first event after ${Math.round((firstEventMs ?? Number.NaN) - startMs)} ms`)
  watcher.kill('SIGTERM')
  await transport.close()
} finally {
  empty.kill()
  sink.close()
  await plane.stop()
  await rm(folder, { recursive: true })
}
