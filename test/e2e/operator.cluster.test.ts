import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { stringify } from 'yaml'
import { processNames } from '../../knative/names.ts'
import { systemClock } from '../../shared/clock.ts'
import { customResourceDefinitions, deployments, events, leases, secrets } from '../../shared/kinds/object.ts'
import type { KnativeReport, LocalKnative } from '../../shared/local/knative.ts'
import { realCluster } from '../control-plane/cluster.ts'
import { mutantDeployment, mutation } from '../support/builders.ts'
import { installCrds } from '../support/crds.ts'
import { eventually } from '../support/eventually.ts'
import { applyRights, kustomized } from '../support/installation.ts'
import { loadFactor } from '../support/load.ts'
import { isAlive, type NpmStart, npmStart } from '../support/npm-start.ts'
import { realProcesses } from '../support/real-processes.ts'

/**
 * The whole operator on a real control plane. Both runs campaign for the same Lease, so they take turns in this file; each
 * watches a namespace of its own, for the other tests on this cluster are none of its business.
 */

describe('npm start -- --kubeconfig FILE --no-samples', () => {
  const client = realCluster.client()
  let folder = ''
  let namespace = ''
  let run: NpmStart

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'start-'))
    namespace = await realCluster.newNamespace()
    const env = { WATCH_NAMESPACES: namespace }
    run = npmStart(['--kubeconfig', realCluster.kubeconfigFile, '--no-samples', '--folder', folder], env)
    await eventually(() => expect(run.output()).toContain('Now try'), 60_000)
  }, 90_000)

  afterAll(async () => {
    run.kill('SIGTERM')
    await run.exited
    await rm(folder, { recursive: true, force: true })
  })

  it('installs the CRDs and leads', async () => {
    const { items } = await client.list(customResourceDefinitions)
    const names = items.map(({ metadata }) => metadata.name)
    expect(names).toEqual(expect.arrayContaining(['mutantdeployments.neiam.org', 'mutations.neiam.org']))
    const lease = await client.get(leases, { namespace: 'mutantops', name: 'mutantops-watcher' })
    expect(lease?.spec).toMatchObject({ holderIdentity: expect.stringMatching(/^watcher-/) })
  })

  it('makes the children of an object that is applied, and the same again when one is deleted', async () => {
    await client.create(mutation('web').kind, mutation('web').with('red', 2).in(namespace).object())
    const child = { namespace, name: 'web-red' }
    const made = await eventually(async () => {
      const found = await client.get(deployments, child)
      expect(found?.spec).toMatchObject({ replicas: 2 })
      return found
    }, 20_000)
    await client.delete(deployments, child)
    await eventually(async () => {
      const found = await client.get(deployments, child)
      expect(found?.metadata.uid).toBeDefined()
      expect(found?.metadata.uid).not.toBe(made?.metadata.uid)
    }, 2_000 * loadFactor())
  })

  it('ends all of it on SIGTERM, and leaves no process and no leader', async () => {
    const startedMs = systemClock.monotonicMs()
    run.kill('SIGTERM')
    expect(await run.exited).toMatchObject({ code: 0 })
    expect(systemClock.monotonicMs() - startedMs).toBeLessThan(20_000)
    expect(run.pids().filter(isAlive)).toEqual([])
    const lease = await client.get(leases, { namespace: 'mutantops', name: 'mutantops-watcher' })
    expect(lease?.spec).toMatchObject({ holderIdentity: '' })
    expect(run.output()).toContain('stay in the cluster')
  })
})

/**
 * The whole operator on a real API server, each process as its own service account with the roles of the manifests: what
 * they may do is enough for all they have to do.
 */
