import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, it } from 'vitest'
import type { ProcessName } from '../../knative/names.ts'
import { systemClock } from '../../shared/clock.ts'
import { mutantDeployments, mutations } from '../../shared/kinds/mutants.ts'
import { deployments, events, leases, type Resource, secrets } from '../../shared/kinds/object.ts'
import { kubeClient } from '../../shared/kube/client.ts'
import { objectEventRecorder } from '../../shared/reconcile/object-events.ts'
import { realCluster } from '../control-plane/cluster.ts'
import { mutantDeployment, mutation } from '../support/builders.ts'
import { world } from '../support/world.ts'

/** What each process may do with the roles of knative/base/rbac.yaml, asked of a real API server and tried on it. */

const rbacFile = fileURLToPath(new URL('../../knative/base/rbac.yaml', import.meta.url))

beforeAll(async () => {
  await realCluster.kubectl(['create', 'namespace', 'mutantops'])
  const { stderr, code } = await realCluster.kubectl(['apply', '--server-side', '-f', rbacFile])
  expect({ stderr, code }).toEqual({ stderr: '', code: 0 })
})

async function clientOf(process: ProcessName) {
  const token = await realCluster.tokenFor('mutantops', process)
  return kubeClient({ transport: realCluster.transport(token), clock: systemClock, userAgent: 'test' })
}

async function mayDo(
  process: ProcessName,
  verb: string,
  resource: Resource,
  where: { namespace?: string; name?: string; subresource?: string } = {},
): Promise<boolean> {
  const resourceAttributes = { verb, group: resource.group, resource: resource.plural, ...where }
  const body = {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SubjectAccessReview',
    spec: {
      user: `system:serviceaccount:mutantops:${process}`,
      groups: ['system:serviceaccounts'],
      resourceAttributes,
    },
  }
  const answer = await realCluster
    .client()
    .request('POST', '/apis/authorization.k8s.io/v1/subjectaccessreviews', { body })
  return (answer.body as { status: { allowed: boolean } }).status.allowed
}

const everyVerb = ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete', 'deletecollection']

describe('what each process may do', () => {
  it.each<[ProcessName, Resource, string[]]>([
    ['watcher', mutations, ['list', 'watch']],
    ['watcher', mutantDeployments, ['list', 'watch']],
    ['watcher', deployments, ['list', 'watch']],
    ['watcher', secrets, []],
    ['watcher', events, []],
    ['mutation', mutations, ['get']],
    ['mutation', mutantDeployments, []],
    ['mutation', deployments, ['get', 'list', 'create', 'patch', 'delete']],
    ['mutation', secrets, ['get', 'create']],
    ['mutation', events, ['get', 'create', 'update']],
    ['mutant-deployment', mutantDeployments, ['get']],
    ['mutant-deployment', mutations, []],
    ['mutant-deployment', deployments, ['get', 'list', 'create', 'patch', 'delete']],
    ['mutant-deployment', secrets, []],
    ['resync', mutations, ['list']],
    ['resync', mutantDeployments, ['list']],
    ['resync', deployments, ['list']],
    ['resync', secrets, []],
    ['resync', events, []],
    ['dead-letter', mutations, ['get']],
    ['dead-letter', deployments, []],
    ['dead-letter', secrets, []],
    ['dead-letter', events, ['get', 'create', 'update']],
  ])('%s with %o: exactly %j', async (process, resource, verbs) => {
    const allowed = await Promise.all(
      everyVerb.map(async (verb) =>
        (await mayDo(process, verb, resource, { namespace: 'shop' })) ? [verb] : [],
      ),
    )
    expect(allowed.flat()).toEqual(verbs)
  })

  it('the watcher has its own Lease and no other', async () => {
    const own = { namespace: 'mutantops', name: 'mutantops-watcher' }
    for (const verb of ['get', 'create', 'update'])
      expect(await mayDo('watcher', verb, leases, own)).toBe(true)
    expect(await mayDo('watcher', 'update', leases, { ...own, name: 'other' })).toBe(false)
    expect(await mayDo('watcher', 'update', leases, { ...own, namespace: 'kube-system' })).toBe(false)
    expect(await mayDo('watcher', 'list', leases, { namespace: 'mutantops' })).toBe(false)
    expect(await mayDo('watcher', 'create', events, { namespace: 'mutantops' })).toBe(true)
  })

  it('a status is written only by the function of its kind', async () => {
    const status = { namespace: 'shop', subresource: 'status' }
    expect(await mayDo('mutation', 'update', mutations, status)).toBe(true)
    expect(await mayDo('mutant-deployment', 'update', mutations, status)).toBe(false)
    expect(await mayDo('mutant-deployment', 'update', mutantDeployments, status)).toBe(true)
    for (const process of ['watcher', 'resync', 'dead-letter'] as const)
      expect(await mayDo(process, 'update', mutations, status)).toBe(false)
  })
})

describe('what it may do is enough', () => {
  it.each([
    ['mutation', mutation('web')],
    ['mutant-deployment', mutantDeployment('web')],
  ] as const)(
    '%s creates, changes, prunes, reports and records as its own service account',
    async (process, blank) => {
      const w = await world(realCluster)
      const client = await clientOf(process)
      const record = objectEventRecorder({
        client,
        clock: systemClock,
        reporter: { controller: `neiam.org/${process}`, instance: 'test' },
      })
      const context = { client, record }
      await w.create(blank.with('red', 1).with('blue', 2).with('Not A Label', 1))
      expect(await w.reconcile(blank, context)).toMatchObject({ outcome: 'settled' })
      expect(await w.children()).toEqual(['web-blue', 'web-red'])
      expect((await w.status(blank)).summary).toMatch(/invalid/)

      await w.change(blank.with('red', 3))
      expect(await w.reconcile(blank, context)).toMatchObject({ outcome: 'settled' })
      expect(await w.children()).toEqual(['web-red'])
      expect((await w.child('web-red'))?.spec.replicas).toBe(3)
      const recorded = await w.admin.list(events, { namespace: w.namespace })
      expect(recorded.items.length).toBeGreaterThan(0)
      expect(
        await client.request('GET', `/api/v1/namespaces/${w.namespace}/secrets`).catch((error) => error.code),
      ).toBe(403)
    },
  )
})
