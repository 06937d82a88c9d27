import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { type ProcessName, processNames } from '../../knative/names.ts'
import { overlays } from '../../knative/overlays.ts'
import { kustomizations } from '../../knative/render.ts'
import { systemClock } from '../../shared/clock.ts'
import { mutations } from '../../shared/kinds/mutants.ts'
import { deployments, isObject, type KubeObject, secrets } from '../../shared/kinds/object.ts'
import { kubeClient } from '../../shared/kube/client.ts'
import { realCluster } from '../control-plane/cluster.ts'
import { mutation } from '../support/builders.ts'
import { installCrds } from '../support/crds.ts'

/** Each folder as kubectl's own kustomize builds it. */

const root = fileURLToPath(new URL('../../', import.meta.url))
const knativeCrds = [join(root, '../shared/knative-crds'), process.env.KNATIVE_CRDS ?? ''].find(
  (folder) => folder !== '' && existsSync(folder),
)

async function built(name: string): Promise<KubeObject[]> {
  const { stdout, stderr, code } = await realCluster.kubectl(['kustomize', join(root, 'knative', name)])
  expect({ name, stderr, code }).toEqual({ name, stderr: '', code: 0 })
  return parseAllDocuments(stdout).map((document) => document.toJS())
}

const named = ({ kind, metadata }: KubeObject) => `${kind} ${metadata?.name}`
const ofKind = (objects: KubeObject[], kind: string) => objects.filter((object) => object.kind === kind)

interface Container {
  args: string[]
  env: { name: string; value?: string }[]
  imagePullPolicy?: string
  image: string
}

/** The container of a process, be it a Deployment's or a Knative Service's. */
function containerOf(objects: KubeObject[], name: ProcessName): Container {
  const found = objects.find(
    ({ kind, metadata }) => ['Deployment', 'Service'].includes(kind ?? '') && metadata?.name === name,
  )
  const { spec } = found as unknown as { spec: { template: { spec: { containers: Container[] } } } }
  const [container] = spec.template.spec.containers
  if (!container) throw new Error(`${name} has no container`)
  return container
}

const envOf = (objects: KubeObject[], name: ProcessName) =>
  Object.fromEntries(containerOf(objects, name).env.map((one) => [one.name, one.value]))

let base: KubeObject[]
beforeAll(async () => {
  await installCrds(realCluster.client())
  await realCluster.kubectl(['create', 'namespace', 'mutantops'])
  base = await built('')
})

describe('kustomize', () => {
  it('builds the root as it builds the base', async () => {
    expect(await built('base')).toEqual(base)
  })

  it.each(Object.keys(overlays))(
    '%s differs from the base in what it is for, and in no name',
    async (name) => {
      const objects = await built(name)
      expect(objects).not.toEqual(base)
      const added = objects.map(named).filter((one) => !base.map(named).includes(one))
      expect(added).toEqual(name === 'oidc' ? ['EventPolicy broker'] : [])
    },
  )

  it.skipIf(!knativeCrds).each(Object.keys(kustomizations))(
    'a real API server takes the folder "%s" with strict validation',
    async (name) => {
      const applied = await realCluster.kubectl(['apply', '--server-side', '-f', knativeCrds ?? ''])
      expect(applied.code).toBe(0)
      const { stderr, code } = await realCluster.kubectl([
        'apply',
        '--server-side',
        '--dry-run=server',
        '--validate=strict',
        ...(name === 'tenant' ? ['-n', 'default'] : []),
        '-k',
        join(root, 'knative', name),
      ])
      expect({ stderr, code }).toEqual({ stderr: '', code: 0 })
    },
  )
})

describe('kafka', () => {
  it('has a Broker in Kafka, and Triggers for which one object does not wait for another', async () => {
    const objects = await built('kafka')
    expect(ofKind(objects, 'Broker')).toEqual([
      expect.objectContaining({
        metadata: expect.objectContaining({ annotations: { 'eventing.knative.dev/broker.class': 'Kafka' } }),
        spec: { config: expect.objectContaining({ name: 'kafka-broker-config' }) },
      }),
    ])
    for (const { metadata } of ofKind(objects, 'Trigger'))
      expect(metadata?.annotations).toEqual({ 'kafka.eventing.knative.dev/delivery.order': 'unordered' })
  })
})

describe('direct', () => {
  it('has nothing of Eventing, and a sink for each function', async () => {
    const objects = await built('direct')
    expect(JSON.stringify(objects.map(({ apiVersion }) => apiVersion))).not.toMatch(/eventing|sources/)
    expect(objects.map(named)).not.toContainEqual(expect.stringContaining('dead-letter'))
    for (const name of ['watcher', 'resync'] as const)
      expect(envOf(objects, name)).toMatchObject({
        SINK_MUTATION: 'http://mutation.mutantops.svc.cluster.local',
        SINK_MUTANTDEPLOYMENT: 'http://mutant-deployment.mutantops.svc.cluster.local',
        SINK_RESYNC: 'http://resync.mutantops.svc.cluster.local',
      })
    expect(envOf(objects, 'watcher')).toMatchObject({ RESYNC_SECONDS: '300' })
  })
})

