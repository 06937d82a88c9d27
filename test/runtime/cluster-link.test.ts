import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { apiServer } from '../../shared/apiserver/server.ts'
import { systemClock } from '../../shared/clock.ts'
import { kubeClient } from '../../shared/kube/client.ts'
import { NoClusterError } from '../../shared/kube/connect.ts'
import { type LinkOptions, linkToCluster } from '../../shared/runtime/cluster-link.ts'
import { faultyWire } from '../../shared/runtime/faulty-wire.ts'
import { virtualClock } from '../support/clock.ts'
import { newFolder } from '../support/folder.ts'

const home = newFolder()
const emptyHome = newFolder()
const serviceAccountFolder = newFolder()
const fileOf = (name: string, text: string) => {
  const path = join(home, name)
  writeFileSync(path, text)
  return path
}
const kubeconfig = (server: string, context = 'test', token = 'test') =>
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'test', cluster: { server } }],
    users: [{ name: 'test', user: { token } }],
    contexts: [{ name: 'test', context: { cluster: 'test', user: 'test', namespace: 'of-context' } }],
    'current-context': context,
  })
const nobodyListens = 'https://127.0.0.1:1'
mkdirSync(join(home, '.kube'))
fileOf('.kube/config', kubeconfig(nobodyListens))
const inPod = { KUBERNETES_SERVICE_HOST: '127.0.0.1', KUBERNETES_SERVICE_PORT: '1' }
writeFileSync(join(serviceAccountFolder, 'token'), 'a-token')
writeFileSync(join(serviceAccountFolder, 'namespace'), 'of-service-account')

function link(options: Partial<LinkOptions> & { required?: boolean } = {}) {
  return linkToCluster({
    config: { enabled: true, required: options.required ?? false },
    pod: { labels: {} },
    env: { HOME: emptyHome },
    clock: systemClock,
    userAgent: 'test',
    serviceAccountFolder: '/nowhere',
    ...options,
  })
}

describe('AC3: modes', () => {
  it.each([
    ['kubeconfig', { env: { KUBECONFIG: join(home, '.kube/config'), HOME: emptyHome } }, 'of-context'],
    ['kubeconfig', { env: { HOME: home } }, 'of-context'],
    ['kubeconfig', { env: { HOME: home, ...inPod }, serviceAccountFolder }, 'of-context'],
    ['in_cluster', { env: { HOME: emptyHome, ...inPod }, serviceAccountFolder }, 'of-service-account'],
    ['in_cluster', { env: inPod, serviceAccountFolder }, 'of-service-account'],
    ['detached', { env: { HOME: emptyHome } }, ''],
    ['detached', { env: {}, serviceAccountFolder }, ''],
    ['disabled', { env: { HOME: home }, config: { enabled: false, required: true } }, ''],
  ])('%s: %j', async (mode, options, namespace) => {
    const made = await link(options)
    expect(made).toMatchObject({ mode, namespace })
    expect(made.client !== undefined).toBe(mode === 'kubeconfig' || mode === 'in_cluster')
    await made.close()
  })

  it("custom: with a client, or with a connect function that gets the pod's name", async () => {
    const server = apiServer()
    const client = kubeClient({ transport: server.transport(), clock: systemClock, userAgent: 'test' })
    expect(await link({ client })).toMatchObject({ mode: 'custom', client })
    const names: unknown[] = []
    const pod = { name: 'web-1', labels: {} }
    const connects = [async () => client, async () => server.transport()]
    for (const connect of connects) {
      const made = await link({
        pod,
        connect: ({ podName }) => {
          names.push(podName)
          return connect()
        },
      })
      expect(made.mode).toBe('custom')
      expect((await made.client?.request('GET', '/version'))?.status).toBe(200)
    }
    expect(names).toEqual(['web-1', 'web-1'])
    await server.stop()
  })

  it('custom: a connect function that finds no cluster means detached; one that fails is an error', async () => {
    const throwing = (error: Error) => async () => {
      throw error
    }
    expect((await link({ connect: throwing(new NoClusterError('none')) })).mode).toBe('detached')
    await expect(link({ connect: throwing(new NoClusterError('none')), required: true })).rejects.toThrow(
      'none',
    )
    await expect(link({ connect: throwing(new Error('broken')) })).rejects.toThrow('broken')
  })
})

describe('AC3, case 50: a kubeconfig that is there and cannot be used is an error, never detached', () => {
  const folder = join(home, 'folder')
  mkdirSync(folder)
  const good = join(home, '.kube/config')
  it.each([
    ['a path that does not exist', join(home, 'mistyped'), 'mistyped'],
    ['a folder', folder, 'folder'],
    ['an empty file', fileOf('empty', ''), 'empty'],
    ['no YAML', fileOf('broken', 'a: ['), 'broken'],
    ['something else', fileOf('list', '- a'), 'list'],
    ['two files of which one is missing', `${good}:${join(home, 'gone')}`, 'gone'],
    ['a context that does not exist', fileOf('context', kubeconfig(nobodyListens, 'other')), 'other'],
    [
      'a user that does not exist',
      fileOf('user', kubeconfig(nobodyListens).replace('"user":"test"', '"user":"ghost"')),
      'ghost',
    ],
  ])('%s', async (_, path, named) => {
    for (const required of [false, true])
      await expect(link({ env: { KUBECONFIG: path, HOME: emptyHome }, required })).rejects.toThrow(named)
  })
})

describe('AC3: required', () => {
  it('without any cluster the start fails, and says what was looked for', async () => {
    await expect(link({ required: true })).rejects.toThrow(/no kubeconfig .* and no service account/)
  })

  it('a cluster that refuses the connection fails the start; not required, it does not', async () => {
    const env = { HOME: home }
    await expect(link({ env, required: true })).rejects.toThrow(
      'The Kubernetes API is required (mode kubeconfig) and does not answer',
    )
    const made = await link({ env })
    expect(made.mode).toBe('kubeconfig')
    await made.close()
  })

  it('an expired token fails the start with its reason, and without the token', async () => {
    const server = apiServer()
    const { url, close } = await server.listen()
    const ca = (server.kubeconfig(url) as { clusters: { cluster: object }[] }).clusters[0]?.cluster
    const config = kubeconfig(url, 'test', 'expired-secret').replace(
      `"cluster":{"server":"${url}"}`,
      `"cluster":${JSON.stringify(ca)}`,
    )
    const env = { KUBECONFIG: fileOf('expired', config) }
    const failure: Error = await link({ env, required: true }).then(
      () => new Error('It has started'),
      (error) => error,
    )
    expect(String(failure.cause)).toContain('401')
    expect(`${failure} ${failure.cause}`).not.toContain('expired-secret')
    await close()
    await server.stop()
  })

  it('an API that hangs is waited for 5 s and no longer', async () => {
    const clock = virtualClock()
    const server = apiServer({ clock })
    const wire = faultyWire(server.transport(), clock)
    wire.fault = () => 'hangs'
    let failed: unknown
    link({ clock, required: true, connect: async () => wire }).catch((error) => {
      failed = error
    })
    await clock.advance(4_999)
    expect(failed).toBeUndefined()
    await clock.advance(1)
    expect(String(failed)).toContain('does not answer')
  })
})
