import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { type ApiServer, type ApiServerOptions, apiServer } from '../../shared/apiserver/server.ts'
import type { Clock } from '../../shared/clock.ts'
import { systemClock } from '../../shared/clock.ts'
import { configMaps, namespaces } from '../../shared/kinds/object.ts'
import { kubeClient } from '../../shared/kube/client.ts'
import { overSocket } from '../contract/over-socket.ts'
import { settle, virtualClock } from '../support/clock.ts'

const servers: ApiServer[] = []
afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.stop()))
})

function start(options: ApiServerOptions = {}, clientClock: Clock = options.clock ?? systemClock) {
  const server = apiServer(options)
  servers.push(server)
  const transport = server.transport()
  const client = kubeClient({ transport, clock: clientClock, userAgent: 'test/1', retries: 0 })
  return { server, client }
}

const metadata = { name: 'settings', namespace: 'default' }
const settings = { metadata, data: { color: 'red' } }

describe('trouble with requests', () => {
  it('a status stands for as many requests as it was asked for, with its Retry-After', async () => {
    const { server, client } = start()
    server.faults.add({ on: { verb: 'list' }, trouble: { status: 429, retryAfterSeconds: 3 }, times: 1 })
    await expect(client.list(configMaps)).rejects.toMatchObject({ code: 429, retryAfterSeconds: 3 })
    expect((await client.list(configMaps)).items).toEqual([])
  })

  it('meets only what it is about', async () => {
    const { server, client } = start()
    const on = { verb: ['create', 'update'] as const, resource: 'configmaps', namespace: 'default' }
    const heal = server.faults.add({ on, trouble: { status: 503 } })
    await expect(client.create(configMaps, settings)).rejects.toMatchObject({ code: 503 })
    expect((await client.list(namespaces)).items).toHaveLength(4)
    heal()
    await client.create(configMaps, settings)
  })

  it('a connection that breaks before did nothing, one that breaks after did it', async () => {
    const { server, client } = start()
    server.faults.add({ on: { verb: 'create' }, trouble: { reset: 'before' }, times: 1 })
    await expect(client.create(configMaps, settings)).rejects.toMatchObject({ code: 0 })
    expect(await client.get(configMaps, metadata)).toBeUndefined()
    server.faults.add({ on: { verb: 'create' }, trouble: { reset: 'after' }, times: 1 })
    await expect(client.create(configMaps, settings)).rejects.toMatchObject({ code: 0 })
    expect(await client.get(configMaps, metadata)).toMatchObject({ data: { color: 'red' } })
  })

  it('by socket the connection itself breaks', async () => {
    const server = apiServer()
    servers.push(server)
    const { transport } = await overSocket(server)
    const client = kubeClient({ transport, clock: systemClock, userAgent: 'test/1', retries: 0 })
    server.faults.add({ on: { verb: 'create' }, trouble: { reset: 'after' }, times: 1 })
    await expect(client.create(configMaps, settings)).rejects.toMatchObject({ code: 0 })
    expect(await client.get(configMaps, metadata)).toMatchObject({ data: { color: 'red' } })
  })

  it('latency is waited for on the server’s clock', async () => {
    const clock = virtualClock()
    const { server, client } = start({ clock })
    server.faults.add({ trouble: { latencyMs: 5_000 } })
    let isAnswered = false
    const listing = client.list(configMaps).then(() => {
      isAnswered = true
    })
    await clock.advance(4_999)
    expect(isAnswered).toBe(false)
    await clock.advance(1)
    await listing
  })

  it('the same seed meets the same requests', async () => {
    const refusedOf = async (seed: number) => {
      const { server, client } = start({ clock: virtualClock({ seed }) })
      server.faults.add({ trouble: { status: 500 }, probability: 0.5 })
      const refused: boolean[] = []
      for (let request = 0; request < 20; request++)
        refused.push(
          await client.list(configMaps).then(
            () => false,
            () => true,
          ),
        )
      return refused
    }
    const first = await refusedOf(7)
    expect(await refusedOf(7)).toEqual(first)
    expect(new Set(first).size).toBe(2)
    expect(await refusedOf(8)).not.toEqual(first)
  })
})

