import { execFile } from 'node:child_process'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, it } from 'vitest'
import { newFolder } from '../support/folder.ts'

const run = promisify(execFile)
const root = join(import.meta.dirname, '../..')
const bin = (name: string) => join(root, 'node_modules/.bin', name)

/** An app in a folder of its own that has installed this package, and knows its built library only. */
const app = newFolder()

const program = `
import { Hono } from 'hono'
import { type Kubernetes, kubernetes } from 'mutantops/kubernetes'
import { configMapStore } from 'mutantops/kubernetes/config-maps'
import { elector } from 'mutantops/kubernetes/elector'
import { faultyWire } from 'mutantops/kubernetes/faulty-wire'
import { leaderTasks } from 'mutantops/kubernetes/leader-tasks'
import { isLeading } from 'mutantops/kubernetes/lease'
import { manifests } from 'mutantops/kubernetes/manifests'
import { apiServer, replay } from 'mutantops/testing'

const parts: ((...args: never[]) => unknown)[] = [configMapStore, elector, faultyWire, leaderTasks, isLeading, manifests, replay]
if (parts.some((part) => typeof part !== 'function')) throw new Error('A part is missing')
const server = apiServer()
const config = { leaderElection: { enabled: true, leaseName: 'work' }, configMaps: { watch: ['settings'] } }
const k8s = kubernetes({ config, connect: async () => server.transport(), env: { POD_NAME: 'web-1' } })
const app = new Hono()
k8s.install(app)
app.get('/', (c) => {
  const handle: Kubernetes = c.get('kubernetes')
  return c.json({ pod: handle.pod.name, mode: handle.mode })
})
await k8s.start()
process.stdout.write(await (await app.request('/')).text())
await k8s.stop()
await server.stop()
`

describe('the package as an app sees it', () => {
  beforeAll(async () => {
    await run(bin('tsc'), ['-p', join(root, 'knative/tsconfig.library.json')])
    mkdirSync(join(app, 'node_modules'))
    symlinkSync(root, join(app, 'node_modules/mutantops'))
    for (const name of ['hono', '@types'])
      symlinkSync(join(root, 'node_modules', name), join(app, 'node_modules', name))
    const options = { module: 'nodenext', target: 'es2024', strict: true, outDir: 'out', types: ['node'] }
    writeFileSync(join(app, 'package.json'), JSON.stringify({ type: 'module' }))
    writeFileSync(join(app, 'tsconfig.json'), JSON.stringify({ compilerOptions: options, files: ['app.ts'] }))
    writeFileSync(join(app, 'app.ts'), program)
  }, 120_000)

  it('AC1: imports the plugin and each part with their types, and runs; AC13: the in-memory API, too', async () => {
    await run(bin('tsc'), ['-p', app])
    const { stdout } = await run(bin('node'), [join(app, 'out/app.js')])
    // Between the lines of the log stands what the app has written.
    expect(stdout).toContain('{"pod":"web-1","mode":"custom"}')
  }, 120_000)

  it('a type that is wrong does not compile', async () => {
    writeFileSync(join(app, 'app.ts'), program.replace('handle.pod.name', 'handle.pod.nme'))
    await expect(run(bin('tsc'), ['-p', app])).rejects.toMatchObject({
      stdout: expect.stringContaining("Property 'nme' does not exist"),
    })
    writeFileSync(join(app, 'app.ts'), program.replace('enabled: true', "enabled: 'yes'"))
    await expect(run(bin('tsc'), ['-p', app])).rejects.toMatchObject({
      stdout: expect.stringContaining('is not assignable to type'),
    })
  }, 120_000)

  it('AC11: brings the command mutantops', async () => {
    const args = [join(root, 'shared/runtime/bin.js'), 'manifests', '--name', 'web', '--image', 'web:1']
    const { stdout } = await run(bin('node'), args, { cwd: app })
    expect(stdout).toContain('kind: PodDisruptionBudget')
  })
})
