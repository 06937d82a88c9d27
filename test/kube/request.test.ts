import { afterEach, describe, expect, it } from 'vitest'
import { configMaps } from '../../shared/kinds/object.ts'
import { kubeClient } from '../../shared/kube/client.ts'
import { type Connection, connect } from '../../shared/kube/connect.ts'
import { settle, type VirtualClock, virtualClock } from '../support/clock.ts'
import { answerJson, type HttpServer, httpServer } from '../support/http.ts'
import { writeKubeconfig } from '../support/kubeconfig.ts'

const open: (HttpServer | Connection)[] = []
afterEach(async () => {
  for (const one of open.splice(0).toReversed()) await one.close()
})

const target = { namespace: 'shop', name: 'web' }
const found = { metadata: { name: 'web', namespace: 'shop', uid: 'u', resourceVersion: '1' } }

/** A client over real sockets, on a clock of the test's. */
async function world(answer: Parameters<typeof httpServer>[0]) {
  const server = await httpServer(answer)
  const clock = virtualClock()
  const connection = await connect({ env: {}, kubeconfig: await writeKubeconfig(server.url) })
  open.push(server, connection)
  const told: { code: number; wasReset: boolean }[] = []
  const client = kubeClient({
    transport: connection,
    clock,
    userAgent: 'test',
    onRequest: ({ code, wasReset }) => told.push({ code, wasReset }),
  })
  return { server, clock, client, told }
}

/** Lets the clock run until `work` has ended. */
async function running<T>(clock: VirtualClock, work: Promise<T>): Promise<T> {
  let over = false
  const done = work.finally(() => {
    over = true
  })
  done.catch(() => {})
  while (!over) {
    await clock.advance(50)
    await settle()
  }
  return done
}

describe('a request to the API', () => {
  it('is repeated at once when a connection that was kept is reset, and the reset is counted apart', async () => {
    let count = 0
    const { client, told, clock, server } = await world((_, response) => {
      if (++count === 2) response.socket?.destroy()
      else answerJson(response, 200, found)
    })
    await client.get(configMaps, target)
    // The virtual clock stands still: a wait of any length would hang.
    expect(await client.get(configMaps, target)).toMatchObject(found)
    expect(clock.monotonicMs()).toBe(0)
    expect(told).toEqual([
      { code: 200, wasReset: false },
      { code: 0, wasReset: true },
      { code: 200, wasReset: false },
    ])
    expect(server.requests).toHaveLength(3)
  })

  it('that creates is never repeated after a reset: nobody knows whether it was done', async () => {
    const { client, server, clock } = await world((_, response) => response.socket?.destroy())
    const object = { metadata: { name: 'web', namespace: 'shop' } }
    await expect(running(clock, client.create(configMaps, object))).rejects.toMatchObject({
      code: 0,
      reason: 'ConnectionReset',
    })
    expect(server.requests).toHaveLength(1)
  })

  it('waits as long as a 429 asks, whatever it does', async () => {
    const atMs: number[] = []
    const { client, clock } = await world((_, response) => {
      atMs.push(clock.monotonicMs())
      if (atMs.length === 1) response.setHeader('retry-after', '3')
      answerJson(response, atMs.length === 1 ? 429 : 201, found)
    })
    await running(clock, client.create(configMaps, found))
    expect(atMs[1]).toBeGreaterThanOrEqual(3_000)
    expect(atMs[1]).toBeLessThan(3_500)
  })

  it('is given up when its time is over, also in the middle of the body', async () => {
    const { client, clock } = await world((_, response) => {
      response.writeHead(200, { 'content-type': 'application/json' })
      response.write('{"metadata":')
    })
    const outcome = running(clock, client.get(configMaps, target, { timeoutMs: 2_000, retries: 0 }))
    await expect(outcome).rejects.toMatchObject({ code: 0, reason: 'Timeout' })
  })

  it('is told as refused when nobody listens', async () => {
    const { client, server, clock } = await world(() => {})
    await server.close()
    const outcome = running(clock, client.get(configMaps, target, { retries: 0 }))
    await expect(outcome).rejects.toThrow(
      'GET /api/v1/namespaces/shop/configmaps/web: no answer (ECONNREFUSED)',
    )
  })
})
