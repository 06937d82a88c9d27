import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { systemClock } from '../../shared/clock.ts'
import { mutantDeployments, mutations } from '../../shared/kinds/mutants.ts'
import { deployments, namespaces, secrets } from '../../shared/kinds/object.ts'
import type { KubeClient } from '../../shared/kube/client.ts'
import { kubeClient } from '../../shared/kube/client.ts'
import { mutant, mutation } from '../support/builders.ts'
import { installCrds } from '../support/crds.ts'
import { embeddedApi } from '../support/embedded.ts'
import { newFolder } from '../support/folder.ts'
import { type FunctionProcess, functionProcess } from '../support/process.ts'

/** The overlay `direct`: real processes, and nothing between the watcher and the functions. */

vi.setConfig({ testTimeout: 20_000 })

const { server } = embeddedApi({ rollout: false })
/** Each with a namespace of its own: their selectors are the same. */
const names = ['mutation', 'mutantdeployment', 'late']
const running: Record<string, FunctionProcess> = {}
let client: KubeClient
let env: Record<string, string>

beforeAll(async () => {
  client = kubeClient({ transport: server.transport(), clock: systemClock, userAgent: 'test' })
  await installCrds(client)
  for (const name of [...names, 'mutantops'])
    await client.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } })
  const { url } = await server.listen()
  const kubeconfig = join(newFolder(), 'kubeconfig')
  await writeFile(kubeconfig, JSON.stringify(server.kubeconfig(url)), { mode: 0o600 })
  env = { KUBECONFIG: kubeconfig }
  const sinks: Record<string, string> = {}
  for (const [name, variable] of [
    ['mutation', 'SINK_MUTATION'],
    ['mutant-deployment', 'SINK_MUTANTDEPLOYMENT'],
  ] as const)
    sinks[variable] = (await start(name)).url
  // Its own address is for the next page, and there is one page here.
  const resync = await start('resync', { ...sinks, SINK_RESYNC: 'http://127.0.0.1:9' })
  env = { ...env, ...sinks, SINK_RESYNC: resync.url }
  await start('watcher', { RESYNC_SECONDS: '1', FULL_RESYNC_SECONDS: '3' })
}, 30_000)

afterAll(async () => {
  for (const { child, ended } of Object.values(running)) {
    child.kill('SIGTERM')
    await ended
  }
  await server.stop()
})

async function start(name: string, extra: Record<string, string> = {}): Promise<FunctionProcess> {
  const started = await functionProcess(name, { ...env, ...extra })
  running[name] = started
  return started
}

const children = async (namespace: string) =>
  (await client.list(deployments, { namespace })).items.map(({ metadata }) => metadata.name).sort()

it('changes of both kinds reach their functions', async () => {
  for (const kind of [mutations, mutantDeployments]) {
    const name = kind.kind.toLowerCase()
    await client.create(kind, mutant(kind, name).with('red', 1).with('blue', 2).in(name).object())
    await expect.poll(() => children(name), { timeout: 10_000 }).toEqual(['web-blue', 'web-red'])
  }
})

it('what comes while a function is away reaches it when it is back', async () => {
  const { port, child, ended } = running.mutation as FunctionProcess
  child.kill('SIGKILL')
  await ended
  await client.create(mutations, mutation('late').with('red', 1).in('late').object())
  const refused = () => running.watcher?.lines.some(({ msg }) => msg === 'sink does not take events')
  await expect.poll(refused, { timeout: 10_000 }).toBe(true)
  await start('mutation', { PORT: String(port) })
  await expect.poll(() => children('late'), { timeout: 10_000 }).toEqual(['web-red'])
})

it('the watcher asks for a resync again and again, which finds nothing to do', async () => {
  const looks = () => running.resync?.lines.filter(({ lookedAt }) => lookedAt !== undefined) ?? []
  const before = looks().length
  await expect.poll(() => looks().length, { timeout: 10_000 }).toBeGreaterThan(before + 1)
  expect(looks().at(-1)).toMatchObject({ lookedAt: 3, outOfSync: 0 })
})

it("a token's Secret that was deleted, which no resync sees but a full one, is there again", async () => {
  const secret = { namespace: 'mutation', name: 'mutation-token' }
  const uid = async () => (await client.getMetadata(secrets, secret))?.metadata.uid
  const before = await uid()
  expect(before).toBeDefined()
  await client.delete(secrets, secret)
  await expect.poll(uid, { timeout: 10_000 }).toBeDefined()
  expect(await uid()).not.toBe(before)
})
