import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { systemClock } from '../../shared/clock.ts'
import { customResourceDefinitions, deployments, leases } from '../../shared/kinds/object.ts'
import { realCluster } from '../control-plane/cluster.ts'
import { mutation } from '../support/builders.ts'
import { eventually } from '../support/eventually.ts'
import { loadFactor } from '../support/load.ts'
import { isAlive, type NpmStart, npmStart } from '../support/npm-start.ts'

/** `npm start` against a cluster of the user's, which here is a real control plane. */

describe('npm start -- --kubeconfig FILE --no-samples', () => {
  const client = realCluster.client()
  let folder = ''
  let run: NpmStart

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'start-'))
    run = npmStart(['--kubeconfig', realCluster.kubeconfigFile, '--no-samples', '--folder', folder])
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
    const namespace = await realCluster.newNamespace()
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
