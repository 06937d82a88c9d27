import { existsSync } from 'node:fs'
import { mkdtemp, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, it } from 'vitest'
import { parseAllDocuments, stringify } from 'yaml'
import { functionConfig } from '../../functions/config.ts'
import { type ProcessName, processNames } from '../../knative/names.ts'
import { overlays } from '../../knative/overlays.ts'
import { kustomizations } from '../../knative/render.ts'
import type { KubeObject } from '../../shared/kinds/object.ts'
import { realCluster } from '../control-plane/cluster.ts'
import { installCrds } from '../support/crds.ts'
import { kustomized } from '../support/installation.ts'
import { problemsOf } from '../support/knative-schemas.ts'

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

/** The container of a process, be it a Deployment's or a Knative Service's; undefined where that is not installed. */
function containerOf(objects: KubeObject[], name: ProcessName): Container | undefined {
  const found = objects.find(
    ({ kind, metadata }) => ['Deployment', 'Service'].includes(kind ?? '') && metadata?.name === name,
  )
  const { spec } = { ...found } as unknown as { spec?: { template: { spec: { containers: Container[] } } } }
  return spec?.template.spec.containers[0]
}

/** What a process makes of the environment that the manifests give it. */
function configOf(objects: KubeObject[], name: ProcessName) {
  const env = containerOf(objects, name)?.env.map((one) => [one.name, one.value]) ?? []
  return functionConfig(Object.fromEntries(env))
}

/** What each overlay is for. */
const purposes: Record<string, (objects: KubeObject[]) => void> = {
  // A Broker in Kafka, and Triggers for which one object does not wait for another.
  kafka(objects) {
    expect(ofKind(objects, 'Broker')).toEqual([
      expect.objectContaining({
        metadata: expect.objectContaining({ annotations: { 'eventing.knative.dev/broker.class': 'Kafka' } }),
        spec: { config: expect.objectContaining({ name: 'kafka-broker-config' }) },
      }),
    ])
    expect(ofKind(objects, 'Trigger')).toHaveLength(3)
    for (const { metadata } of ofKind(objects, 'Trigger'))
      expect(metadata?.annotations).toEqual({ 'kafka.eventing.knative.dev/delivery.order': 'unordered' })
  },

  // Nothing of Eventing, and both senders know where each function is.
  direct(objects) {
    expect(JSON.stringify(objects.map(({ apiVersion }) => apiVersion))).not.toMatch(/eventing|sources/)
    expect(objects.map(named)).not.toContainEqual(expect.stringContaining('dead-letter'))
    for (const name of ['watcher', 'resync'] as const)
      expect(configOf(objects, name).sink?.url).toEqual({
        kinds: {
          Mutation: 'http://mutation.mutantops.svc.cluster.local',
          MutantDeployment: 'http://mutant-deployment.mutantops.svc.cluster.local',
        },
        resync: 'http://resync.mutantops.svc.cluster.local',
      })
    expect(configOf(objects, 'watcher')).toMatchObject({
      resyncEveryMs: 300_000,
      fullResyncEveryMs: 3_600_000,
    })
  },

  // Only the named namespaces are looked at, and no process has a right in all of them.
  namespaced(objects) {
    for (const name of ['watcher', 'resync'] as const)
      expect(configOf(objects, name).namespaces).toEqual(['default'])
    expect(ofKind(objects, 'ClusterRoleBinding')).toEqual([])
  },

  // One watcher, a talkative log, and an image that is not pulled.
  dev(objects) {
    expect(ofKind(objects, 'PodDisruptionBudget')).toEqual([])
    expect(ofKind(objects, 'Deployment')[0]?.spec).toMatchObject({ replicas: 1 })
    for (const name of processNames) {
      const container = containerOf(objects, name)
      if (!container) continue
      expect(container).toMatchObject({ image: 'dev.local/mutantops:dev', imagePullPolicy: 'IfNotPresent' })
      expect(configOf(objects, name).logLevel).toBe('debug')
    }
    for (const { spec } of ofKind(objects, 'Service'))
      expect(JSON.stringify(spec)).toContain('"autoscaling.knative.dev/window":"6s"')
  },

  // Each function has an audience and its Trigger the same; every source of ours, and nobody else, sends to the Broker.
  oidc(objects) {
    for (const trigger of ofKind(objects, 'Trigger')) {
      const { subscriber, delivery } = trigger.spec as {
        subscriber: { audience: string; ref: { name: ProcessName } }
        delivery: { deadLetterSink: { audience: string } }
      }
      expect(configOf(objects, subscriber.ref.name).oidcAudience).toBe(subscriber.audience)
      expect(configOf(objects, 'dead-letter').oidcAudience).toBe(delivery.deadLetterSink.audience)
    }
    const sources = [...ofKind(objects, 'SinkBinding'), ...ofKind(objects, 'PingSource')].map(named)
    const [policy] = ofKind(objects, 'EventPolicy')
    const spec = policy?.spec as { from: { ref: { kind: string; name: string } }[] } | undefined
    expect(spec?.from.map(({ ref }) => `${ref.kind} ${ref.name}`).sort()).toEqual(sources.sort())
  },
}

