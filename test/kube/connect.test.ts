import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type Connection, connect, NoClusterError } from '../../shared/kube/connect.ts'
import { virtualClock } from '../support/clock.ts'
import { answerJson, type HttpServer, httpServer } from '../support/http.ts'

let folder: string
const open: (HttpServer | Connection)[] = []

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'connect-'))
})
afterEach(async () => {
  for (const one of open.splice(0)) await one.close()
  await rm(folder, { recursive: true })
})

async function file(name: string, content: unknown): Promise<string> {
  const path = join(folder, name)
  await mkdir(join(path, '..'), { recursive: true })
  await writeFile(path, typeof content === 'string' ? content : JSON.stringify(content))
  return path
}

async function server(answer = (_: HttpServer['requests'][number]) => 200): Promise<HttpServer> {
  const started = await httpServer((request, response) => answerJson(response, answer(request), {}))
  open.push(started)
  return started
}

async function connected(options: Parameters<typeof connect>[0]): Promise<Connection> {
  const connection = await connect(options)
  open.push(connection)
  return connection
}

function kubeconfig(url: string, user: object = { token: 'of-the-file' }, context: object = {}): object {
  return {
    clusters: [{ name: 'here', cluster: { server: url } }],
    users: [{ name: 'me', user }],
    contexts: [{ name: 'dev', context: { cluster: 'here', user: 'me', ...context } }],
    'current-context': 'dev',
  }
}

async function get(connection: Connection): Promise<number> {
  const response = await connection.fetch(`${connection.baseUrl}/version`, { method: 'GET' })
  await response.text()
  return response.status
}

