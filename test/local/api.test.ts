import { chmod, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { stringify } from 'yaml'
import { apiServer } from '../../shared/apiserver/server.ts'
import { systemClock } from '../../shared/clock.ts'
import { kubeClient } from '../../shared/kube/client.ts'
import { connect } from '../../shared/kube/connect.ts'
import { type Api, openApi } from '../../shared/local/session/api.ts'
import { newFolder } from '../support/folder.ts'

let folder = ''
let open: { stop(): Promise<void> }[] = []

beforeEach(async () => {
  folder = newFolder()
})
afterEach(async () => {
  await Promise.all(open.map((one) => one.stop()))
  open = []
})

async function opened(cluster?: {
  kubeconfig: string | undefined
  context: string | undefined
}): Promise<Api> {
  const api = await openApi({ cluster, folder, env: { HOME: folder }, clock: systemClock })
  open.push(api)
  return api
}

/** The versions that a process with this KUBECONFIG is told. */
async function askedBy(kubeconfig: string): Promise<unknown> {
  const connection = await connect({ env: { KUBECONFIG: kubeconfig } })
  const client = kubeClient({ transport: connection, clock: systemClock, userAgent: 'test' })
  const { body } = await client.request('GET', '/version')
  await connection.close()
  return body
}

/** Somebody's cluster, and a kubeconfig with two contexts: a good one and one that leads nowhere. */
async function userCluster(current: 'good' | 'bad') {
  const server = apiServer()
  open.push(server)
  const { url } = await server.listen()
  const config = server.kubeconfig(url) as { clusters: { cluster: object }[]; users: { user: object }[] }
  const file = join(folder, 'config')
  await writeFile(
    file,
    stringify({
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [
        { name: 'good', cluster: config.clusters[0]?.cluster },
        { name: 'bad', cluster: { server: 'https://127.0.0.1:1' } },
      ],
      users: [{ name: 'me', user: config.users[0]?.user }],
      contexts: [
        { name: 'good', context: { cluster: 'good', user: 'me', namespace: 'shop' } },
        { name: 'bad', context: { cluster: 'bad', user: 'me' } },
      ],
      'current-context': current,
    }),
  )
  return { file, url }
}

describe('the API of a run', () => {
  it('embedded: writes a kubeconfig that only its owner can read, and that works', async () => {
    const file = join(folder, 'kubeconfig')
    await writeFile(file, 'left from before, and open')
    await chmod(file, 0o644)
    const api = await opened()
    expect(api).toMatchObject({ isEmbedded: true, kubeconfig: file, namespace: 'default' })
    expect((await stat(file)).mode & 0o777).toBe(0o600)
    expect(await askedBy(file)).toMatchObject({ major: '1' })
  })

  it("the user's: takes the file and its current context", async () => {
    const { file, url } = await userCluster('good')
    const api = await opened({ kubeconfig: file, context: undefined })
    expect(api).toMatchObject({ isEmbedded: false, kubeconfig: file, namespace: 'shop' })
    expect(api.describe).toContain(url)
  })

  it("the user's: another context reaches the processes too, and the user's file stays as it is", async () => {
    const { file } = await userCluster('bad')
    const before = await readFile(file, 'utf8')
    const api = await opened({ kubeconfig: file, context: 'good' })
    expect(await askedBy(api.kubeconfig)).toMatchObject({ major: '1' })
    expect(await readFile(file, 'utf8')).toBe(before)
  })

  it.each([
    [
      'a cluster that does not answer',
      { context: 'bad' },
      /^The API server of context "bad" .* at 127\.0\.0\.1:1 does not answer: .*ECONNREFUSED/,
    ],
    ['a context that is not there', { context: 'none' }, /none/],
    ['a file that is not there', { kubeconfig: '/no/such/file', context: undefined }, /\/no\/such\/file/],
  ])('is refused by name: %s', async (_, changes, message) => {
    const { file } = await userCluster('good')
    await expect(opened({ kubeconfig: file, ...changes })).rejects.toThrow(message)
  })

  it('a context alone is looked for in the usual file', async () => {
    await expect(opened({ kubeconfig: undefined, context: 'good' })).rejects.toThrow(/\.kube\/config/)
  })
})
