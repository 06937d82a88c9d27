import { execFile } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { apiServer } from '../../shared/apiserver/server.ts'
import { systemClock } from '../../shared/clock.ts'
import { objectEvent } from '../../shared/cloudevents/envelope.ts'
import { binaryOf } from '../../shared/cloudevents/write.ts'
import { deployments } from '../../shared/kinds/object.ts'
import { kubeClient } from '../../shared/kube/client.ts'
import { mutation } from '../support/builders.ts'
import { installCrds } from '../support/crds.ts'
import { functionProcess } from '../support/process.ts'

const build = fileURLToPath(new URL('../../knative/build.ts', import.meta.url))
const server = apiServer()
const admin = kubeClient({ transport: server.transport(), clock: systemClock, userAgent: 'test' })
let folder: string
let program: string
let kubeconfig: string
let accountFolder: string
let port: number

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'mutantops-bundle-'))
  const dist = join(folder, 'dist')
  await promisify(execFile)(process.execPath, [build, dist])
  program = join(dist, 'main.js')
  const listening = await server.listen()
  port = listening.port
  const config = server.kubeconfig(listening.url) as { clusters: { cluster: Record<string, string> }[] }
  kubeconfig = join(folder, 'kubeconfig')
  await writeFile(kubeconfig, JSON.stringify(config))
  accountFolder = folder
  await writeFile(join(accountFolder, 'token'), server.token)
  const ca = config.clusters[0]?.cluster['certificate-authority-data'] ?? ''
  await writeFile(join(accountFolder, 'ca.crt'), Buffer.from(ca, 'base64'))
  await installCrds(admin)
}, 60_000)
afterAll(async () => {
  await server.stop()
  await rm(folder, { recursive: true, force: true })
})

describe('the bundle', { timeout: 30_000 }, () => {
  test.each([
    ['with a kubeconfig', () => ({ KUBECONFIG: kubeconfig })],
    [
      'as in a pod',
      () => ({
        SERVICE_ACCOUNT_FOLDER: accountFolder,
        // A kubeconfig for elsewhere that happens to be there is not for it.
        KUBECONFIG: join(folder, 'nowhere'),
        KUBERNETES_SERVICE_HOST: '127.0.0.1',
        KUBERNETES_SERVICE_PORT: String(port),
      }),
    ],
  ])('%s reconciles what it is sent, tells its metrics, and ends in order', async (how, env) => {
    const name = how.replaceAll(' ', '-')
    const object = mutation(name)
      .with('red', 1)
      .based(({ metadata }) => {
        metadata.name = name
      })
    const { metadata } = await admin.create(object.kind, object.in('default').object())
    const { uid, resourceVersion } = metadata
    const owner = { apiVersion: 'neiam.org/v1', kind: 'Mutation', namespace: 'default', name, uid }
    const message = binaryOf(
      objectEvent({
        cluster: 'c',
        verb: 'applied',
        owner,
        changed: { uid, resourceVersion },
        cause: 'object',
      }),
    )
    const running = await functionProcess('mutation', env(), { program })
    try {
      const answer = await fetch(running.url, {
        method: 'POST',
        headers: message.headers,
        body: String(message.body),
      })
      expect([answer.status, running.lines.at(-1)?.error]).toEqual([204, undefined])
      expect(await admin.get(deployments, { namespace: 'default', name: `${name}-red` })).toBeDefined()
      expect(await (await fetch(`${running.url}/metrics`)).text()).toContain('mutantops_reconciles_total')
      running.child.kill('SIGTERM')
      expect(await running.ended).toBe(0)
    } finally {
      running.child.kill('SIGKILL')
    }
  })

  test('has what pushes traces and metrics in a file of its own, which a cold start does not read', async () => {
    const [app, otlp] = await Promise.all(
      ['app.js', 'otlp.js'].map((file) => readFile(join(folder, 'dist', file), 'utf8')),
    )
    expect([app?.includes('v1/traces'), otlp?.includes('v1/traces')]).toEqual([false, true])
  })

  test('comes with the compile cache of a run', async () => {
    const files = await readdir(join(folder, 'dist', 'cache'), { recursive: true, withFileTypes: true })
    expect(files.some((file) => file.isFile())).toBe(true)
  })
})
