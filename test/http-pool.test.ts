import { afterEach, describe, expect, it } from 'vitest'
import { type HttpPool, httpPool } from '../shared/http-pool.ts'
import { answerJson, type HttpServer, httpServer } from './support/http.ts'

const open: { close?(): Promise<void>; destroy?(): void }[] = []
afterEach(async () => {
  for (const one of open.splice(0).toReversed()) await (one.destroy ?? one.close)?.call(one)
})

async function world(
  answer: Parameters<typeof httpServer>[0],
): Promise<{ server: HttpServer; pool: HttpPool }> {
  const server = await httpServer(answer)
  const pool = httpPool()
  open.push(server, pool)
  return { server, pool }
}

describe('a pool of connections', () => {
  it('sends method, headers and body, and gives status, headers and body', async () => {
    const { server, pool } = await world((request, response) => {
      response.setHeader('x-answer', 'yes')
      answerJson(response, 201, { got: request.body })
    })
    const headers = { 'content-type': 'text/plain', 'x-ask': 'please' }
    const response = await pool.fetch(`${server.url}/a?b=c`, { method: 'DELETE', headers, body: 'größe' })
    expect([response.status, response.headers.get('x-answer')]).toEqual([201, 'yes'])
    expect(await response.json()).toEqual({ got: 'größe' })
    expect(server.requests[0]).toMatchObject({
      method: 'DELETE',
      url: '/a?b=c',
      headers: { 'x-ask': 'please', 'content-length': '7' },
    })
  })

  it('keeps a connection, also after answers without a body, until it is retired', async () => {
    const { server, pool } = await world((_, response) => response.writeHead(204).end())
    for (let count = 0; count < 5; count++) expect((await pool.fetch(server.url, {})).body).toBeNull()
    expect(server.connections()).toBeLessThanOrEqual(2)
    const before = server.connections()
    pool.retire()
    for (let count = 0; count < 3; count++) await pool.fetch(server.url, {})
    expect(server.connections()).toBe(before + 3)
  })

  it('lets what is in flight end in peace when it is retired, and cuts it when it is destroyed', async () => {
    const answers: (() => void)[] = []
    const { server, pool } = await world((_, response) => {
      answers.push(() => answerJson(response, 200, 'done'))
    })
    const retired = pool.fetch(server.url, {})
    await expect.poll(() => answers.length).toBe(1)
    pool.retire()
    answers[0]?.()
    expect(await (await retired).json()).toBe('done')
    const cut = pool.fetch(server.url, {}).catch((error: NodeJS.ErrnoException) => error.code)
    await expect.poll(() => answers.length).toBe(2)
    pool.destroy()
    expect(await cut).toBe('ECONNRESET')
  })

  it('follows no redirect: it is an answer, or an error where that was asked for', async () => {
    const { server, pool } = await world((_, response) =>
      response.writeHead(302, { location: '/else' }).end(),
    )
    expect((await pool.fetch(server.url, { redirect: 'manual' })).status).toBe(302)
    await expect(pool.fetch(server.url, { redirect: 'error' })).rejects.toThrow('redirect')
    expect(server.requests.map(({ url }) => url)).toEqual(['/', '/'])
  })

  it("throws the signal's reason when it is aborted, before and while it waits, and ends a body", async () => {
    const { server, pool } = await world((_, response) => {
      response.writeHead(200).write('first')
    })
    const reason = new Error('enough')
    await expect(pool.fetch(server.url, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason)
    const stop = new AbortController()
    const response = await pool.fetch(server.url, { signal: stop.signal })
    const reader = response.body?.getReader()
    expect(new TextDecoder().decode((await reader?.read())?.value)).toBe('first')
    stop.abort(reason)
    await expect(reader?.read()).rejects.toBe(reason)
    expect(server.requests).toHaveLength(1)
  })

  it('refuses what is neither http nor https', async () => {
    const { pool } = await world(() => {})
    await expect(pool.fetch('file:///etc/passwd', {})).rejects.toThrow('Cannot fetch over file:')
  })
})
