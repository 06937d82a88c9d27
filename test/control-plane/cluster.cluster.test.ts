import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { configMaps, namespaces } from '../../shared/kinds/object.ts'
import { kubernetesVersion } from './binaries.ts'
import { realCluster } from './cluster.ts'

describe('the real control plane', () => {
  it('reports the version that kubectl understands', async () => {
    const { body } = await realCluster.client().request('GET', '/version')
    expect(body).toMatchObject({ gitVersion: kubernetesVersion, major: '1', minor: '36' })
    const { stdout, code } = await realCluster.kubectl(['version', '-o', 'json'])
    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({
      clientVersion: { gitVersion: kubernetesVersion },
      serverVersion: { gitVersion: kubernetesVersion },
    })
  })

  it('lets nobody in without rights, and a service account only as far as its role goes', async () => {
    const namespace = await realCluster.newNamespace()
    const nobody = realCluster.client({ token: realCluster.nobodyToken })
    await expect(nobody.list(configMaps, { namespace })).rejects.toMatchObject({ code: 403 })

    const reader = realCluster.client({ token: await realCluster.tokenFor(namespace, 'reader') })
    await expect(reader.list(configMaps, { namespace })).rejects.toMatchObject({ code: 403 })
    await realCluster.kubectl([
      'create',
      'role',
      'reader',
      '--verb=list',
      '--resource=configmaps',
      '-n',
      namespace,
    ])
    const binding = [
      'create',
      'rolebinding',
      'reader',
      '--role=reader',
      `--serviceaccount=${namespace}:reader`,
    ]
    await realCluster.kubectl([...binding, '-n', namespace])
    await expect
      .poll(() =>
        reader.list(configMaps, { namespace }).then(
          () => true,
          () => false,
        ),
      )
      .toBe(true)
    await expect(reader.list(configMaps)).rejects.toMatchObject({ code: 403 })
  })

  it('collects what a deleted owner leaves behind', async () => {
    const namespace = await realCluster.newNamespace()
    const client = realCluster.client()
    const configMap = (name: string, ownerReferences: object[] = []) =>
      ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace, ownerReferences } }) as never
    const owner = await client.create(configMaps, configMap('owner'))
    const { uid } = owner.metadata
    await client.create(
      configMaps,
      configMap('owned', [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'owner', uid }]),
    )
    await client.delete(configMaps, { namespace, name: 'owner' })
    await expect
      .poll(() => client.get(configMaps, { namespace, name: 'owned' }), { timeout: 30_000 })
      .toBeUndefined()
  })

  it('writes down each request that it answered', async () => {
    const before = (await realCluster.requests()).length
    const client = realCluster.client({ userAgent: `counted/${before}` })
    await client.get(namespaces, { name: 'default' })
    await expect
      .poll(async () =>
        (await realCluster.requests(before)).filter((r) => r.userAgent === `counted/${before}`),
      )
      .toMatchObject([{ verb: 'get', objectRef: { resource: 'namespaces', name: 'default' } }])
    expect(readFileSync(realCluster.caFile, 'utf8')).toContain('BEGIN CERTIFICATE')
  })
})
