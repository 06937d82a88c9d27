import { afterEach, describe, expect, it } from 'vitest'
import { type ApiServer, apiServer } from '../../shared/apiserver/server.ts'
import { systemClock } from '../../shared/clock.ts'
import { configMaps, namespaces } from '../../shared/kinds/object.ts'
import { kubeClient } from '../../shared/kube/client.ts'

const servers: ApiServer[] = []
afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.stop()))
})

function start() {
  const server = apiServer()
  servers.push(server)
  const client = kubeClient({ transport: server.transport(), clock: systemClock, userAgent: 'test/1' })
  return { server, client }
}

describe('the embedded API in process', () => {
  it('begins with the namespaces of every cluster', async () => {
    const { client } = start()
    const { items } = await client.list(namespaces)
    expect(items.map(({ metadata }) => metadata.name)).toEqual([
      'default',
      'kube-node-lease',
      'kube-public',
      'kube-system',
    ])
  })

  it('keeps what was created until it is deleted', async () => {
    const { client } = start()
    const metadata = { name: 'settings', namespace: 'default' }
    await client.create(configMaps, { metadata, data: { color: 'red' } })
    expect(await client.get(configMaps, metadata)).toMatchObject({ data: { color: 'red' } })
    expect(await client.delete(configMaps, metadata)).toBe(true)
    expect(await client.get(configMaps, metadata)).toBeUndefined()
  })

  it('tells a watch each change in order, and ends it when the server stops', async () => {
    const { client, server } = start()
    const { resourceVersion } = await client.list(configMaps)
    const metadata = { name: 'settings', namespace: 'default' }
    await client.create(configMaps, { metadata, data: { color: 'red' } })
    await client.replace(configMaps, { metadata, data: { color: 'green' } })
    await client.delete(configMaps, metadata)
    const seen: string[] = []
    for await (const { type, object } of client.watch(configMaps, { resourceVersion })) {
      seen.push(`${type} ${(object.data as Record<string, string>).color}`)
      if (type === 'DELETED') await server.stop()
    }
    expect(seen).toEqual(['ADDED red', 'MODIFIED green', 'DELETED green'])
  })

  it('answers nobody without the token, but probers', async () => {
    const { server } = start()
    const ask = (path: string, token?: string) =>
      server.fetch(
        new Request(
          `http://localhost${path}`,
          token ? { headers: { authorization: `Bearer ${token}` } } : {},
        ),
      )
    expect((await ask('/api/v1/namespaces')).status).toBe(401)
    expect((await ask('/api/v1/namespaces', `${server.token}x`)).status).toBe(401)
    expect((await ask('/api/v1/namespaces', server.token)).status).toBe(200)
    expect((await ask('/readyz')).status).toBe(200)
  })
})