describe.each([
  { rights: 'in all namespaces', overlay: 'base', hasTenants: false },
  { rights: 'in one namespace only', overlay: 'namespaced', hasTenants: true },
])('each process as its own service account, with rights $rights', ({ overlay, hasTenants }) => {
  const admin = realCluster.client()
  const reports: KnativeReport[] = []
  /** Where the accounts and the Lease are. */
  let home = 'mutantops'
  let folder = ''
  let namespace = ''
  let running: LocalKnative

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'identities-'))
    await installCrds(admin)
    if (hasTenants) home = await realCluster.newNamespace()
    else await realCluster.kubectl(['create', 'namespace', home])
    namespace = await realCluster.newNamespace()
    const objects = await kustomized(overlay, home)
    await applyRights(objects, home)
    if (hasTenants) await applyRights(await kustomized('tenant', home), namespace)
    await writeFile(join(folder, 'all.yaml'), objects.map((object) => stringify(object)).join('---\n'))
    await writeFile(join(folder, 'kustomization.yaml'), stringify({ resources: ['all.yaml'] }))
    const certificate = (await readFile(realCluster.caFile)).toString('base64')
    for (const name of processNames) {
      const token = await realCluster.tokenFor(home, name)
      const config = {
        apiVersion: 'v1',
        kind: 'Config',
        clusters: [
          { name, cluster: { server: realCluster.server, 'certificate-authority-data': certificate } },
        ],
        users: [{ name, user: { token } }],
        contexts: [{ name, context: { cluster: name, user: name } }],
        'current-context': name,
      }
      await writeFile(join(folder, name), JSON.stringify(config), { mode: 0o600 })
    }
    running = await realProcesses({
      folder,
      env: ({ serviceAccount }) => ({
        KUBECONFIG: join(folder, serviceAccount),
        WATCH_NAMESPACES: namespace,
      }),
      report: (report) => reports.push(report),
    })
    await running.ready
    // The watcher asks for a resync when it has listed; when that is done, all that comes is by its own events.
    await eventually(() => expect(logged('resync', '"lookedAt"')).toHaveLength(1), 30_000)
  }, 60_000)

  afterAll(async () => {
    await running.stop()
    await rm(folder, { recursive: true, force: true })
  }, 60_000)

  const logged = (name: string, text: string) =>
    reports.filter((one) => one.from === 'output' && one.name === name && one.line.includes(text))
  const denied = () => reports.filter((one) => one.from === 'output' && /forbidden|Forbidden/.test(one.line))

  it('the watcher leads by its Lease', async () => {
    await eventually(async () => {
      const lease = await admin.get(leases, { namespace: home, name: 'mutantops-watcher' })
      expect(lease?.spec).toMatchObject({ holderIdentity: expect.stringMatching(/^watcher-/) })
    })
  })

  it('objects of both kinds get their children, their Secret, their status and their Kubernetes Events', async () => {
    for (const object of [mutation('web'), mutantDeployment('shop')])
      await admin.create(
        object.kind,
        object
          .based(({ metadata }) => {
            metadata.name = object.name
          })
          .with('red', 1)
          .with('Not A Label', 1)
          .in(namespace)
          .object(),
      )
    await eventually(async () => {
      const { items } = await admin.list(deployments, { namespace })
      expect(items.map(({ metadata }) => metadata.name).sort()).toEqual(['shop-red', 'web-red'])
      expect(await admin.getMetadata(secrets, { namespace, name: 'web-token' })).toBeDefined()
      for (const object of [mutation('web'), mutantDeployment('shop')])
        expect((await admin.get(object.kind, { namespace, name: object.name }))?.status).toMatchObject({
          summary: expect.stringContaining('1 invalid'),
        })
      expect((await admin.list(events, { namespace })).items.length).toBeGreaterThanOrEqual(2)
    }, 30_000)
    await admin.delete(deployments, { namespace, name: 'shop-red' })
    await eventually(async () =>
      expect(await admin.getMetadata(deployments, { namespace, name: 'shop-red' })).toBeDefined(),
    )
  }, 60_000)

  it('a resync of everything is looked at and answered', async () => {
    const response = await fetch(`${running.functionsUrl}/${home}/resync`, {
      method: 'POST',
      body: '{"mode":"full"}',
      headers: { 'content-type': 'application/json' },
    })
    expect(response.status).toBe(204)
    expect(logged('resync', '"lookedAt"').length).toBeGreaterThan(0)
  })

  it('an event that was given up becomes a Kubernetes Event on its object', async () => {
    const response = await fetch(`${running.functionsUrl}/${home}/dead-letter`, {
      method: 'POST',
      body: '{}',
      headers: {
        'ce-specversion': '1.0',
        'ce-id': '1',
        'ce-source': '/t',
        'ce-type': 'org.neiam.object.applied',
        'ce-subject': `/apis/neiam.org/v1/namespaces/${namespace}/mutations/web`,
        'ce-knativeerrorcode': '503',
        'content-type': 'application/json',
      },
    })
    expect(response.status).toBe(204)
    const { items } = await admin.list(events, { namespace })
    expect(items.map(({ reason }) => reason)).toContain('EventGivenUp')
  })

  it('nothing was ever forbidden', () => {
    expect(denied()).toEqual([])
  })
})
