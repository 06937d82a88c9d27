import { beforeAll, describe, expect, it } from 'vitest'
import { type ProcessName, processNames } from '../../knative/names.ts'
import { systemClock } from '../../shared/clock.ts'
import { mutantDeployments, mutations } from '../../shared/kinds/mutants.ts'
import type { KubeObject } from '../../shared/kinds/object.ts'
import { type KubeClient, kubeClient } from '../../shared/kube/client.ts'
import { realCluster } from '../control-plane/cluster.ts'
import { mutantDeployment, mutation } from '../support/builders.ts'
import { installCrds } from '../support/crds.ts'
import { applyRights, kustomized } from '../support/installation.ts'

/** The overlay `namespaced` with one namespace that has the kustomization `tenant`, on a real API server. */

/** Stand in the paths below for the namespaces of this run. */
const places = { HOME: '', TENANT: '', OTHER: '' }
const clients = {} as Record<ProcessName, KubeClient>

beforeAll(async () => {
  const admin = realCluster.client()
  await installCrds(admin)
  for (const place of Object.keys(places) as (keyof typeof places)[])
    places[place] = await realCluster.newNamespace()
  await applyRights(await kustomized('namespaced', places.HOME), places.HOME)
  await applyRights(await kustomized('tenant', places.HOME), places.TENANT)
  for (const namespace of [places.TENANT, places.OTHER])
    for (const object of [mutation('web'), mutantDeployment('shop')])
      await admin.create(object.kind, object.with('red', 1).in(namespace).object())
  for (const name of processNames) {
    const transport = realCluster.transport(await realCluster.tokenFor(places.HOME, name))
    clients[name] = kubeClient({ transport, clock: systemClock, userAgent: 'test' })
  }
})

describe('the files', () => {
  it('leave of what holds for the whole cluster the CRDs, the Namespace, and the roles for people', async () => {
    const withoutNamespace = (await kustomized('namespaced')).filter(({ metadata }) => !metadata?.namespace)
    expect(withoutNamespace.map(({ kind, metadata }) => `${kind} ${metadata?.name}`).sort()).toEqual([
      'ClusterRole mutantops-edit',
      'ClusterRole mutantops-view',
      'CustomResourceDefinition mutantdeployments.neiam.org',
      'CustomResourceDefinition mutations.neiam.org',
      'Namespace mutantops',
    ])
  })

  it('give a tenant the rules that the base has for all namespaces, and no more', async () => {
    const rulesOf = (objects: KubeObject[], kind: string) =>
      Object.fromEntries(
        objects
          .filter((object) => object.kind === kind && object.metadata?.labels?.['app.kubernetes.io/name'])
          .map(({ metadata, rules }) => [metadata?.name, rules]),
      )
    const tenant = rulesOf(await kustomized('tenant'), 'Role')
    expect(tenant).toEqual(rulesOf(await kustomized('base'), 'ClusterRole'))
    expect(Object.keys(tenant)).toHaveLength(processNames.length)
  })
})

/** What an account may do in a namespace, as the server itself tells it. */
async function rulesIn(client: KubeClient, namespace: string): Promise<string[]> {
  const { body } = await client.request('POST', '/apis/authorization.k8s.io/v1/selfsubjectrulesreviews', {
    body: {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SelfSubjectRulesReview',
      spec: { namespace },
    },
  })
  const { resourceRules } = (body as { status: { resourceRules: object[] } }).status
  return resourceRules.map((rule) => JSON.stringify(rule)).sort()
}

describe('outside of its tenants', () => {
  it.each(processNames)('%s has no right that every account has not', async (name) => {
    const token = await realCluster.tokenFor(places.OTHER, 'anyone')
    const anyone = kubeClient({
      transport: realCluster.transport(token),
      clock: systemClock,
      userAgent: 'test',
    })
    const common = await rulesIn(anyone, places.OTHER)
    expect(await rulesIn(clients[name], places.OTHER)).toEqual(common)
    expect(await rulesIn(clients[name], 'kube-system')).toEqual(await rulesIn(anyone, 'kube-system'))
    // What it has in a namespace of its tenants is seen by the same question.
    expect(await rulesIn(clients[name], places.TENANT)).not.toEqual(common)
  })
})

const ours = (where: string) => `/apis/neiam.org/v1/${where}`
const [mutationsPath, mutantDeploymentsPath] = [mutations.plural, mutantDeployments.plural]

