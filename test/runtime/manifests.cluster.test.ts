import { beforeAll, describe, expect, it } from 'vitest'
import { stringify } from 'yaml'
import { systemClock } from '../../shared/clock.ts'
import { apiVersionOf, configMaps, events, type KubeObject, leases } from '../../shared/kinds/object.ts'
import type { KubeClient } from '../../shared/kube/client.ts'
import { configOf, type KubernetesConfigInput } from '../../shared/runtime/config.ts'
import { manifests } from '../../shared/runtime/manifests.ts'
import { kubernetes } from '../../shared/runtime/plugin.ts'
import { realCluster } from '../control-plane/cluster.ts'
import { eventually } from '../support/eventually.ts'
import { silentLog } from './candidates.ts'

const config: KubernetesConfigInput = {
  leaderElection: { enabled: true, leaseName: 'work' },
  configMaps: { watch: ['settings', 'flags'] },
}

function objectsFor(namespace: string): KubeObject[] {
  return manifests({ name: 'web', namespace, image: 'example.com/web:1', config: configOf(config) })
}

const yamlOf = (objects: KubeObject[]) => objects.map((object) => stringify(object)).join('---\n')

describe('AC11: the generated manifests on a real API server', () => {
  it('are taken by a server-side dry run, with no field unknown', async () => {
    const namespace = await realCluster.newNamespace()
    const args = ['apply', '--dry-run=server', '--validate=strict', '-f', '-']
    const { code, stdout, stderr } = await realCluster.kubectl(args, yamlOf(objectsFor(namespace)))
    expect(`${code} ${stderr}`).toBe('0 ')
    expect(stdout.trim().split('\n').length).toBe(6)
  })
})

/** The runtime, run as the service account that the manifests make, with exactly the role that they give it. */
describe('AC11, AC14, case 47: the generated role', () => {
  let namespace: string
  let client: KubeClient
  const admin = realCluster.client()

  beforeAll(async () => {
    namespace = await realCluster.newNamespace()
    const { code, stderr } = await realCluster.kubectl(['apply', '-f', '-'], yamlOf(objectsFor(namespace)))
    expect(`${code} ${stderr}`).toBe('0 ')
    client = realCluster.client({ token: await realCluster.tokenFor(namespace, 'web') })
    for (const name of ['settings', 'flags', 'secret'])
      await admin.create(configMaps, {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name, namespace },
        data: { color: 'red' },
      })
  })

  const lines: string[] = []
  const start = async (as: KubeClient) => {
    const env = { POD_NAME: 'web-1', POD_NAMESPACE: namespace }
    const k8s = kubernetes({ config: { ...config, required: true }, client: as, env, log: silentLog(lines) })
    return { k8s, handle: await k8s.start() }
  }

  it('is enough for the election, the watches, the Kubernetes Events and health', async () => {
    const { k8s, handle } = await start(client)
    await eventually(() => expect(handle.leadership.isLeader()).toBe(true))
    await eventually(() => expect(handle.configMaps.isSynced()).toBe(true))
    expect(handle.configMaps.value('flags', 'color')).toBe('red')
    expect((await handle.health()).status).toBe('up')
    await k8s.stop()
    const metrics = await (await k8s.routes.request('/metrics')).text()
    for (const none of [
      'kubernetes_lease_errors_total{lease="work"} 0',
      'kubernetes_events_failed_total 0',
      'kubernetes_events_published_total 3',
      'kubernetes_config_map_errors_total{config_map="settings"} 0',
      'kubernetes_config_map_errors_total{config_map="flags"} 0',
    ])
      expect(metrics).toContain(none)
    const lease = await admin.get(leases, { namespace, name: 'work' })
    expect(lease).toMatchObject({ spec: { holderIdentity: '' } })
    expect(lines.filter((line) => line.includes('"warn"'))).toEqual([])
  }, 60_000)

  const leaseOf = (name: string, where = namespace) => ({
    apiVersion: apiVersionOf(leases),
    kind: 'Lease',
    metadata: { name, namespace: where, resourceVersion: '1' },
    spec: { holderIdentity: 'intruder' },
  })
  const named = (name: string, where = namespace) => ({
    namespace: where,
    fieldSelector: `metadata.name=${name}`,
  })
  const refused: [string, () => Promise<unknown>][] = [
    ['another Lease: read', () => client.get(leases, { namespace, name: 'other' })],
    ['another Lease: made with PUT', () => client.replace(leases, leaseOf('other'))],
    [
      'a Lease made with POST',
      () => client.create(leases, { ...leaseOf('work'), metadata: { name: 'work', namespace } }),
    ],
    ['its own Lease: deleted', () => client.delete(leases, { namespace, name: 'work' })],
    ['the Leases: listed', () => client.list(leases, { namespace })],
    ['an unlisted ConfigMap: listed', () => client.list(configMaps, named('secret'))],
    ['an unlisted ConfigMap: read', () => client.get(configMaps, { namespace, name: 'secret' })],
    ['a listed ConfigMap: read by GET', () => client.get(configMaps, { namespace, name: 'settings' })],
    ['all ConfigMaps: listed', () => client.list(configMaps, { namespace })],
    ['its ConfigMap in another namespace', () => client.list(configMaps, named('settings', 'default'))],
    ['its Lease in another namespace', () => client.replace(leases, leaseOf('work', 'default'))],
    ['the Kubernetes Events: listed', () => client.list(events, { namespace })],
  ]
  it.each(refused)('is not enough for %s', async (_, work) => {
    await expect(work()).rejects.toMatchObject({ code: 403 })
  })

  it.each([
    ['leases', 'get', 'cannot campaign for the lease', 'cannot get resource'],
    ['leases', 'create', 'cannot campaign for the lease', 'cannot create resource'],
    ['leases', 'update', 'cannot campaign for the lease', 'cannot update resource'],
    ['configmaps', 'list', 'cannot watch the ConfigMap', 'list and watch on configmaps with resourceNames'],
    ['configmaps', 'watch', 'cannot watch the ConfigMap', 'list and watch on configmaps with resourceNames'],
    ['events', 'create', 'Kubernetes Event not written', 'cannot create resource'],
  ])(
    'is minimal: without %s %s one thing breaks, and the log says what is missing',
    async (resource, verb, what, why) => {
      const rolePath = `/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}/roles/web`
      const { body } = await admin.request('GET', rolePath)
      const role = body as { rules: { resources: string[]; verbs: string[] }[] }
      const rules = role.rules
        .map((rule) =>
          rule.resources.includes(resource)
            ? { ...rule, verbs: rule.verbs.filter((each) => each !== verb) }
            : rule,
        )
        .filter(({ verbs }) => verbs.length > 0)
      // So that the Lease has to be created, too.
      await admin.delete(leases, { namespace, name: 'work' })
      await admin.request('PUT', rolePath, { body: { ...role, rules } })
      lines.length = 0
      const { k8s } = await start(client)
      await eventually(() => {
        const warning = lines.find((line) => line.includes(what))
        expect(warning).toContain(why)
      })
      const warnings = new Set(
        lines.filter((line) => line.includes('"warn"')).map((line) => JSON.parse(line).msg),
      )
      expect([...warnings]).toEqual([what])
      await k8s.stop()
      const { body: now } = await admin.request('GET', rolePath)
      await admin.request('PUT', rolePath, { body: { ...(now as object), rules: role.rules } })
      // What the authorizer has cached of the smaller role must be gone before the next test.
      await systemClock.sleep(50)
    },
    60_000,
  )
})