describe('a kubeconfig', () => {
  it('is taken from the option, then KUBECONFIG, then ~/.kube/config, and before the pod', async () => {
    const api = await server()
    const pod = { KUBERNETES_SERVICE_HOST: '10.0.0.1', KUBERNETES_SERVICE_PORT: '443' }
    await file('sa/token', 'of-the-pod')
    const serviceAccountFolder = join(folder, 'sa')
    const config = (namespace: string) => kubeconfig(api.url, {}, { namespace })
    await file('.kube/config', config('from-home'))
    const named = await file('named', config('from-variable'))
    const given = await file('given', config('from-option'))
    const env = { ...pod, HOME: folder }
    expect((await connected({ env, serviceAccountFolder })).namespace).toBe('from-home')
    expect((await connected({ env: { ...env, KUBECONFIG: named } })).namespace).toBe('from-variable')
    const all = { env: { ...env, KUBECONFIG: named }, kubeconfig: given, serviceAccountFolder }
    expect((await connected(all)).namespace).toBe('from-option')
    expect((await connected({ ...all, inCluster: true })).mode).toBe('in_cluster')
  })

  it('authenticates by token, token file, password and exec plugin', async () => {
    const api = await server()
    await file('token', 'of-a-token-file\n')
    const plugin = await file(
      'plugin',
      `#!/bin/sh\nprintf '{"apiVersion":"client.authentication.k8s.io/v1","status":{"token":"%s-%s"}}' "$1" "$KIND"`,
    )
    await chmod(plugin, 0o755)
    const exec = {
      apiVersion: 'client.authentication.k8s.io/v1',
      command: './plugin',
      args: ['of-a'],
      env: [],
    }
    const users = [
      { token: 'plain' },
      { token: 'loses', tokenFile: 'token' },
      { username: 'ada', password: 'x' },
      { exec: { ...exec, env: [{ name: 'KIND', value: 'plugin' }] } },
    ]
    for (const user of users) {
      const path = await file('config', kubeconfig(api.url, user))
      expect(await get(await connected({ env: {}, kubeconfig: path }))).toBe(200)
    }
    expect(api.requests.map((request) => request.headers.authorization)).toEqual([
      'Bearer plain',
      'Bearer of-a-token-file',
      `Basic ${Buffer.from('ada:x').toString('base64')}`,
      'Bearer of-a-plugin',
    ])
  })

  it('of several files is merged as kubectl does: the first to name a thing wins', async () => {
    const api = await server()
    const first = await file('first', { ...kubeconfig(api.url), users: [] })
    const second = await file('second', { ...kubeconfig('https://10.9.9.9'), 'current-context': 'other' })
    const connection = await connected({ env: { KUBECONFIG: `${first}:${second}` } })
    await get(connection)
    expect(api.requests[0]?.headers.authorization).toBe('Bearer of-the-file')
    expect(connection.describe).toBe(`context "dev" of kubeconfig ${first}:${second}`)
  })

  it('keeps one connection, and reads the file again when the server refuses the token', async () => {
    let valid = 'Bearer first'
    const clock = virtualClock()
    const api = await server((request) => (request.headers.authorization === valid ? 200 : 401))
    const path = await file('config', kubeconfig(api.url, { token: 'first' }))
    const connection = await connected({ env: {}, kubeconfig: path, clock })
    for (let count = 0; count < 10; count++) expect(await get(connection)).toBe(200)
    // Two, because a request may come while the first connection is still putting its answer away.
    expect(api.connections()).toBeLessThanOrEqual(2)
    const before = api.requests.length
    valid = 'Bearer second'
    await file('config', kubeconfig(api.url, { token: 'second' }))
    await clock.advance(3_000)
    expect([await get(connection), api.requests.length]).toEqual([200, before + 2])
    valid = 'Bearer nobody-has-it'
    await clock.advance(3_000)
    expect([await get(connection), api.requests.length]).toEqual([401, before + 3])
  })

  it('says what it lacks, naming file and context, and never turns into another cluster', async () => {
    const good = kubeconfig('https://10.9.9.9')
    const path = await file('good', good)
    const missing = join(folder, 'missing')
    const rows: [Parameters<typeof connect>[0], string][] = [
      [{ env: { KUBECONFIG: path }, context: 'prod' }, `${path}: it has no context "prod" (it has: "dev")`],
      [{ env: { KUBECONFIG: missing } }, `${missing}: it does not exist`],
      [{ env: { KUBECONFIG: `${path}:${missing}` } }, `${missing}: it does not exist`],
      [{ env: { KUBECONFIG: folder } }, `${folder}: it is a folder`],
      [{ env: { KUBECONFIG: await file('empty', '') } }, 'empty: it is empty'],
      [{ env: { KUBECONFIG: await file('text', 'hello') } }, 'text: it is not a kubeconfig'],
      [{ env: { KUBECONFIG: await file('bad', 'token: [secret-word\n') } }, 'bad: it is not YAML'],
      [
        { env: { KUBECONFIG: await file('no-user', { ...good, users: [] }) } },
        'the user "me", which it does not have',
      ],
      [
        { env: { KUBECONFIG: await file('no-cluster', { ...good, clusters: [] }) } },
        'the cluster "here", which',
      ],
      [
        { env: { KUBECONFIG: await file('no-current', { ...good, 'current-context': '' }) } },
        'no current-context',
      ],
      [{ env: { KUBECONFIG: await file('http', kubeconfig('http://10.9.9.9')) } }, 'plain http'],
      [{ env: { HOME: folder }, context: 'prod' }, '.kube/config: it does not exist'],
    ]
    for (const [options, message] of rows) {
      const error = await connect(options).catch((e: Error) => e)
      expect(error).toMatchObject({ name: 'KubeconfigError', message: expect.stringContaining(message) })
      expect(String(error)).not.toContain('secret-word')
    }
  })

  it('fails the request, not the process, when an exec plugin cannot run', async () => {
    const exec = { apiVersion: 'client.authentication.k8s.io/v1', command: 'no-such-plugin-here' }
    const path = await file('config', kubeconfig('https://127.0.0.1:1', { exec }))
    const connection = await connected({ env: {}, kubeconfig: path })
    await expect(get(connection)).rejects.toMatchObject({
      name: 'KubeError',
      message: `Cannot get credentials for context "dev" of kubeconfig ${path}`,
    })
  })
})

describe('without a kubeconfig', () => {
  it('there is no cluster, and localhost:8080 is not one', async () => {
    await expect(connect({ env: { HOME: folder } })).rejects.toThrow(NoClusterError)
    await expect(connect({ env: { HOME: folder }, inCluster: true })).rejects.toThrow(NoClusterError)
  })

  it('there is none in a pod without a token either', async () => {
    const env = { KUBERNETES_SERVICE_HOST: '10.0.0.1', KUBERNETES_SERVICE_PORT: '443' }
    await expect(connect({ env, serviceAccountFolder: folder })).rejects.toThrow(NoClusterError)
  })

  it('a pod has its namespace and an address in brackets where it is IPv6', async () => {
    await file('token', 'of-the-pod')
    await file('namespace', 'shop\n')
    const env = { KUBERNETES_SERVICE_HOST: 'fd00::1', KUBERNETES_SERVICE_PORT: '443' }
    const connection = await connected({ env, serviceAccountFolder: folder })
    expect([connection.baseUrl, connection.namespace]).toEqual(['https://[fd00::1]:443', 'shop'])
  })
})
