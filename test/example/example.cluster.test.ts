import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../shared/clock.ts'
import { configMaps, events, leases, type StoredObject } from '../../shared/kinds/object.ts'
import type { Lease } from '../../shared/runtime/lease.ts'
import { realCluster } from '../control-plane/cluster.ts'
import { eventually } from '../support/eventually.ts'
import { type Example, startExample } from './processes.ts'

/** Two processes of the example app on a real API server. */
describe('the example app in a cluster', () => {
  const admin = realCluster.client()
  let namespace: string
  let all: Example[]
  beforeEach(async () => {
    namespace = await realCluster.newNamespace()
    all = []
  })
  afterEach(() => {
    for (const { process } of all) process.kill('SIGKILL')
  })

  const fast = {
    KUBERNETES__LEADER_ELECTION__LEASE_DURATION_SECONDS: '4',
    KUBERNETES__LEADER_ELECTION__RENEW_DEADLINE_SECONDS: '2',
    KUBERNETES__LEADER_ELECTION__RETRY_PERIOD_SECONDS: '0.5',
  }
  const takeoverMs = 4_000 + 500
  function start(pod: string, env: Record<string, string>): Example {
    const { kubeconfigFile: KUBECONFIG } = realCluster
    const example = startExample({ KUBECONFIG, POD_NAME: pod, POD_NAMESPACE: namespace, ...env })
    all.push(example)
    return example
  }
  async function leaderAndOther(env: Record<string, string> = fast): Promise<[Example, Example]> {
    const first = start('web-1', env)
    await first.says('announces')
    const second = start('web-2', env)
    await second.says('port')
    await eventually(async () => expect((await second.get('/readyz')).status).toBe(200))
    return [first, second]
  }
  const announcements = ({ lines }: Example, sinceMs: number) =>
    lines.filter((line) => 'announces' in line && line.atMs >= sinceMs)

  it('AC14: one leads, both show the live ConfigMap, and the pod has its Kubernetes Events', async () => {
    const [first, second] = await leaderAndOther()
    const metadata = { name: 'example', namespace }
    const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { greeting: 'good day' } }
    await admin.create(configMaps, object)
    for (const [example, leading] of [
      [first, true],
      [second, false],
    ] as const)
      await eventually(async () =>
        expect(await (await example.get('/')).json()).toMatchObject({
          greeting: 'good day',
          mode: 'kubeconfig',
          leading,
        }),
      )
    const { items } = await admin.list<StoredObject>(events, { namespace })
    const told = items.map(({ reason, regarding }) => `${(regarding as { name: string }).name} ${reason}`)
    expect(told.toSorted()).toEqual(['web-1 LeaderElected', 'web-1 Started', 'web-2 Started'])
  }, 60_000)

  it('case 45: after SIGTERM of the leader the other leads within 2 s, with the default times', async () => {
    const [first, second] = await leaderAndOther({})
    await admin.patchJson(leases, { namespace, name: 'example' }, [
      { op: 'add', path: '/metadata/annotations', value: { touched: 'yes' } },
    ])
    const sentMs = systemClock.monotonicMs()
    first.process.kill('SIGTERM')
    const leads = await second.says('announces')
    expect(leads.atMs - sentMs).toBeLessThan(2_000)
    expect(await first.ended).toBe(0)
    expect(announcements(first, leads.atMs)).toEqual([])
  }, 60_000)

  it('after SIGKILL of the leader the other leads within the lease duration and one retry', async () => {
    const [first, second] = await leaderAndOther()
    const killedMs = systemClock.monotonicMs()
    first.process.kill('SIGKILL')
    const leads = await second.says('announces')
    // A second for two processes' start of work on a machine that is busy.
    expect(leads.atMs - killedMs).toBeLessThan(takeoverMs + 1_000)
  }, 60_000)

  it('case 42: a leader that was frozen does nothing more when it wakes, and campaigns again', async () => {
    const [first, second] = await leaderAndOther()
    first.process.kill('SIGSTOP')
    await second.says('announces')
    await systemClock.sleep(2_000)
    const count = first.lines.length
    const awakeMs = systemClock.monotonicMs()
    first.process.kill('SIGCONT')
    await eventually(() =>
      expect(first.lines.slice(count)).toContainEqual(expect.objectContaining({ leading: false })),
    )
    await eventually(() => expect(announcements(second, awakeMs + 1_000).length).toBeGreaterThan(0))
    second.process.kill('SIGTERM')
    const again = await first.says('announces', count)
    const lastOfSecond = announcements(second, 0).at(-1)?.atMs ?? 0
    expect(again.atMs).toBeGreaterThan(lastOfSecond)
    const metrics = await (await first.get('/metrics')).text()
    expect(metrics).toContain('kubernetes_leader_lost_total{lease="example"} 1')
    expect(metrics).toContain('kubernetes_leader_acquired_total{lease="example"} 2')
    const lease = await admin.get<Lease>(leases, { namespace, name: 'example' })
    expect(lease?.spec?.holderIdentity).toMatch(/^web-1-[0-9a-f]{8}$/)
  }, 60_000)
})