/** The answer's status code. RBAC is asked before a body is looked at, so an empty one does. */
async function codeOf(process: ProcessName, verb: string, template: string): Promise<number> {
  const path = Object.entries(places).reduce((text, [name, value]) => text.replace(name, value), template)
  const body = verb === 'GET' || verb === 'DELETE' ? {} : { body: {} }
  return clients[process].request(verb, path, body).then(
    () => 200,
    (error) => error.code,
  )
}

describe('what a process asks for in a tenant', () => {
  it.each<[ProcessName, string]>([
    ['watcher', ours(`namespaces/TENANT/${mutationsPath}`)],
    ['watcher', '/apis/apps/v1/namespaces/TENANT/deployments'],
    ['mutation', ours(`namespaces/TENANT/${mutationsPath}/web`)],
    ['mutation', '/apis/apps/v1/namespaces/TENANT/deployments'],
    ['mutant-deployment', ours(`namespaces/TENANT/${mutantDeploymentsPath}/shop`)],
    ['resync', ours(`namespaces/TENANT/${mutantDeploymentsPath}`)],
    ['dead-letter', ours(`namespaces/TENANT/${mutationsPath}/web`)],
  ])('%s: GET %s is answered', async (process, path) => {
    expect(await codeOf(process, 'GET', path)).toBe(200)
  })
})

describe('forbidden', () => {
  it.each<[ProcessName, string, string]>([
    ['watcher', 'GET', ours(mutationsPath)],
    ['watcher', 'GET', ours(`namespaces/OTHER/${mutationsPath}`)],
    ['watcher', 'GET', '/apis/apps/v1/deployments'],
    ['watcher', 'GET', '/api/v1/namespaces/TENANT/secrets'],
    ['watcher', 'POST', '/apis/events.k8s.io/v1/namespaces/TENANT/events'],
    ['watcher', 'DELETE', '/apis/apps/v1/namespaces/TENANT/deployments/any'],
    ['watcher', 'POST', '/apis/coordination.k8s.io/v1/namespaces/TENANT/leases'],
    ['watcher', 'GET', '/apis/coordination.k8s.io/v1/namespaces/HOME/leases/other'],
    ['watcher', 'GET', '/api/v1/namespaces/HOME/configmaps'],
    ['mutation', 'GET', ours(`namespaces/OTHER/${mutationsPath}/web`)],
    ['mutation', 'GET', ours(`namespaces/TENANT/${mutantDeploymentsPath}/shop`)],
    ['mutation', 'PUT', ours(`namespaces/OTHER/${mutationsPath}/web/status`)],
    ['mutation', 'GET', '/apis/apps/v1/namespaces/OTHER/deployments'],
    ['mutation', 'POST', '/apis/apps/v1/namespaces/OTHER/deployments'],
    ['mutation', 'DELETE', '/apis/apps/v1/namespaces/OTHER/deployments/any'],
    ['mutation', 'GET', '/api/v1/namespaces/OTHER/secrets/web-token'],
    ['mutation', 'POST', '/api/v1/namespaces/HOME/secrets'],
    ['mutation', 'GET', '/api/v1/namespaces/TENANT/secrets'],
    ['mutant-deployment', 'GET', ours(`namespaces/OTHER/${mutantDeploymentsPath}/shop`)],
    ['mutant-deployment', 'POST', '/apis/apps/v1/namespaces/OTHER/deployments'],
    ['mutant-deployment', 'GET', '/api/v1/namespaces/TENANT/secrets/web-token'],
    ['mutant-deployment', 'POST', '/api/v1/namespaces/TENANT/secrets'],
    ['resync', 'GET', ours(mutationsPath)],
    ['resync', 'GET', ours(`namespaces/OTHER/${mutantDeploymentsPath}`)],
    ['resync', 'GET', '/apis/apps/v1/deployments'],
    ['resync', 'GET', '/api/v1/namespaces/TENANT/secrets/web-token'],
    ['resync', 'POST', '/apis/apps/v1/namespaces/TENANT/deployments'],
    ['dead-letter', 'GET', ours(`namespaces/OTHER/${mutationsPath}/web`)],
    ['dead-letter', 'POST', '/apis/events.k8s.io/v1/namespaces/OTHER/events'],
    ['dead-letter', 'GET', '/apis/apps/v1/namespaces/TENANT/deployments'],
    ['dead-letter', 'GET', '/api/v1/namespaces/TENANT/secrets/web-token'],
  ])('%s: %s %s', async (process, verb, path) => {
    expect(await codeOf(process, verb, path)).toBe(403)
  })
})
