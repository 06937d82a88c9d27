import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../shared/clock.ts'
import type { ServiceSpec } from '../../shared/local/manifests/workloads.ts'
import { type Activator, activator } from '../../shared/local/processes/activator.ts'
import { commandOf } from '../../shared/local/processes/launch.ts'
import { startProcess } from '../../shared/local/processes/process.ts'
import type { RevisionReport } from '../../shared/local/processes/revision.ts'
import { eventually } from '../support/eventually.ts'
import { isAlive } from '../support/npm-start.ts'

const program = fileURLToPath(new URL('./fixtures/function.ts', import.meta.url))
let running: Activator[] = []

afterEach(async () => {
  await Promise.all(running.map((one) => one.stop()))
  running = []
})

/** An activator before one function, `fn`, which is the fixture as a real process. */
function world(changes: Partial<ServiceSpec> = {}, env: Record<string, string> = {}) {
  const spec: ServiceSpec = {
    namespace: 'ns',
    name: 'fn',
    functionName: 'mutation',
    env: Object.entries(env).map(([name, value]) => ({ name, value })),
    serviceAccount: 'fn',
    readinessPath: '/readyz',
    gracePeriodMs: 5_000,
    sinkUrl: undefined,
    concurrency: 20,
    timeoutMs: 10_000,
    idleMs: 60_000,
    alwaysOn: false,
    ...changes,
  }
  const reports: RevisionReport[] = []
  const lines: string[] = []
  const launch = {
    program,
    baseEnv: process.env,
    env: () => ({}),
    localUrl: () => 'http://127.0.0.1:1/ns/default',
  }
  const made = activator({
    services: [spec],
    clock: systemClock,
    start: (one, port) => startProcess(commandOf(one, port, launch), systemClock, (line) => lines.push(line)),
    report: (report) => reports.push(report),
  })
  running.push(made)
  const get = async (path = '/', init: RequestInit = {}) => {
    const response = await made.fetch('ns', 'fn', path, { method: 'GET', ...init })
    return { status: response.status, ...(response.ok && ((await response.json()) as Echo)) }
  }
  const kinds = () => reports.map(({ kind }) => kind)
  return { activator: made, get, reports, kinds, lines }
}

interface Echo {
  pid: number
  most: number
  method: string
  path: string
  body: string
  headers: Record<string, string>
  env: Record<string, string>
}

describe('the activator', () => {
  it('runs nothing before the first request, then one process for all that wait', async () => {
    const w = world({}, { READY_AFTER_MS: '150' })
    expect(w.kinds()).toEqual([])
    const answers = await Promise.all([w.get('/a'), w.get('/b'), w.get('/c')])
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200])
    expect(new Set(answers.map(({ pid }) => pid)).size).toBe(1)
    expect(w.kinds()).toEqual(['starting', 'ready'])
  })

  it('passes method, path, headers and body on', async () => {
    const w = world()
    const answer = await w.activator.app.request('/ns/fn/x/y?z=1', {
      method: 'POST',
      body: 'hello',
      // What a client such as curl sends before a body of more than 1 MiB.
      headers: { 'ce-id': '1', expect: '100-continue' },
    })
    expect(await answer.json()).toMatchObject({
      method: 'POST',
      path: '/x/y?z=1',
      body: 'hello',
      headers: { 'ce-id': '1' },
    })
    expect((await w.activator.app.request('/ns/none/')).status).toBe(404)
  })

  it('gives the process the environment of its manifest and none of the pod the runner may be in', async () => {
    const w = world(
      { sinkUrl: 'http://broker-ingress.knative-eventing.svc.cluster.local/ns/default' },
      { LOG_LEVEL: 'warn' },
    )
    const { env } = await w.get()
    expect(env).toMatchObject({
      LOG_LEVEL: 'warn',
      HOST: '127.0.0.1',
      K_SERVICE: 'fn',
      K_SINK: 'http://127.0.0.1:1/ns/default',
    })
    expect(env?.KUBERNETES_SERVICE_HOST).toBeUndefined()
    expect(w.lines).toContain('listening mutation')
  })

  it('hands over no more requests at once than the concurrency allows', async () => {
    const w = world({ concurrency: 2 })
    const answers = await Promise.all(Array.from({ length: 8 }, () => w.get('/?ms=20')))
    expect(Math.max(...answers.map(({ most }) => most ?? 0))).toBe(2)
  })

  it('stops the process when it is idle, and starts another for the next request', async () => {
    const w = world({ idleMs: 100 })
    const first = await w.get()
    await eventually(() => expect(w.kinds()).toEqual(['starting', 'ready', 'idle', 'stopped']))
    expect(isAlive(first.pid ?? 0)).toBe(false)
    expect(w.activator.running()).toEqual([])
    const second = await w.get()
    expect(second.pid).not.toBe(first.pid)
  })

  it('does not stop a process that works', async () => {
    const w = world({ idleMs: 50 })
    expect((await w.get('/?ms=400')).status).toBe(200)
    expect(w.kinds()).toEqual(['starting', 'ready'])
  })

  it('keeps a process that is to run always', async () => {
    const w = world({ idleMs: 30, alwaysOn: true })
    await eventually(() => expect(w.kinds()).toEqual(['starting', 'ready']))
    await systemClock.sleep(100)
    expect(w.kinds()).toEqual(['starting', 'ready'])
  })

  it('starts again after a crash; what was in flight gets 502, which the broker tries again', async () => {
    const w = world()
    const first = await w.get()
    expect((await w.get('/crash')).status).toBe(502)
    const second = await w.get()
    expect(second.status).toBe(200)
    expect(second.pid).not.toBe(first.pid)
    expect(w.reports.find(({ kind }) => kind === 'crashed')).toMatchObject({ code: 9, pauseMs: 250 })
  })

  it('pauses longer and longer before it starts one that keeps crashing, and gives up when nobody waits', async () => {
    const w = world({ timeoutMs: 1500 }, { CRASH_AT_START: '1' })
    expect((await w.get()).status).toBe(504)
    const pauses = () => w.reports.flatMap((report) => (report.kind === 'crashed' ? [report.pauseMs] : []))
    expect(pauses().slice(0, 2)).toEqual([250, 500])
    const before = w.kinds().filter((kind) => kind === 'starting').length
    await systemClock.sleep(2_500)
    expect(w.kinds().filter((kind) => kind === 'starting').length).toBeLessThanOrEqual(before + 1)
  })

  it('answers 504 to a request that takes too long, and the process lives on', async () => {
    const w = world({ timeoutMs: 1_500 })
    const { pid } = await w.get()
    expect((await w.get('/hang')).status).toBe(504)
    expect((await w.get()).pid).toBe(pid)
  })

  it('a sender that hangs up while the process starts leaves nothing waiting', async () => {
    const w = world({ concurrency: 1 }, { READY_AFTER_MS: '300' })
    const controller = new AbortController()
    const cut = w.get('/', { signal: controller.signal }).catch((error: unknown) => error)
    await eventually(() => expect(w.kinds()).toContain('starting'))
    controller.abort(new Error('gone'))
    expect(await cut).toEqual(new Error('gone'))
    expect((await w.get()).status).toBe(200)
  })
})