/** The base with several components, in a kustomization of somebody's own. */
async function together(names: string[]): Promise<KubeObject[]> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'overlays-')))
  const path = (name: string) => relative(folder, join(root, 'knative', name))
  const kustomization = {
    resources: [path('base')],
    components: names.map((name) => path(`components/${name}`)),
  }
  await writeFile(join(folder, 'kustomization.yaml'), stringify(kustomization))
  const { stdout, stderr, code } = await realCluster.kubectl(['kustomize', folder])
  await rm(folder, { recursive: true })
  expect({ stderr, code }).toEqual({ stderr: '', code: 0 })
  return parseAllDocuments(stdout).map((document) => document.toJS())
}

let base: KubeObject[]
beforeAll(async () => {
  await installCrds(realCluster.client())
  await realCluster.kubectl(['create', 'namespace', 'mutantops'])
  base = await kustomized('')
})

it('the root is built as the base is', async () => {
  expect(await kustomized('base')).toEqual(base)
})

describe.each(Object.keys(overlays))('%s', (name) => {
  it('is what it is for, and the base is not', async () => {
    const purpose = purposes[name]
    purpose?.(await kustomized(name))
    expect(() => purpose?.(base)).toThrow()
  })

  it('has no object that the base has not, but for the policy that says who may send', async () => {
    const added = (await kustomized(name)).map(named).filter((one) => !base.map(named).includes(one))
    expect(added).toEqual(name === 'oidc' ? ['EventPolicy broker'] : [])
  })

  it('gives no account a right that it has not in the base', async () => {
    const rights = (objects: KubeObject[]) =>
      objects.filter(({ kind }) => /Role|ServiceAccount/.test(kind ?? '')).map((one) => JSON.stringify(one))
    expect(rights(base).length).toBeGreaterThan(0)
    expect(rights(base)).toEqual(expect.arrayContaining(rights(await kustomized(name))))
  })
})

describe('components', () => {
  it.each([
    [['kafka', 'oidc']],
    [['namespaced', 'direct']],
    [['direct', 'namespaced', 'dev']],
    [['kafka', 'namespaced', 'oidc', 'dev']],
  ])('%j go together', async (names) => {
    const objects = await together(names)
    for (const name of names) purposes[name]?.(objects)
  })
})

/** The folders that `kubectl apply -k` takes; `alerts` is for the kinds of the Prometheus operator, which are not here. */
const folders = Object.entries(kustomizations).flatMap(([name, one]) =>
  one.isComponent || name === 'alerts' ? [] : [name],
)

describe.each(folders)('a real API server, asked with strict validation, takes the folder "%s"', (name) => {
  const dryRun = (args: string[], stdin?: string) =>
    realCluster.kubectl(
      ['apply', '--server-side', '--dry-run=server', '--validate=strict']
        .concat(name === 'tenant' ? ['-n', 'default'] : [])
        .concat(args),
      stdin,
    )

  it('without what is of Knative, which the schemas of a package take', async () => {
    const objects = await kustomized(name)
    const ofKnative = objects.filter(({ apiVersion }) => apiVersion?.includes('knative.dev'))
    expect(ofKnative.flatMap(problemsOf)).toEqual([])
    const items = objects.filter((object) => !ofKnative.includes(object))
    const list = JSON.stringify({ apiVersion: 'v1', kind: 'List', items })
    const { stderr, code } = await dryRun(['-f', '-'], list)
    expect({ stderr, code }).toEqual({ stderr: '', code: 0 })
  })

  it.skipIf(!knativeCrds)('as a whole', async () => {
    const applied = await realCluster.kubectl(['apply', '--server-side', '-f', knativeCrds ?? ''])
    expect(applied.code).toBe(0)
    const { stderr, code } = await dryRun(['-k', join(root, 'knative', name)])
    expect({ stderr, code }).toEqual({ stderr: '', code: 0 })
  })
})
