import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Hono } from 'hono'
import { describe, expect, it } from 'vitest'
import { apiServer } from '../../shared/apiserver/server.ts'
import { systemClock } from '../../shared/clock.ts'
import { configMaps } from '../../shared/kinds/object.ts'
import { faultyWire } from '../../shared/runtime/faulty-wire.ts'
import { type KubernetesOptions, kubernetes } from '../../shared/runtime/plugin.ts'
import { eventually } from '../support/eventually.ts'
import { silentLog } from './candidates.ts'
import { leading, podEnv, runtimeWorld } from './runtime-world.ts'

const waitFor = (signal: AbortSignal) =>
  new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))

const statusOf = async (app: Hono, path: string) => (await app.request(path)).status

describe('in an app', () => {
  it('AC1: one call installs probes, metrics and the handle', async () => {
    const world = runtimeWorld()
    const app = new Hono()
    const k8s = world.process({ config: leading })
    k8s.install(app)
    app.get('/who', (c) => c.json({ pod: c.get('kubernetes').pod, mode: c.get('kubernetes').mode }))
    const before = await Promise.all(
      ['/livez', '/startupz', '/readyz', '/who'].map((path) => statusOf(app, path)),
    )
    expect(before).toEqual([200, 503, 503, 503])
    await k8s.start()
    await world.clock.advance(100)
    const running = ['/livez', '/startupz', '/readyz', '/metrics', '/who']
    expect(await Promise.all(running.map((path) => statusOf(app, path)))).toEqual([200, 200, 200, 200, 200])
    const metrics = await app.request('/metrics')
    expect(metrics.headers.get('content-type')).toMatch(/^text\/plain/)
    expect(await metrics.text()).toContain('kubernetes_leader{lease="work"} 1')
    await world.during(k8s.stop())
    expect(await Promise.all(running.slice(0, 3).map((path) => statusOf(app, path)))).toEqual([200, 200, 503])
  })

  it('AC2: handlers get the pod through c.get, also when the plugin is disabled', async () => {
    for (const enabled of [true, false]) {
      const world = runtimeWorld()
      const app = new Hono()
      const k8s = world.process({ config: { enabled } })
      k8s.install(app)
      app.get('/who', (c) => c.json(c.get('kubernetes').pod))
      await k8s.start()
      expect(await (await app.request('/who')).json()).toEqual({
        name: 'web-1',
        namespace: 'default',
        uid: 'uid-of-web-1',
        labels: {},
      })
      await world.during(k8s.stop())
    }
  })

  it('the plugin is a middleware by itself, and starts without an app', async () => {
    const world = runtimeWorld()
    const k8s = world.process({ config: leading })
    const handle = await k8s.start()
    expect(await k8s.start()).toBe(handle)
    await world.clock.advance(0)
    expect(handle.leadership.isLeader()).toBe(true)
    const app = new Hono().use(k8s).get('/', (c) => c.text(String(c.get('kubernetes').leadership.isLeader())))
    expect(await (await app.request('/')).text()).toBe('true')
    await world.during(k8s.stop())
  })

  it('AC9: readiness is opt-in: an API that is down takes no traffic away unless asked to', async () => {
    for (const readiness of [false, true]) {
      const world = runtimeWorld()
      const k8s = world.process({ readiness })
      await k8s.start()
      world.wire.fault = () => ({ status: 500 })
      await world.clock.advance(6_000)
      const answer = await k8s.routes.request('/readyz')
      expect(answer.status).toBe(readiness ? 503 : 200)
      expect(await answer.json()).toEqual({
        status: readiness ? 'not ready' : 'ready',
        kubernetes: { status: 'down', mode: 'custom', namespace: 'default', error: 'server' },
      })
      await world.during(k8s.stop())
    }
  })

  it('says in words how far it has come', async () => {
    const world = runtimeWorld()
    const app = new Hono()
    const k8s = world.process()
    k8s.install(app)
    app.get('/who', (c) => c.text('me'))
    const bodies = () =>
      Promise.all(
        ['/livez', '/startupz', '/readyz', '/who'].map(async (path) => (await app.request(path)).text()),
      )
    const starting = '{"status":"starting"}'
    expect(await bodies()).toEqual(['{"status":"alive"}', starting, starting, starting])
    await k8s.start()
    const [alive, running, ready, me] = await bodies()
    expect([alive, running, me]).toEqual(['{"status":"alive"}', '{"status":"running"}', 'me'])
    expect(JSON.parse(ready ?? '').status).toBe('ready')
    const stopped = k8s.stop()
    const stopping = '{"status":"stopping"}'
    expect((await bodies()).slice(1, 3)).toEqual([stopping, stopping])
    await world.during(stopped)
  })

  it('folder, profile and prefix choose where the configuration comes from', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'config-'))
    writeFileSync(join(folder, 'kubernetes.test.yaml'), 'namespace: of-profile')
    writeFileSync(join(folder, 'kubernetes.yaml'), 'namespace: of-file')
    const namespaceBy = async (options: KubernetesOptions) => {
      const world = runtimeWorld()
      const { config: _, ...rest } = { config: undefined, ...options }
      const k8s = kubernetes({
        clock: world.clock,
        log: silentLog(),
        connect: async () => world.wire,
        env: {},
        ...rest,
      })
      const { namespace } = await k8s.start()
      await world.during(k8s.stop())
      return namespace
    }
    expect(await namespaceBy({ folder })).toBe('of-file')
    expect(await namespaceBy({ folder, profile: 'test' })).toBe('of-profile')
    const env = { A__NAMESPACE: 'of-a', KUBERNETES__NAMESPACE: 'of-k' }
    expect(await namespaceBy({ folder, env })).toBe('of-k')
    expect(await namespaceBy({ folder, env, prefix: 'A' })).toBe('of-a')
  })

  it('by default it reads its configuration from the folder and the environment of the process', async () => {
    const k8s = kubernetes({ env: { KUBERNETES__TYPO: '1' }, folder: '/nowhere' })
    await expect(k8s.start()).rejects.toThrow('typo: unknown key (environment KUBERNETES__TYPO)')
    const disabled = kubernetes({ env: { KUBERNETES__ENABLED: 'false' }, clock: systemClock })
    expect((await disabled.start()).mode).toBe('disabled')
    await disabled.stop()
  })
})