describe('the end of the activator', () => {
  it('lets what is in flight finish its answer, in the process at least, and leaves no process', async () => {
    const w = world()
    const { pid } = await w.get()
    await w.activator.stop()
    expect(isAlive(pid ?? 0)).toBe(false)
    expect(w.kinds().at(-1)).toBe('stopped')
    expect((await w.get()).status).toBe(503)
  })

  it('ends a process that is only starting', async () => {
    const w = world({}, { READY_AFTER_MS: '60000' })
    const waiting = w.get()
    await eventually(() => expect(w.kinds()).toEqual(['starting']))
    await w.activator.stop()
    expect((await waiting).status).toBe(503)
    expect(isAlive(w.reports[0]?.pid ?? 0)).toBe(false)
  })

  it('kills a process that does not heed SIGTERM', async () => {
    const w = world({ gracePeriodMs: 200 }, { IGNORE_SIGTERM: '1' })
    const { pid } = await w.get()
    await w.activator.stop()
    expect(isAlive(pid ?? 0)).toBe(false)
  })

  it('a process ends by itself when the runner was killed and could say nothing', async () => {
    const module = (file: string) => JSON.stringify(new URL(`../../shared/${file}`, import.meta.url).href)
    const runner = spawn(
      process.execPath,
      [
        '--input-type=module',
        '--eval',
        `import { startProcess, freePort } from ${module('local/processes/process.ts')}
         import { systemClock } from ${module('clock.ts')}
         const env = { ...process.env, PORT: String(await freePort()) }
         const child = startProcess({ args: [${JSON.stringify(program)}, 'x'], env }, systemClock, () => console.log(child.pid))`,
      ],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    )
    const [line] = await once(runner.stdout, 'data')
    const pid = Number(String(line))
    expect(isAlive(pid)).toBe(true)
    runner.kill('SIGKILL')
    await eventually(() => expect(isAlive(pid)).toBe(false))
  })

  it('a process whose runner was gone before it had started ends at once', async () => {
    const tether = fileURLToPath(new URL('../../shared/local/processes/tether.ts', import.meta.url))
    const env = { ...process.env, PORT: '0', IGNORE_SIGTERM: '' }
    const orphan = spawn(process.execPath, ['--import', tether, program, 'x'], { stdio: 'ignore', env })
    const [, signal] = await once(orphan, 'exit')
    expect(signal).toBe('SIGTERM')
  })
})
