import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { delivery } from '../../knative/eventing.ts'
import { functionNames, processNames } from '../../knative/names.ts'
import { rbac } from '../../knative/rbac.ts'
import { manifests, staleFiles } from '../../knative/render.ts'
import { type KubeObject, secrets } from '../../shared/kinds/object.ts'
import { deliveryOf, retryTimeMs } from '../../shared/local/events/delivery.ts'

const folder = new URL('../../knative/', import.meta.url)
const documents = (file: string): KubeObject[] =>
  parseAllDocuments(readFileSync(new URL(file, folder), 'utf8')).map((document) => document.toJS())
const objects = Object.values(manifests).flatMap((make) => make())
const of = (kind: string) => objects.filter((object) => object.kind === kind)

interface Rule {
  apiGroups: string[]
  resources: string[]
  verbs: string[]
}
const roles = rbac().filter(({ kind }) => kind === 'ClusterRole' || kind === 'Role')
const rulesOf = (name: string) =>
  roles
    .filter(({ metadata }) => [name, `mutantops-${name}`].includes(metadata?.name ?? ''))
    .flatMap(({ rules }) => rules as Rule[])

describe('the kustomize base', () => {
  it('is as the code renders it', () => {
    expect(staleFiles()).toEqual([])
  })

  it('lists every file beside it', () => {
    const files = readdirSync(new URL('base/', folder)).filter((file) => file !== 'kustomization.yaml')
    const { resources } = documents('base/kustomization.yaml')[0] as unknown as { resources: string[] }
    expect([...resources].sort()).toEqual(files.sort())
  })

  it('has a cluster-local Knative Service that scales to zero for each function', () => {
    for (const name of functionNames) {
      const service = of('Service').find(({ metadata }) => metadata?.name === name)
      expect(service?.metadata?.labels).toMatchObject({
        'networking.knative.dev/visibility': 'cluster-local',
      })
      expect(JSON.stringify(service?.spec)).toContain('"autoscaling.knative.dev/min-scale":"0"')
      expect(JSON.stringify(service?.spec)).not.toMatch(/"limits":\{[^}]*cpu/)
    }
    expect(of('Service')).toHaveLength(functionNames.length)
  })

  it('gives up after 280 s of waiting, before the in-memory channel does after 15 minutes', () => {
    const read = deliveryOf('delivery', delivery)
    expect(retryTimeMs(read)).toBe(280_000)
    expect(retryTimeMs(read) + (read.retries + 1) * (read.timeoutMs ?? 0)).toBeLessThan(15 * 60_000)
    for (const trigger of of('Trigger')) expect(trigger.spec).toMatchObject({ delivery })
  })

  it('gives every process its own service account', () => {
    expect(of('ServiceAccount').map(({ metadata }) => metadata?.name)).toEqual([...processNames])
  })
})

describe('least privilege', () => {
  it('nobody may list or watch Secrets, and only the function for Mutations may see one', () => {
    for (const name of processNames) {
      const verbs = rulesOf(name)
        .filter(({ resources }) => resources.includes(secrets.plural))
        .flatMap((rule) => rule.verbs)
      expect(verbs).toEqual(name === 'mutation' ? ['get', 'create'] : [])
    }
  })

  it('the resync and the watcher write nothing outside their own namespace', () => {
    for (const name of ['resync', 'watcher']) {
      const verbs = roles
        .filter(({ kind, metadata }) => kind === 'ClusterRole' && metadata?.name === `mutantops-${name}`)
        .flatMap(({ rules }) => (rules as Rule[]).flatMap((rule) => rule.verbs))
      expect(verbs.filter((verb) => !['get', 'list', 'watch'].includes(verb))).toEqual([])
    }
  })

  it('nothing is granted by a star', () => {
    expect(JSON.stringify(roles)).not.toContain('"*"')
  })
})

describe('the samples', () => {
  it('nginx-mutant is the one that must work as it stands', () => {
    const [sample] = documents('samples/nginx-mutant.yaml')
    expect(sample).toMatchObject({ apiVersion: 'neiam.org/v1', kind: 'MutantDeployment' })
    expect(sample?.spec).toMatchObject({
      deployment: {
        metadata: { name: 'nginx-deployment', labels: { app: 'nginx' } },
        spec: {
          selector: { matchLabels: { app: 'nginx' } },
          template: {
            metadata: { labels: { app: 'nginx' } },
            spec: { containers: [{ name: 'nginx', image: 'nginx:1.21', ports: [{ containerPort: 80 }] }] },
          },
        },
      },
      mutations: [
        { label: 'canary', env: { NGINX_VERSION: '1.22' }, instances: 1 },
        { label: 'experimental', env: { NGINX_EXPERIMENTAL: 'true' }, instances: 3 },
      ],
    })
  })

  it('there is one of each kind', () => {
    const kinds = readdirSync(new URL('samples/', folder)).flatMap((file) =>
      documents(`samples/${file}`).map(({ kind }) => kind),
    )
    expect(kinds.sort()).toEqual(['MutantDeployment', 'Mutation'])
  })
})
