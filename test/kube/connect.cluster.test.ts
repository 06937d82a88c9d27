import { copyFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer as createHttpServer } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { type AddressInfo, connect as connectTcp } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { TLSSocket } from 'node:tls'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { systemClock } from '../../shared/clock.ts'
import { configMaps, namespaces } from '../../shared/kinds/object.ts'
import { kubeClient } from '../../shared/kube/client.ts'
import { type Connection, type ConnectOptions, connect } from '../../shared/kube/connect.ts'
import { realCluster } from '../control-plane/cluster.ts'

let folder: string
const open: { close(): unknown }[] = []

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'connect-'))
})
afterEach(async () => {
  for (const one of open.splice(0)) await one.close()
  await rm(folder, { recursive: true })
})

async function connected(options: ConnectOptions): Promise<Connection> {
  const connection = await connect(options)
  open.push(connection)
  return connection
}

const clientOf = (transport: Connection) =>
  kubeClient({ transport, clock: systemClock, userAgent: 'mutantops-test' })

/** A port that listens on the loopback address. */
async function listening(server: {
  listen(port: number, host: string, done: () => void): unknown
  address(): unknown
}) {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return (server.address() as AddressInfo).port
}

/** The cluster's kubeconfig with a changed cluster and user. */
async function kubeconfig(cluster: object, user?: object): Promise<string> {
  const config = JSON.parse(await readFile(realCluster.kubeconfigFile, 'utf8'))
  Object.assign(config.clusters[0].cluster, cluster)
  if (user) config.users[0].user = user
  const path = join(folder, 'kubeconfig')
  await writeFile(path, JSON.stringify(config))
  return path
}

it('a kubeconfig reaches the real API server, checked by its CA', async () => {
  const client = clientOf(await connected({ env: { KUBECONFIG: realCluster.kubeconfigFile } }))
  expect(await client.get(namespaces, { name: 'default' })).toBeDefined()
  // The same server under a name that its certificate does not hold.
  const path = await kubeconfig({ 'tls-server-name': 'elsewhere.example' })
  const wrong = clientOf(await connected({ env: { KUBECONFIG: path } }))
  await expect(wrong.get(namespaces, { name: 'default' }, { retries: 0 })).rejects.toMatchObject({ code: 0 })
})

it("a pod's service account reaches it, does what its role allows, and goes on when its token is replaced", async () => {
  const namespace = await realCluster.newNamespace()
  const token = await realCluster.tokenFor(namespace, 'pod')
  for (const grant of [
    ['role', 'pod', '--verb=list', '--resource=configmaps'],
    ['rolebinding', 'pod', '--role=pod', `--serviceaccount=${namespace}:pod`],
  ])
    await realCluster.kubectl(['create', ...grant, '-n', namespace])
  await writeFile(join(folder, 'token'), 'no-longer-valid')
  await writeFile(join(folder, 'namespace'), namespace)
  await copyFile(realCluster.caFile, join(folder, 'ca.crt'))
  const { hostname, port } = new URL(realCluster.server)
  // Its traffic does not go through the proxy of the environment (which nobody answers).
  const env = {
    KUBERNETES_SERVICE_HOST: hostname,
    KUBERNETES_SERVICE_PORT: port,
    HTTPS_PROXY: 'http://127.0.0.1:1',
  }
  const connection = await connected({ env, serviceAccountFolder: folder })
  const client = clientOf(connection)
  expect(connection).toMatchObject({ mode: 'in_cluster', namespace })
  await expect(client.list(configMaps, { namespace })).rejects.toMatchObject({ code: 401 })
  await writeFile(join(folder, 'token'), token)
  await expect
    .poll(() => client.list(configMaps, { namespace }).then(({ items }) => items, String), {
      timeout: 10_000,
    })
    .toEqual([])
  await expect(client.list(configMaps)).rejects.toMatchObject({ code: 403 })
})

it('a proxy-url is followed', async () => {
  const tunnels: string[] = []
  const proxy = createHttpServer().on('connect', (request, socket) => {
    tunnels.push(request.url ?? '')
    const { hostname, port } = new URL(`http://${request.url}`)
    const upstream = connectTcp(Number(port), hostname, () => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n')
      upstream.pipe(socket).pipe(upstream)
    })
    for (const end of [upstream, socket]) end.on('error', () => {})
  })
  const port = await listening(proxy)
  const path = await kubeconfig({ 'proxy-url': `http://127.0.0.1:${port}` })
  const connection = await connected({ env: { KUBECONFIG: path } })
  open.push(proxy)
  expect(await clientOf(connection).get(namespaces, { name: 'default' })).toBeDefined()
  expect(tunnels).toEqual([new URL(realCluster.server).host])
})

it('a client certificate is shown', async () => {
  const cert = await readFile(realCluster.caFile)
  const key = await readFile(join(dirname(realCluster.caFile), 'apiserver.key'))
  const server = createTlsServer(
    { cert, key, requestCert: true, rejectUnauthorized: false },
    (request, response) => {
      const shown = (request.socket as TLSSocket).getPeerCertificate()
      response.end(JSON.stringify({ shown: shown.fingerprint256 }))
    },
  )
  const port = await listening(server)
  const path = await kubeconfig(
    { server: `https://127.0.0.1:${port}` },
    { 'client-certificate-data': cert.toString('base64'), 'client-key-data': key.toString('base64') },
  )
  const connection = await connected({ env: { KUBECONFIG: path } })
  open.push(server)
  const { body } = await clientOf(connection).request('GET', '/')
  expect(body).toEqual({ shown: expect.stringMatching(/^([0-9A-F]{2}:){31}/) })
})
