import { describe, expect, it } from 'vitest'
import { events, type StoredObject } from '../../shared/kinds/object.ts'
import type { KubernetesOptions } from '../../shared/runtime/plugin.ts'
import { leading, podEnv, runtimeWorld } from './runtime-world.ts'

async function started(options: KubernetesOptions = {}) {
  const world = runtimeWorld()
  const k8s = world.process(options)
  const handle = await k8s.start()
  await world.clock.advance(1_000)
  return { ...world, k8s, handle }
}

describe('the namespace of Lease and ConfigMaps', () => {
  it.each([
    ["the configuration's", { config: { namespace: 'default' }, env: { POD_NAMESPACE: 'pods' } }, 'default'],
    ["else the pod's", { config: {}, env: { POD_NAMESPACE: 'pods' } }, 'pods'],
    ['else default', { config: {}, env: {} }, 'default'],
  ])('is %s', async (_, options, namespace) => {
    const { k8s, handle, during } = await started(options)
    expect(handle.namespace).toBe(namespace)
    expect((await handle.health()).namespace).toBe(namespace)
    await during(k8s.stop())
  })
})

describe('who campaigns', () => {
  it.each([
    ['as the configuration says', { identity: 'me' }, podEnv, /^me$/],
    ['by the name of the pod and eight digits', {}, podEnv, /^web-1-[0-9a-f]{8}$/],
    ['by a word and eight digits outside a pod', {}, {}, /^process-[0-9a-f]{8}$/],
  ])('is named %s', async (_, election, env, identity) => {
    const config = { leaderElection: { ...leading.leaderElection, ...election } }
    const { k8s, lease, during } = await started({ config, env })
    expect((await lease())?.spec?.holderIdentity).toMatch(identity)
    await during(k8s.stop())
  })

  it('a disabled plugin does not lead, whatever else it is told', async () => {
    const config = { enabled: false, leaderElection: { ...leading.leaderElection, leadWhenDetached: true } }
    const { k8s, handle, during, wire } = await started({ config })
    expect(handle.leadership.isLeader()).toBe(false)
    expect(wire.requests).toEqual([])
    await during(k8s.stop())
  })

  it('a process with a stuck task does not lead again, so that another may', async () => {
    const stuck = { name: 'stuck', run: () => new Promise<void>(() => {}) }
    const world = await started({ config: leading, tasks: [stuck] })
    expect(world.handle.leadership.isLeader()).toBe(true)
    world.wire.fault = ({ path }) => (path.includes('/leases') ? { status: 500 } : undefined)
    await world.clock.advance(20_000)
    world.wire.fault = () => undefined
    await world.clock.advance(60_000)
    expect(world.handle.leadership.isLeader()).toBe(false)
    await world.during(world.k8s.stop())
  })
})

describe('what the parts show', () => {
  it('without election and ConfigMaps neither stands in health or metrics', async () => {
    const { k8s, handle, during, registry } = await started()
    expect(await handle.health()).toEqual({ status: 'up', mode: 'custom', namespace: 'default' })
    expect(await registry.metrics()).not.toMatch(/^kubernetes_(leader|config_map)\S*\{/m)
    await during(k8s.stop())
  })

  it('the Kubernetes Events regard the pod, and say in words what happened', async () => {
    const world = await started({ config: leading })
    world.wire.fault = ({ path }) => (path.includes('/leases') ? { status: 500 } : undefined)
    await world.clock.advance(12_000)
    await world.during(world.k8s.stop())
    const { items } = await world.admin.list<StoredObject>(events, { namespace: 'default' })
    const notes = items.map(({ reason, note }) => `${reason}: ${note}`)
    expect(notes.toSorted()).toEqual([
      'LeaderElected: Leads by the Lease work',
      'LeaderLost: No longer leads by the Lease work',
      'Started: The process has started',
      'Stopping: The process is stopping',
    ])
    const pod = { apiVersion: 'v1', kind: 'Pod', namespace: 'default', name: 'web-1', uid: 'uid-of-web-1' }
    for (const { regarding } of items) expect(regarding).toEqual(pod)
  })

  it('a pod without a known uid is regarded without one', async () => {
    const world = await started({ env: { POD_NAME: 'web-1', POD_NAMESPACE: 'default' } })
    await world.during(world.k8s.stop())
    const { items } = await world.admin.list<StoredObject>(events, { namespace: 'default' })
    expect(items.length).toBe(2)
    for (const { regarding } of items) expect(regarding).not.toHaveProperty('uid')
  })

  it('a last event that hangs is given up after 2 s, and that is said', async () => {
    const world = await started()
    world.wire.fault = ({ path }) => (path.includes('/events') ? 'hangs' : undefined)
    const beganMs = world.clock.monotonicMs()
    await world.during(world.k8s.stop(), 10)
    expect(world.clock.monotonicMs() - beganMs).toBeLessThanOrEqual(2_050)
    expect(world.lines.at(-1)).toContain('The last Kubernetes Event took longer than 2000 ms')
  })
})
