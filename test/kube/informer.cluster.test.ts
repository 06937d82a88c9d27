import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { type AddressInfo, connect as connectTcp, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, it } from 'vitest'
import { systemClock } from '../../shared/clock.ts'
import { configMaps, type Resource } from '../../shared/kinds/object.ts'
import { type KubeClient, kubeClient } from '../../shared/kube/client.ts'
import { connect } from '../../shared/kube/connect.ts'
import { type InformerLimits, informer, type Kept } from '../../shared/kube/informer.ts'
import { createLog } from '../../shared/log.ts'
import { realCluster } from '../control-plane/cluster.ts'

const admin = realCluster.client()
const stops: (() => unknown)[] = []
afterEach(async () => {
  for (const stop of stops.splice(0).toReversed()) await stop()
})

/** Follows the ConfigMaps of a namespace that carry the label `test`. */
function following(client: KubeClient, namespace: string | undefined, limits: Partial<InformerLimits> = {}) {
  const stop = new AbortController()
  const counts: Record<string, number> = {}
  const changes: string[] = []
  const lines: { level: string; msg: string }[] = []
  const watched = informer<Kept>({
    client,
    resource: configMaps,
    namespace,
    labelSelector: 'test',
    clock: systemClock,
    log: createLog({ name: 'test', destination: { write: (line) => lines.push(JSON.parse(line)) } }),
    limits,
    keep: ({ metadata: { uid, resourceVersion } }) => ({ uid, resourceVersion }),
    onCount: (what) => {
      counts[what] = (counts[what] ?? 0) + 1
    },
    onChange: ({ how, name, before, after }) =>
      changes.push(`${how} ${before ? (after ? '~' : '-') : '+'}${name}`),
  })
  const done = watched.run(stop.signal)
  stops.push(async () => {
    stop.abort()
    await done
  })
  return { watched, counts, changes, lines }
}

const configMap = (namespace: string, name: string) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { namespace, name, labels: { test: 'yes' } },
  data: { some: 'x'.repeat(1_000) },
})
const create = (namespace: string, name: string) => admin.create(configMaps, configMap(namespace, name))

/** A TCP proxy before the API server. */
async function proxy() {
  const { hostname, port } = new URL(realCluster.server)
  const sockets = new Set<Socket>()
  const server = createServer((near) => {
    const far = connectTcp(Number(port), hostname)
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from)
      from.on('data', (chunk) => to.write(chunk))
      from.on('error', () => {})
      from.on('close', () => to.destroy())
    }
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  stops.push(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return {
    server: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
    /** What is open now goes dead; what is opened from then on works. */
    freezeOpen() {
      for (const socket of sockets) {
        socket.removeAllListeners('data')
        socket.on('data', () => {})
      }
    },
  }
}

/** The cluster's kubeconfig with another address. */
async function kubeconfigFor(server: string): Promise<string> {
  const config = JSON.parse(await readFile(realCluster.kubeconfigFile, 'utf8'))
  config.clusters[0].cluster.server = server
  const folder = await mkdtemp(join(tmpdir(), 'informer-'))
  stops.push(() => rm(folder, { recursive: true }))
  await writeFile(join(folder, 'config'), JSON.stringify(config))
  return join(folder, 'config')
}

it('an informer follows the metadata of what it selects, made, changed, deleted and unselected', async () => {
  const namespace = await realCluster.newNamespace()
  await create(namespace, 'a')
  const { watched, changes } = following(admin, namespace)
  await watched.synced
  await create(namespace, 'b')
  await admin.patchJson(configMaps, { namespace, name: 'a' }, [
    { op: 'replace', path: '/data', value: { some: 'y' } },
  ])
  await admin.patchJson(configMaps, { namespace, name: 'b' }, [
    { op: 'remove', path: '/metadata/labels/test' },
  ])
  await admin.delete(configMaps, { namespace, name: 'a' })
  await expect.poll(() => changes).toEqual(['initial +a', 'watch +b', 'watch ~a', 'watch -b', 'watch -a'])
  expect(watched.state()).toEqual({ namespace, phase: 'watching', isSynced: true, objects: 0 })
})

it('all pages are read, and what is deleted between two of them is not there in the end (case 6)', async () => {
  const namespace = await realCluster.newNamespace()
  for (let index = 0; index < 61; index++) await create(namespace, `o${index}`)
  let pages = 0
  const slowly: KubeClient = {
    ...admin,
    listMetadata: async (resource: Resource, options) => {
      if (++pages === 2) await admin.delete(configMaps, { namespace, name: 'o0' })
      return admin.listMetadata(resource, options)
    },
  }
  const { watched } = following(slowly, namespace, { pageSize: 20 })
  await watched.synced
  expect(pages).toBe(4)
  await expect.poll(() => watched.state().objects).toBe(60)
  expect(watched.get({ namespace, name: 'o0' })).toBeUndefined()
})

it('a connection that went dead without a word is noticed, and nothing that happened is missed (case 1)', async () => {
  const namespace = await realCluster.newNamespace()
  const between = await proxy()
  const transport = await connect({ env: {}, kubeconfig: await kubeconfigFor(between.server) })
  stops.push(() => transport.close())
  const client = kubeClient({ transport, clock: systemClock, userAgent: 'test' })
  const { watched, counts, changes } = following(client, namespace, {
    idleTimeoutMs: 1_500,
    backoffMaxMs: 1_000,
  })
  await expect.poll(() => watched.state().phase, { timeout: 5_000 }).toBe('watching')
  between.freezeOpen()
  for (const name of 'abcde') await create(namespace, name)
  await expect.poll(() => changes, { timeout: 10_000 }).toEqual([...'abcde'].map((name) => `watch +${name}`))
  expect(counts).toMatchObject({ restart: 1 })
  expect(counts.relist).toBeUndefined()
})

it('a right that comes late, goes and comes back is enough, without a restart (case 7)', async () => {
  const [a, b] = [await realCluster.newNamespace(), await realCluster.newNamespace()]
  const client = realCluster.client({ token: await realCluster.tokenFor(a, 'watcher') })
  const subject = `--serviceaccount=${a}:watcher`
  const allow = async (namespace: string) => {
    await realCluster.kubectl([
      'create',
      'role',
      'watcher',
      '--verb=list,watch',
      '--resource=configmaps',
      '-n',
      namespace,
    ])
    await realCluster.kubectl([
      'create',
      'rolebinding',
      'watcher',
      '--role=watcher',
      subject,
      '-n',
      namespace,
    ])
  }
  await allow(a)
  await create(a, 'in-a')
  await create(b, 'in-b')
  const limits = { deniedRetryMs: 500, watchSeconds: 2 }
  const inA = following(client, a, limits)
  const inB = following(client, b, limits)
  await inA.watched.synced
  await expect.poll(() => inB.counts.denied, { timeout: 5_000 }).toBeGreaterThan(2)
  expect(inB.watched.state()).toMatchObject({ namespace: b, phase: 'denied', isSynced: false })
  expect(inB.lines.filter(({ level }) => level === 'warn')).toHaveLength(1)
  await allow(b)
  await expect.poll(() => inB.changes, { timeout: 5_000 }).toEqual(['initial +in-b'])

  await realCluster.kubectl(['delete', 'rolebinding', 'watcher', '-n', a])
  await expect.poll(() => inA.watched.state().phase, { timeout: 10_000 }).toBe('denied')
  await create(a, 'meanwhile')
  await allow(a)
  await expect.poll(() => inA.changes, { timeout: 10_000 }).toEqual(['initial +in-a', 'watch +meanwhile'])
  expect(inA.watched.state().phase).toBe('watching')
})