describe("AC13: an app's own test", () => {
  it('runs on the in-memory API, and sees how the app bears its faults', async () => {
    const api = apiServer()
    const wire = faultyWire(api.transport(), systemClock)
    const config = { ...leading, configMaps: { watch: ['settings'] } }
    const k8s = kubernetes({ connect: async () => wire, config, env: podEnv, log: silentLog() })
    const app = new Hono()
    k8s.install(app)
    app.get('/color', (c) => c.text(c.get('kubernetes').configMaps.value('settings', 'color') ?? 'none'))
    const handle = await k8s.start()
    const color = async () => (await app.request('/color')).text()
    expect(await color()).toBe('none')
    const metadata = { name: 'settings', namespace: 'default' }
    const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { color: 'red' } }
    await handle.client?.create(configMaps, object)
    await eventually(async () => expect(await color()).toBe('red'))
    wire.fault = () => 'refused'
    expect(await color()).toBe('red')
    expect(
      await eventually(async () => {
        const report = await handle.health()
        expect(report.status).toBe('down')
        return report.error
      }),
    ).toBe('connection')
    wire.fault = () => ({ delayMs: 5 })
    await eventually(() => expect(handle.leadership.isLeader()).toBe(true))
    await k8s.stop()
    await api.stop()
  }, 30_000)
})

describe('AC6: tasks of the leader', () => {
  it('run while this process leads, and are given the handle', async () => {
    const world = runtimeWorld()
    const seen: unknown[] = []
    const run = async (signal: AbortSignal, { mode, pod }: { mode: string; pod: { name?: string } }) => {
      seen.push([mode, pod.name])
      await waitFor(signal)
      seen.push('ended')
    }
    const k8s = world.process({ config: leading, tasks: [{ name: 'work', run }] })
    await k8s.start()
    await world.clock.advance(5_000)
    expect(seen).toEqual([['custom', 'web-1']])
    await world.during(k8s.stop())
    expect(seen).toEqual([['custom', 'web-1'], 'ended'])
  })

  it('without leaderElection.enabled are a configuration error', async () => {
    const k8s = runtimeWorld().process({ tasks: [{ name: 'work', run: waitFor }] })
    await expect(k8s.start()).rejects.toThrow(
      'leaderElection.enabled: must be true, because there are leader tasks',
    )
  })

  it.each([
    [[], undefined, true],
    [[], 'web', true],
    [['worker'], 'worker', true],
    [['worker'], 'web', false],
    [['worker'], undefined, false],
  ])('roles %j, this process is %s: campaigns %s', async (roles, role, campaigns) => {
    const world = runtimeWorld()
    const config = { leaderElection: { ...leading.leaderElection, roles } }
    const k8s = world.process({ config, role })
    const { leadership } = await k8s.start()
    await world.clock.advance(5_000)
    expect(leadership.isLeader()).toBe(campaigns)
    expect((await world.lease()) !== undefined).toBe(campaigns)
    await world.during(k8s.stop())
  })

  it.each([
    [true, 1],
    [false, 0],
  ])('detached with leadWhenDetached %s: the task runs %i times', async (leadWhenDetached, times) => {
    const world = runtimeWorld()
    let runs = 0
    const run = async (signal: AbortSignal) => {
      runs++
      await waitFor(signal)
    }
    const k8s = kubernetes({
      env: { HOME: '/nowhere' },
      clock: world.clock,
      config: { leaderElection: { ...leading.leaderElection, leadWhenDetached } },
      tasks: [{ name: 'work', run }],
    })
    expect((await k8s.start()).mode).toBe('detached')
    await world.clock.advance(60_000)
    expect(runs).toBe(times)
    await world.during(k8s.stop())
  })
})

