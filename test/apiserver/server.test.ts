import { get } from 'node:https'
import { gunzipSync } from 'node:zlib'
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

  it('starts in less than 50 ms', async () => {
    const took = [1, 2, 3, 4, 5].map(() => {
      const startMs = performance.now()
      start()
      return performance.now() - startMs
    })
    expect(Math.min(...took)).toBeLessThan(50)
  })
})

describe('the embedded API by socket', () => {
  it('refuses a foreign Host and any Origin', async () => {
    const { server } = start()
    const { url } = await server.listen()
    // Not with `fetch`, which lets nobody choose a Host.
    const ask = (headers: Record<string, string>) =>
      new Promise<number | undefined>((resolve, reject) => {
        const authorization = `Bearer ${server.token}`
        const options = { headers: { authorization, ...headers }, rejectUnauthorized: false }
        get(`${url}/api/v1/namespaces`, options, (response) => {
          response.resume()
          resolve(response.statusCode)
        }).on('error', reject)
      })
    expect(await ask({})).toBe(200)
    expect(await ask({ host: 'evil.example' })).toBe(403)
    expect(await ask({ origin: 'https://evil.example' })).toBe(403)
  })

  it('compresses a long list for whoever takes gzip', async () => {
    const { server, client } = start()
    const data = { text: 'long '.repeat(40_000) }
    await client.create(configMaps, { metadata: { name: 'long', namespace: 'default' }, data })
    const ask = (path: string, encoding: string) =>
      server.fetch(
        new Request(`http://localhost${path}`, {
          headers: { authorization: `Bearer ${server.token}`, 'accept-encoding': encoding },
        }),
      )
    const zipped = await ask('/api/v1/configmaps', 'gzip')
    expect(zipped.headers.get('content-encoding')).toBe('gzip')
    const text = gunzipSync(Buffer.from(await zipped.arrayBuffer())).toString()
    expect(JSON.parse(text).items[0].data).toEqual(data)
    expect((await ask('/api/v1/configmaps', 'gzip;q=0')).headers.get('content-encoding')).toBeNull()
    expect((await ask('/api/v1/secrets', 'gzip')).headers.get('content-encoding')).toBeNull()
  })
})