describe('trouble with watches', () => {
  const read = async (client: ReturnType<typeof start>['client'], resourceVersion: string) => {
    const seen: string[] = []
    const error = await (async () => {
      for await (const { type, object } of client.watch(configMaps, { resourceVersion }))
        seen.push(`${type} ${object.metadata?.name}`)
    })().then(
      () => undefined,
      (thrown: unknown) => thrown,
    )
    return { seen, error }
  }

  it('is cut after so many events', async () => {
    const { server, client } = start()
    const { resourceVersion } = await client.list(configMaps)
    for (const name of ['a', 'b', 'c']) await client.create(configMaps, { metadata: { ...metadata, name } })
    server.faults.add({ on: { verb: 'watch' }, trouble: { cutAfterEvents: 2 }, times: 1 })
    const { seen, error } = await read(client, resourceVersion)
    expect(seen).toEqual(['ADDED a', 'ADDED b'])
    expect(error).toMatchObject({ code: 0 })
  })

  it('stalls: nothing more comes, and no end', async () => {
    const clock = virtualClock()
    const { server, client } = start({ clock })
    const { resourceVersion } = await client.list(configMaps)
    for (const name of ['a', 'b']) await client.create(configMaps, { metadata: { ...metadata, name } })
    server.faults.add({ on: { verb: 'watch' }, trouble: { stallAfterEvents: 1 } })
    const seen: string[] = []
    const watching = (async () => {
      for await (const { object } of client.watch(configMaps, { resourceVersion, idleTimeoutMs: 60_000 }))
        seen.push(object.metadata?.name ?? '')
    })()
    const failed = expect(watching).rejects.toMatchObject({ code: 0 })
    await clock.advance(59_000)
    expect(seen).toEqual(['a'])
    await clock.advance(2_000)
    await failed
  })

  it('a restart ends it; with the history lost the next one is a 410', async () => {
    const { server, client } = start()
    const { resourceVersion } = await client.list(configMaps)
    await client.create(configMaps, settings)
    const watching = read(client, resourceVersion)
    await settle()
    server.restart()
    expect(await watching).toEqual({ seen: ['ADDED settings'], error: undefined })
    server.restart({ history: 'lost' })
    const { seen, error } = await read(client, resourceVersion)
    expect(seen).toEqual([])
    expect(error).toMatchObject({ code: 410, reason: 'Expired' })
  })

  it('a page whose history is gone is a 410 with a token that goes on', async () => {
    const { server, client } = start()
    for (const name of ['a', 'b', 'c']) await client.create(configMaps, { metadata: { ...metadata, name } })
    const first = await client.list(configMaps, { limit: 1 })
    await client.delete(configMaps, { ...metadata, name: 'b' })
    server.compact()
    const error = await client.list(configMaps, { limit: 1, continue: first.continue ?? '' }).catch((e) => e)
    expect(error).toMatchObject({ code: 410, reason: 'Expired' })
    const rest = await client.list(configMaps, { continue: error.status.metadata.continue })
    expect(rest.items.map((item) => item.metadata.name)).toEqual(['c'])
  })

  it('a reader who does not read is cut off, and holds nobody up', async () => {
    const { server, client } = start()
    const slow = await server.transport().fetch('http://embedded.invalid/api/v1/configmaps?watch=1', {})
    const data = { blob: 'x'.repeat(1024 * 1024) }
    for (let index = 0; index < 40; index++)
      await client.create(configMaps, { metadata: { ...metadata, name: `big-${index}` }, data })
    let length = 0
    for await (const chunk of slow.body ?? []) length += chunk.length
    expect(length).toBeLessThan(40 * 1024 * 1024)
    expect((await client.list(configMaps)).items).toHaveLength(40)
  })
})

describe('what a server remembers', () => {
  it('its stamps follow a skewed clock', async () => {
    const { server, client } = start({ clock: virtualClock({ startMs: Date.UTC(2026, 0, 1) }) })
    server.skew(86_400_000)
    const made = await client.create(configMaps, settings)
    expect(made.metadata.creationTimestamp).toBe('2026-01-02T00:00:00Z')
  })

  it('with a folder its objects outlive it; a torn last line loses that write alone', async () => {
    const dataFolder = await mkdtemp(join(tmpdir(), 'mutantops-journal-'))
    try {
      const before = start({ dataFolder })
      const made = await before.client.create(configMaps, settings)
      await before.client.create(configMaps, { metadata: { ...metadata, name: 'gone' } })
      await before.client.delete(configMaps, { ...metadata, name: 'gone' })
      await before.server.stop()
      const file = join(dataFolder, 'journal.jsonl')
      const whole = await readFile(file, 'utf8')
      await writeFile(file, `${whole}{"revision":999,"storage":"configmaps","key":"default/to`)
      const after = start({ dataFolder })
      expect(await after.client.get(configMaps, metadata)).toEqual(made)
      const { items, resourceVersion } = await after.client.list(configMaps)
      expect(items).toHaveLength(1)
      const next = await after.client.create(configMaps, { metadata: { ...metadata, name: 'next' } })
      expect(Number(next.metadata.resourceVersion)).toBeGreaterThan(Number(made.metadata.resourceVersion))
      expect(Number(next.metadata.resourceVersion)).toBeGreaterThan(Number(resourceVersion))
    } finally {
      await rm(dataFolder, { recursive: true })
    }
  })
})