describe('dev', () => {
  it('has one watcher, a talkative log, and an image that is not pulled', async () => {
    const objects = await built('dev')
    expect(ofKind(objects, 'PodDisruptionBudget')).toEqual([])
    expect(ofKind(objects, 'Deployment')[0]?.spec).toMatchObject({ replicas: 1 })
    for (const name of processNames) {
      expect(envOf(objects, name)).toMatchObject({ LOG_LEVEL: 'debug' })
      expect(containerOf(objects, name)).toMatchObject({
        image: 'dev.local/mutantops:dev',
        imagePullPolicy: 'IfNotPresent',
      })
    }
  })
})

describe('oidc', () => {
  it('gives each function an audience, and its Trigger the same one', async () => {
    const objects = await built('oidc')
    for (const trigger of ofKind(objects, 'Trigger')) {
      const { subscriber, delivery } = trigger.spec as {
        subscriber: { audience: string; ref: { name: ProcessName } }
        delivery: { deadLetterSink: { audience: string } }
      }
      expect(envOf(objects, subscriber.ref.name).OIDC_AUDIENCE).toBe(subscriber.audience)
      expect(envOf(objects, 'dead-letter').OIDC_AUDIENCE).toBe(delivery.deadLetterSink.audience)
    }
  })

  it('lets every source of ours, and nobody else, send to the Broker', async () => {
    const objects = await built('oidc')
    const sources = [...ofKind(objects, 'SinkBinding'), ...ofKind(objects, 'PingSource')].map(named)
    const [policy] = ofKind(objects, 'EventPolicy')
    const spec = policy?.spec as { from: { ref: { kind: string; name: string } }[] } | undefined
    const from = spec?.from.map(({ ref }) => `${ref.kind} ${ref.name}`)
    expect(from?.sort()).toEqual(sources.sort())
  })
})

describe('namespaced', () => {
  const allowed = 'namespaced-allowed'

  beforeAll(async () => {
    const client = realCluster.client()
    const objects = (await built('namespaced')).filter(({ kind }) =>
      ['ServiceAccount', 'Role', 'RoleBinding'].includes(kind ?? ''),
    )
    await realCluster.kubectl(['create', 'namespace', allowed])
    await realCluster.kubectl(
      ['apply', '--server-side', '-f', '-'],
      JSON.stringify({ kind: 'List', apiVersion: 'v1', items: objects }),
    )
    // The tests beside this one use the same server and the same accounts with the roles of the base.
    const renamed = JSON.stringify({
      kind: 'List',
      apiVersion: 'v1',
      items: (await built('tenant')).map(forTenant),
    })
    const { stderr, code } = await realCluster.kubectl(
      ['apply', '--server-side', '-n', allowed, '-f', '-'],
      renamed,
    )
    expect({ stderr, code }).toEqual({ stderr: '', code: 0 })
    await client.create(mutations, mutation('web').with('red', 1).in(allowed).object())
  })

  /** The same binding for an account that has no other. */
  function forTenant(object: KubeObject): KubeObject {
    if (object.kind !== 'RoleBinding') return object
    const { subjects } = object as unknown as { subjects: { name: string }[] }
    return { ...object, subjects: subjects.map((one) => ({ ...one, namespace: allowed })) }
  }

  async function clientOf(process: ProcessName) {
    await realCluster.kubectl(['create', 'serviceaccount', process, '-n', allowed])
    const token = await realCluster.tokenFor(allowed, process)
    return kubeClient({ transport: realCluster.transport(token), clock: systemClock, userAgent: 'test' })
  }

  it('grants nothing in all namespaces to a process', async () => {
    const objects = await built('namespaced')
    expect(ofKind(objects, 'ClusterRoleBinding')).toEqual([])
    for (const name of ['watcher', 'resync'] as const)
      expect(envOf(objects, name)).toMatchObject({ WATCH_NAMESPACES: 'default' })
  })

  it('the tenant has the rules of the base, and no more', async () => {
    const rules = (objects: KubeObject[]) =>
      Object.fromEntries(objects.filter(isProcessRole).map(({ metadata, rules }) => [metadata?.name, rules]))
    expect(rules(await built('tenant'))).toEqual(rules(base))
  })

  it('each process may work in the namespace that has the roles, and in no other', async () => {
    const other = await realCluster.newNamespace()
    const resync = await clientOf('resync')
    expect((await resync.list(mutations, { namespace: allowed })).items).toHaveLength(1)
    await expect(resync.list(mutations, { namespace: other })).rejects.toMatchObject({ code: 403 })
    await expect(resync.list(mutations, {})).rejects.toMatchObject({ code: 403 })

    const reconciler = await clientOf('mutation')
    await reconciler.apply(deployments, deploymentIn(allowed), { fieldManager: 'test' })
    await expect(
      reconciler.apply(deployments, deploymentIn(other), { fieldManager: 'test' }),
    ).rejects.toMatchObject({
      code: 403,
    })
    await expect(reconciler.list(secrets, { namespace: allowed })).rejects.toMatchObject({ code: 403 })
    await expect(reconciler.get(secrets, { namespace: other, name: 'x' })).rejects.toMatchObject({
      code: 403,
    })
  })
})

function isProcessRole(object: KubeObject): boolean {
  const label = object.metadata?.labels?.['app.kubernetes.io/name']
  const isOwn = object.metadata?.namespace !== undefined
  return ['Role', 'ClusterRole'].includes(object.kind ?? '') && isObject(object.metadata) && !!label && !isOwn
}

function deploymentIn(namespace: string): KubeObject {
  const labels = { app: 'tenant' }
  const containers = [{ name: 'web', image: 'web:1' }]
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'child', namespace },
    spec: {
      replicas: 0,
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers } },
    },
  }
}
