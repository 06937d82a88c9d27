import { mkdtemp, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { systemClock } from '../../shared/clock.ts'
import { readTape } from '../../shared/cloudevents/tape.ts'
import { mutantDeployments, mutations } from '../../shared/kinds/mutants.ts'
import { deployments, secrets } from '../../shared/kinds/object.ts'
import { type KubeClient, kubeClient } from '../../shared/kube/client.ts'
import { connect } from '../../shared/kube/connect.ts'
import { readObjects } from '../../shared/local/manifests/manifests.ts'
import { mutation } from '../support/builders.ts'
import { eventually } from '../support/eventually.ts'
import { loadFactor } from '../support/load.ts'
import { isAlive, type NpmStart, npmStart } from '../support/npm-start.ts'

/** `npm start` as a user runs it: nothing in it is stood in for. */

const root = fileURLToPath(new URL('../../', import.meta.url))
let folder = ''
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'start-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

describe('npm start -- --exit-when-ready', () => {
  it('has both samples Ready within 10 s, says how long it took, ends with 0 and leaves no process', async () => {
    const factor = loadFactor()
    const run = npmStart(['--exit-when-ready', '--folder', join(folder, 'a')])
    expect(await run.exited).toEqual({ code: 0, signal: null })
    const seconds = Number(/Both samples are Ready after ([\d.]+) s\./.exec(run.output())?.[1])
    expect(seconds).toBeGreaterThan(0)
    expect(seconds).toBeLessThan(10 * factor)
    expect(run.output()).toMatch(/ready {7}MutantDeployment default\/nginx-mutant: 2\/2 variants ready/)
    expect(run.output()).toMatch(/ready {7}Mutation default\/storefront: 3\/3 variants ready/)
    expect(run.pids().length).toBeGreaterThanOrEqual(3)
    expect(run.pids().filter(isAlive)).toEqual([])
    // No terminal, no colours.
    expect(run.output()).not.toContain('\u001b[')
  }, 90_000)
})

describe('npm start', () => {
  let run: NpmStart
  let client: KubeClient
  let close = async () => {}

  beforeAll(async () => {
    run = npmStart(['--folder', join(folder, 'b'), '--tape', join(folder, 'tape')])
    await eventually(() => expect(run.output()).toContain('Now try'), 60_000)
    const kubeconfig = join(folder, 'b', 'kubeconfig')
    expect((await stat(kubeconfig)).mode & 0o777).toBe(0o600)
    const connection = await connect({ env: {}, kubeconfig })
    close = connection.close
    client = kubeClient({ transport: connection, clock: systemClock, userAgent: 'test' })
  }, 90_000)

  afterAll(async () => {
    await close()
    run.kill('SIGTERM')
    await run.exited
  }, 60_000)

  const at = (name: string) => ({ namespace: 'default', name })
  const childNames = async () =>
    (await client.list(deployments, { namespace: 'default' })).items
      .map(({ metadata }) => metadata.name)
      .sort()
  /** What the user is promised. */
  const withinMs = 2_000 * loadFactor()

  it('has made the children of both samples, and the Secret of one', async () => {
    expect(await childNames()).toEqual([
      'nginx-deployment-canary',
      'nginx-deployment-experimental',
      'storefront-dark',
      'storefront-one-page-checkout',
      'storefront-stable',
    ])
    const experimental = await client.get(deployments, at('nginx-deployment-experimental'))
    expect(experimental?.spec).toMatchObject({
      replicas: 3,
      template: {
        spec: { containers: [{ image: 'nginx:1.21', env: [{ name: 'NGINX_EXPERIMENTAL', value: 'true' }] }] },
      },
    })
    expect(await client.getMetadata(secrets, at('storefront-token'))).toBeDefined()
  })

  it('follows within 2 s what kubectl apply --server-side changes: instances, a variant added, one removed', async () => {
    const [sample] = (await readObjects(join(root, 'knative', 'samples'))).filter(
      ({ kind }) => kind === 'Mutation',
    )
    const variants = [
      { label: 'stable', instances: 5 },
      { label: 'one-page-checkout', instances: 1 },
      { label: 'fresh', instances: 1 },
    ]
    const changed = {
      ...sample,
      metadata: { ...sample?.metadata, namespace: 'default' },
      spec: { ...(sample?.spec as object), variants },
    }
    // As kubectl does it: its own manager, without force.
    await client.apply(mutations, changed, { fieldManager: 'kubectl' })
    await eventually(async () => {
      expect(await childNames()).toEqual([
        'nginx-deployment-canary',
        'nginx-deployment-experimental',
        'storefront-fresh',
        'storefront-one-page-checkout',
        'storefront-stable',
      ])
      expect((await client.get(deployments, at('storefront-stable')))?.spec).toMatchObject({ replicas: 5 })
    }, withinMs)
  })

  it('brings a child that was deleted by hand back within 2 s', async () => {
    const before = await client.get(deployments, at('nginx-deployment-canary'))
    await client.delete(deployments, at('nginx-deployment-canary'))
    await eventually(async () => {
      const after = await client.get(deployments, at('nginx-deployment-canary'))
      expect(after?.metadata.uid).toBeDefined()
      expect(after?.metadata.uid).not.toBe(before?.metadata.uid)
    }, withinMs)
  })

  it('lets the children go with their owner', async () => {
    await client.delete(mutantDeployments, at('nginx-mutant'))
    await eventually(
      async () => expect((await childNames()).filter((name) => name.startsWith('nginx'))).toEqual([]),
      5_000,
    )
  })

  it('has recorded the events that the broker accepted, if told to', async () => {
    const events = readTape(await readFile(join(folder, 'tape'), 'utf8'))
    expect(events.map(({ type }) => type)).toContain('org.neiam.resync.requested')
    const names = new Set(events.map(({ extensions }) => extensions.name))
    expect([...names]).toEqual(expect.arrayContaining(['storefront', 'nginx-mutant']))
  })

  it('ends on SIGTERM with 0 and leaves no process', async () => {
    run.kill('SIGTERM')
    expect(await run.exited).toMatchObject({ code: 0 })
    expect(run.output()).toContain('Ending. The embedded API keeps nothing.')
    expect(run.pids().filter(isAlive)).toEqual([])
  }, 45_000)
})

describe('npm start, ended by Ctrl-C', () => {
  it('stops what it started in good order, though npm passes the signal on a second time', async () => {
    const run = npmStart(['--no-samples', '--folder', join(folder, 'e')], {}, { hasOwnGroup: true })
    await eventually(() => expect(run.output()).toContain('Now try'), 60_000)
    run.pressCtrlC()
    expect(await run.exited).toEqual({ code: 0, signal: null })
    expect(run.output()).toMatch(/stopped {5}watcher/)
    expect(run.pids().filter(isAlive)).toEqual([])
    await expect(stat(join(folder, 'e', 'pid'))).rejects.toThrow('ENOENT')
  }, 90_000)
})

describe('npm start whose reader goes away', () => {
  it('ends, and says nothing of it', async () => {
    const run = npmStart(['--no-samples', '--folder', join(folder, 'f')])
    await eventually(() => expect(run.output()).toContain('  API'), 60_000)
    run.stopReading()
    expect(await run.exited).toEqual({ code: 0, signal: null })
    expect(run.output()).not.toContain('EPIPE')
    expect(run.pids().filter(isAlive)).toEqual([])
  }, 90_000)
})

describe('npm start, killed', () => {
  it('leaves no process all the same, and the next run takes its folder over', async () => {
    const args = ['--no-samples', '--folder', join(folder, 'c')]
    const run = npmStart(args)
    await eventually(() => expect(run.output()).toContain('Now try'), 60_000)
    const second = npmStart(args)
    expect(await second.exited).toMatchObject({ code: 1 })
    expect(second.output()).toContain('Another run')

    process.kill(Number(await readFile(join(folder, 'c', 'pid'), 'utf8')), 'SIGKILL')
    await run.exited
    await eventually(() => expect(run.pids().filter(isAlive)).toEqual([]), 20_000)
    const next = npmStart([...args, '--exit-when-ready'])
    expect(await next.exited).toMatchObject({ code: 0 })
  }, 120_000)
})

describe('npm start -- --data FOLDER', () => {
  it('keeps the objects, and what the user made of the samples, for the next run', async () => {
    const args = ['--folder', join(folder, 'd'), '--data', join(folder, 'data')]
    const first = npmStart([...args, '--no-samples'])
    await eventually(() => expect(first.output()).toContain('Now try'), 60_000)
    const connection = await connect({ env: {}, kubeconfig: join(folder, 'd', 'kubeconfig') })
    const client = kubeClient({ transport: connection, clock: systemClock, userAgent: 'test' })
    await client.create(mutations, mutation('storefront').with('mine', 1).in('default').object())
    await eventually(() => expect(first.output()).toContain('1/1 variants ready'), 20_000)
    await connection.close()
    first.kill('SIGTERM')
    expect(await first.exited).toMatchObject({ code: 0 })
    expect(first.output()).toContain('The objects are kept')

    const second = npmStart([...args, '--exit-when-ready'])
    expect(await second.exited).toMatchObject({ code: 0 })
    expect(second.output()).toMatch(/kept {8}Mutation default\/storefront/)
    expect(second.output()).toMatch(/applied {5}MutantDeployment default\/nginx-mutant/)
    expect(second.output()).not.toContain('storefront-stable')
  }, 120_000)
})