describe('shutdown', () => {
  it('goes in order: tasks, Lease, the last Kubernetes Event, watches', async () => {
    const world = runtimeWorld()
    const story: string[] = []
    const run = async (signal: AbortSignal) => {
      await waitFor(signal)
      await world.clock.sleep(500)
      story.push('task ended')
    }
    const config = { ...leading, configMaps: { watch: ['settings'] } }
    const k8s = world.process({ config, tasks: [{ name: 'work', run }] })
    await k8s.start()
    await world.clock.advance(10_000)
    world.wire.fault = ({ method, path }) => {
      if (method === 'PUT' && path.includes('/leases/')) story.push('Lease written')
      if (method === 'POST') story.push('Event written')
      return undefined
    }
    await world.during(k8s.stop())
    expect(story).toEqual(['task ended', 'Lease written', 'Event written'])
    expect((await world.lease())?.spec?.holderIdentity).toBe('')
    expect(await world.eventReasons()).toEqual(['Normal Started', 'Normal LeaderElected', 'Normal Stopping'])
    const count = world.wire.requests.length
    await world.clock.advance(600_000)
    expect(world.wire.requests.length).toBe(count)
  })

  it('completes though nobody waits for it; a second call is the same stop', async () => {
    const world = runtimeWorld()
    const k8s = world.process({ config: leading })
    await k8s.start()
    await world.clock.advance(1_000)
    const first = k8s.stop()
    expect(k8s.stop()).toBe(first)
    await world.clock.advance(5_000)
    expect((await world.lease())?.spec?.holderIdentity).toBe('')
  })

  it('a task that is stuck keeps the Lease from being released, and the process from waiting', async () => {
    const world = runtimeWorld()
    const stuck = { name: 'stuck', run: () => new Promise<void>(() => {}) }
    const k8s = world.process({ config: leading, tasks: [stuck] })
    await k8s.start()
    await world.clock.advance(1_000)
    const beganMs = world.clock.monotonicMs()
    await world.during(k8s.stop())
    expect(world.clock.monotonicMs() - beganMs).toBeLessThan(5_000)
    expect((await world.lease())?.spec?.holderIdentity).not.toBe('')
  })

  it('an API that hangs delays it by at most 2 s for the Lease and 2 s for the last Event', async () => {
    const world = runtimeWorld()
    const k8s = world.process({ config: leading })
    await k8s.start()
    await world.clock.advance(1_000)
    world.wire.fault = () => 'hangs'
    const beganMs = world.clock.monotonicMs()
    await world.during(k8s.stop(), 10)
    expect(world.clock.monotonicMs() - beganMs).toBeLessThanOrEqual(4_100)
  })

  it('a stop before or during the start leaves nothing behind', async () => {
    const world = runtimeWorld()
    const k8s = world.process({ config: leading })
    await k8s.stop()
    const other = world.process({ config: leading, registry: (await import('prom-client')).register })
    const starting = other.start()
    const stopping = other.stop()
    await world.during(Promise.all([starting, stopping]))
    const count = world.wire.requests.length
    await world.clock.advance(100_000)
    expect(world.wire.requests.length).toBe(count)
  })
})

