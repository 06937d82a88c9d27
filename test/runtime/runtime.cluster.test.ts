import { expect, it } from 'vitest'
import { systemClock } from '../../shared/clock.ts'
import { elector } from '../../shared/runtime/elector.ts'
import { realCluster } from '../control-plane/cluster.ts'
import { eventually } from '../support/eventually.ts'
import { silentLog } from './candidates.ts'
import { runtimeContract } from './runtime-contract.ts'

const roles = '/apis/rbac.authorization.k8s.io/v1/namespaces'

runtimeContract('a real API server', {
  client: () => realCluster.client(),
  newNamespace: () => realCluster.newNamespace(),
  async deniedConfigMaps(namespace) {
    const token = await realCluster.tokenFor(namespace, 'reader')
    const admin = realCluster.client()
    const metadata = { name: 'reader', namespace }
    return {
      client: realCluster.client({ token }),
      async allow() {
        const rules = [
          {
            apiGroups: [''],
            resources: ['configmaps'],
            resourceNames: ['settings'],
            verbs: ['list', 'watch'],
          },
        ]
        const role = { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'Role', metadata, rules }
        await admin.request('POST', `${roles}/${namespace}/roles`, { body: role })
        const binding = {
          apiVersion: 'rbac.authorization.k8s.io/v1',
          kind: 'RoleBinding',
          metadata,
          roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'reader' },
          subjects: [{ kind: 'ServiceAccount', name: 'reader', namespace }],
        }
        await admin.request('POST', `${roles}/${namespace}/rolebindings`, { body: binding })
      },
    }
  },
})

it('case 43: while update on leases is denied nobody leads; when it is given back one does, without a restart', async () => {
  const namespace = await realCluster.newNamespace()
  const admin = realCluster.client()
  const metadata = { name: 'campaign', namespace }
  const path = `${roles}/${namespace}/roles`
  const roleWith = (...verbs: string[]) => ({
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'Role',
    metadata,
    rules: [{ apiGroups: ['coordination.k8s.io'], resources: ['leases'], resourceNames: ['work'], verbs }],
  })
  const token = await realCluster.tokenFor(namespace, 'campaign')
  await admin.request('POST', path, { body: roleWith('get', 'create', 'update') })
  await admin.request('POST', `${roles}/${namespace}/rolebindings`, {
    body: {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'RoleBinding',
      metadata,
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'campaign' },
      subjects: [{ kind: 'ServiceAccount', name: 'campaign', namespace }],
    },
  })
  const stop = new AbortController()
  const timing = { leaseDurationSeconds: 4, renewDeadlineSeconds: 2, retryPeriodSeconds: 0.3 }
  const lines: string[] = []
  const both = ['a', 'b'].map((identity) => {
    const names = { namespace, leaseName: 'work', identity }
    const client = realCluster.client({ token })
    const made = elector({ client, clock: systemClock, log: silentLog(lines), ...names, ...timing })
    made.run(stop.signal).catch(() => {})
    return made
  })
  const leading = () => both.filter((one) => one.isLeader()).length
  await eventually(() => expect(leading()).toBe(1))
  await admin.request('PUT', `${path}/campaign`, { body: roleWith('get', 'create') })
  await eventually(() => expect(leading()).toBe(0))
  const untilMs = systemClock.monotonicMs() + 2_000
  while (systemClock.monotonicMs() < untilMs) {
    expect(leading()).toBe(0)
    await systemClock.sleep(50)
  }
  await admin.request('PUT', `${path}/campaign`, { body: roleWith('get', 'create', 'update') })
  const givenBackMs = systemClock.monotonicMs()
  await eventually(() => expect(leading()).toBe(1))
  // Lease duration and one retry, and what the authorizer needs to hear of the role.
  expect(systemClock.monotonicMs() - givenBackMs).toBeLessThan(4_300 + 1_000)
  const warnings = lines.filter((line) => line.includes('cannot campaign'))
  expect(warnings.length).toBeLessThanOrEqual(2)
  expect(warnings.join()).toContain('cannot update resource')
  stop.abort()
}, 60_000)
