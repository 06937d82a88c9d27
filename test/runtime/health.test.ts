import { describe, expect, it } from 'vitest'
import { apiServer } from '../../shared/apiserver/server.ts'
import { kubeClient } from '../../shared/kube/client.ts'
import { type Fault, faultyWire } from '../../shared/runtime/faulty-wire.ts'
import { type HealthOptions, health } from '../../shared/runtime/health.ts'
import { fixedLeadership } from '../../shared/runtime/leadership.ts'
import { virtualClock } from '../support/clock.ts'

function world(options: Partial<HealthOptions> = {}) {
  const clock = virtualClock()
  const wire = faultyWire(apiServer({ clock }).transport(), clock)
  const client = kubeClient({ transport: wire, clock, userAgent: 'test' })
  const checks: boolean[] = []
  const made = health({
    mode: 'in_cluster',
    namespace: 'shop',
    clock,
    client,
    onCheck: (up) => checks.push(up),
    ...options,
  })
  return { ...made, clock, wire, checks }
}

describe('AC9: health', () => {
  it('up: mode, namespace, leader and ConfigMaps, and nothing that tells more', async () => {
    const configMaps = { states: () => ({ settings: 'present' as const }) } as unknown as NonNullable<
      HealthOptions['configMaps']
    >
    const leader = { lease: 'work', leadership: fixedLeadership(true) }
    const { check } = world({ leader, configMaps })
    expect(await check()).toEqual({
      status: 'up',
      mode: 'in_cluster',
      namespace: 'shop',
      leader: { lease: 'work', leading: true },
      configMaps: { settings: 'present' },
    })
  })

  it('unknown without a cluster', async () => {
    const { check, run } = world({ client: undefined, mode: 'detached' })
    expect(await check()).toEqual({ status: 'unknown', mode: 'detached', namespace: 'shop' })
    await run(new AbortController().signal)
  })

  it.each<[Fault, string]>([
    [{ status: 401 }, 'unauthorized'],
    [{ status: 403 }, 'forbidden'],
    [{ status: 404 }, 'other'],
    [{ status: 429 }, 'throttled'],
    [{ status: 500 }, 'server'],
    [{ status: 503 }, 'server'],
    ['refused', 'connection'],
  ])('down by %j is told as "%s" and in no other words', async (fault, error) => {
    const { check, wire } = world()
    wire.fault = () => fault
    const report = await check()
    expect(report).toEqual({ status: 'down', mode: 'in_cluster', namespace: 'shop', error })
    expect(JSON.stringify(report)).not.toMatch(/Injected|embedded|http|v1\./)
  })

  it('an API that hangs is down after 1.5 s', async () => {
    const { check, wire, clock } = world()
    wire.fault = () => 'hangs'
    const checked = check()
    await clock.advance(1_499)
    await clock.advance(1)
    expect(await checked).toMatchObject({ status: 'down', error: 'timeout' })
  })

  it('an answer is used for 5 s when up and for 1 s when down; all that ask meanwhile share one request', async () => {
    const { check, wire, clock } = world()
    await Promise.all([check(), check(), check()])
    expect(wire.requests.length).toBe(1)
    await clock.advance(4_999)
    await check()
    expect(wire.requests.length).toBe(1)
    await clock.advance(1)
    wire.fault = () => ({ status: 500 })
    expect((await check()).status).toBe('down')
    expect(wire.requests.length).toBe(2)
    await clock.advance(999)
    await check()
    expect(wire.requests.length).toBe(2)
    await clock.advance(1)
    wire.fault = () => undefined
    expect((await check()).status).toBe('up')
    expect(wire.requests).toEqual(['GET /version', 'GET /version', 'GET /version'])
  })

  it('in the background it is asked again so often that no answer gets older', async () => {
    const { run, checks, clock, wire } = world()
    const stop = new AbortController()
    const running = run(stop.signal)
    await clock.advance(20_000)
    expect(checks).toEqual([true, true, true, true, true])
    wire.fault = () => ({ status: 500 })
    await clock.advance(10_000)
    expect(checks.slice(5).length).toBe(6)
    stop.abort()
    await running
  })

  it('a check that is broken off by the shutdown does not count as down', async () => {
    const { run, checks, clock, wire } = world()
    wire.fault = () => 'hangs'
    const stop = new AbortController()
    const running = run(stop.signal)
    await clock.advance(100)
    stop.abort()
    await running
    expect(checks).toEqual([])
  })
})