describe('AC8: Kubernetes Events on the pod', () => {
  it('tell the start, each term and its loss, and the end', async () => {
    const world = runtimeWorld()
    const k8s = world.process({ config: leading })
    await k8s.start()
    await world.clock.advance(5_000)
    world.wire.fault = ({ path }) => (path.includes('/leases') ? { status: 500 } : undefined)
    await world.clock.advance(12_000)
    world.wire.fault = () => undefined
    await world.clock.advance(5_000)
    await world.during(k8s.stop())
    expect(await world.eventReasons()).toEqual([
      'Normal Started',
      'Normal LeaderElected',
      'Warning LeaderLost',
      'Normal LeaderElected',
      'Normal Stopping',
    ])
    expect(await world.metric('kubernetes_events_published_total')).toBe('5')
  })

  it.each([
    ['events are switched off', { config: { ...leading, events: false } }],
    ['the pod has no name', { config: leading, env: { POD_NAMESPACE: 'default' } }],
  ])('there are none when %s', async (_, options) => {
    const world = runtimeWorld()
    const k8s = world.process(options)
    await k8s.start()
    await world.clock.advance(5_000)
    await world.during(k8s.stop())
    expect(await world.eventReasons()).toEqual([])
  })

  it('that cannot be written are counted, and the app goes on', async () => {
    const world = runtimeWorld()
    world.wire.fault = ({ path }) => (path.includes('/events') ? { status: 403 } : undefined)
    const k8s = world.process({ config: leading })
    const { leadership } = await k8s.start()
    await world.clock.advance(5_000)
    expect(leadership.isLeader()).toBe(true)
    expect(await world.metric('kubernetes_events_failed_total')).toBe('2')
    await world.during(k8s.stop())
    expect(podEnv.POD_NAME).toBe('web-1')
  })
})

describe('AC10: metrics', () => {
  it('all are there, with help and type, counters end in _total, labels are names of the configuration', async () => {
    const world = runtimeWorld()
    const k8s = world.process({ config: { ...leading, configMaps: { watch: ['settings'] } } })
    await k8s.start()
    await world.putConfigMap('settings', { a: 'b' })
    await world.clock.advance(5_000)
    const text = await (await k8s.routes.request('/metrics')).text()
    const series = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
    expect(series.map((line) => line.replace(/ \S+$/, '')).toSorted()).toEqual([
      'kubernetes_api_up',
      'kubernetes_config_map_errors_total{config_map="settings"}',
      'kubernetes_config_map_updates_total{config_map="settings"}',
      'kubernetes_events_failed_total',
      'kubernetes_events_published_total',
      'kubernetes_leader_acquired_total{lease="work"}',
      'kubernetes_leader_lost_total{lease="work"}',
      'kubernetes_leader{lease="work"}',
      'kubernetes_lease_conflicts_total{lease="work"}',
      'kubernetes_lease_errors_total{lease="work"}',
    ])
    for (const name of new Set(series.map((line) => line.replace(/[{ ].*/, '')))) {
      expect(text).toMatch(new RegExp(`^# HELP ${name} \\S.*$`, 'm'))
      const type = name.endsWith('_total') ? 'counter' : 'gauge'
      expect(text).toMatch(new RegExp(`^# TYPE ${name} ${type}$`, 'm'))
    }
    await world.during(k8s.stop())
  })

  it('tell what happened', async () => {
    const world = runtimeWorld()
    const k8s = world.process({ config: { ...leading, configMaps: { watch: ['settings'] } } })
    await k8s.start()
    await world.putConfigMap('settings', { a: 'b' })
    await world.clock.advance(5_000)
    world.wire.fault = ({ path }) => (path.includes('/events') ? undefined : { status: 503 })
    await world.clock.advance(12_000)
    const during = (line: string) => world.metric(line)
    expect(await during('kubernetes_leader{lease="work"}')).toBe('0')
    expect(await during('kubernetes_leader_lost_total{lease="work"}')).toBe('1')
    expect(Number(await during('kubernetes_lease_errors_total{lease="work"}'))).toBeGreaterThan(4)
    expect(await during('kubernetes_api_up')).toBe('0')
    world.wire.fault = () => undefined
    await world.clock.advance(10_000)
    expect(await during('kubernetes_leader{lease="work"}')).toBe('1')
    expect(await during('kubernetes_leader_acquired_total{lease="work"}')).toBe('2')
    expect(await during('kubernetes_api_up')).toBe('1')
    expect(await during('kubernetes_config_map_updates_total{config_map="settings"}')).toBe('2')
    await world.during(k8s.stop())
    expect(await during('kubernetes_leader{lease="work"}')).toBe('0')
  })

  it('two runtimes in one registry are refused, not mixed', async () => {
    const world = runtimeWorld()
    const one = world.process()
    await one.start()
    await expect(world.process().start()).rejects.toThrow(/already been registered/)
    await world.during(one.stop())
  })
})
