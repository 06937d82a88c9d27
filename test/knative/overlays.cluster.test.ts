import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, it } from 'vitest'
import { type ProcessName, processNames } from '../../knative/names.ts'
import { overlays } from '../../knative/overlays.ts'
import { kustomizations } from '../../knative/render.ts'
import type { KubeObject } from '../../shared/kinds/object.ts'
import { realCluster } from '../control-plane/cluster.ts'
import { installCrds } from '../support/crds.ts'
import { kustomized } from '../support/installation.ts'

/** Each folder as kubectl's own kustomize builds it. */

const root = fileURLToPath(new URL('../../', import.meta.url))
const knativeCrds = [join(root, '../shared/knative-crds'), process.env.KNATIVE_CRDS ?? ''].find(
  (folder) => folder !== '' && existsSync(folder),
)

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
  base = await kustomized('')
})

describe('kustomize', () => {
  it('builds the root as it builds the base', async () => {
    expect(await kustomized('base')).toEqual(base)
  })

  it.each(Object.keys(overlays))(
    '%s differs from the base in what it is for, and in no name',
    async (name) => {
      const objects = await kustomized(name)
      expect(objects).not.toEqual(base)
      const added = objects.map(named).filter((one) => !base.map(named).includes(one))
      expect(added).toEqual(name === 'oidc' ? ['EventPolicy broker'] : [])
    },
  )

  it.each(Object.keys(overlays))('%s gives no account a right that it has not in the base', async (name) => {
    const rights = (objects: KubeObject[]) =>
      objects.filter(({ kind }) => /Role|ServiceAccount/.test(kind ?? '')).map((one) => JSON.stringify(one))
    expect(rights(base).length).toBeGreaterThan(0)
    expect(rights(base)).toEqual(expect.arrayContaining(rights(await kustomized(name))))
  })

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
    const objects = await kustomized('kafka')
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
    const objects = await kustomized('direct')
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
    const objects = await kustomized('dev')
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
    const objects = await kustomized('oidc')
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
    const objects = await kustomized('oidc')
    const sources = [...ofKind(objects, 'SinkBinding'), ...ofKind(objects, 'PingSource')].map(named)
    const [policy] = ofKind(objects, 'EventPolicy')
    const spec = policy?.spec as { from: { ref: { kind: string; name: string } }[] } | undefined
    const from = spec?.from.map(({ ref }) => `${ref.kind} ${ref.name}`)
    expect(from?.sort()).toEqual(sources.sort())
  })
})

describe('namespaced', () => {
  it('has the watcher and the resync look at no namespace but those that are named', async () => {
    const objects = await kustomized('namespaced')
    for (const name of ['watcher', 'resync'] as const)
      expect(envOf(objects, name)).toMatchObject({ WATCH_NAMESPACES: 'default' })
  })
})
