import { type MutantKind, mutantDeployments, mutations, type Variant } from '../../shared/kinds/mutants.ts'
import type { KubeObject, StoredObject } from '../../shared/kinds/object.ts'

/** Objects as sentences: `mutation('web').with('red', 2, { COLOR: 'red' }).annotated({ … }).object()`. */

export interface MutantBuilder {
  kind: MutantKind
  name: string
  /** One more variant; `instances` undefined leaves it out. */
  with(label: string, instances?: number, env?: Variant['env']): MutantBuilder
  /** Changes the base, which is a copy that may be changed in place. */
  based(change: (deployment: TestDeployment) => void): MutantBuilder
  /** Any base instead. */
  on(deployment: unknown): MutantBuilder
  annotated(annotations: Record<string, string>): MutantBuilder
  in(namespace: string): MutantBuilder
  /** As it is sent to the API. */
  object(): KubeObject
  /** As the API would give it back, for what is tested without one. */
  stored(metadata?: Partial<StoredObject['metadata']>): StoredObject
}

interface TestContainer {
  name: string
  image: string
  [field: string]: unknown
}

/** The base of the builders, typed as far as tests change it. */
export interface TestDeployment {
  apiVersion?: string
  kind?: string
  metadata: { name?: string; labels?: Record<string, string>; [field: string]: unknown }
  spec: {
    replicas?: number | null
    selector: { matchLabels: Record<string, string>; [field: string]: unknown }
    template: {
      metadata: { labels: Record<string, string>; [field: string]: unknown }
      spec: { containers: TestContainer[]; [field: string]: unknown }
    }
    [field: string]: unknown
  }
  [field: string]: unknown
}

/** A Mutation without variants whose base is {@link base}. */
export const mutation = (name: string) => builder({ ...blank(mutations, name) })
/** A MutantDeployment without variants whose base is {@link base}. */
export const mutantDeployment = (name: string) => builder({ ...blank(mutantDeployments, name) })
/** Of either kind, for tests that are the same for both. */
export const mutant = (kind: MutantKind, name: string) => builder(blank(kind, name))

/** A Deployment with one container `main`, labels and selector `app: <name>`. */
export function base(name = 'web'): TestDeployment {
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name, labels: { app: name } },
    spec: {
      selector: { matchLabels: { app: name } },
      template: {
        metadata: { labels: { app: name } },
        spec: { containers: [{ name: 'main', image: 'nginx:1.21' }] },
      },
    },
  }
}

interface Parts {
  kind: MutantKind
  name: string
  namespace?: string
  deployment: unknown
  variants: Variant[]
  annotations?: Record<string, string>
}

const blank = (kind: MutantKind, name: string): Parts => ({ kind, name, deployment: base(), variants: [] })

function builder(parts: Parts): MutantBuilder {
  const { kind, name } = parts
  const object = (): KubeObject => ({
    apiVersion: 'neiam.org/v1',
    kind: kind.kind,
    metadata: {
      name,
      ...(parts.namespace !== undefined && { namespace: parts.namespace }),
      ...(parts.annotations && { annotations: parts.annotations }),
    },
    spec: { deployment: parts.deployment, [kind.variantsField]: parts.variants },
  })
  return {
    kind,
    name,
    object: () => structuredClone(object()),
    stored: (metadata) => {
      const { metadata: own, ...rest } = structuredClone(object())
      const given = { name, namespace: 'shop', uid: `uid-of-${name}`, resourceVersion: '100', generation: 1 }
      return { ...rest, metadata: { ...given, ...own, ...metadata } }
    },
    with: (label, instances, env) => {
      const variant = {
        label,
        ...(instances !== undefined && { instances }),
        ...(env !== undefined && { env }),
      }
      return builder({ ...parts, variants: [...parts.variants, variant] })
    },
    based: (change) => {
      const deployment = structuredClone(parts.deployment) as TestDeployment
      change(deployment)
      return builder({ ...parts, deployment })
    },
    on: (deployment) => builder({ ...parts, deployment }),
    annotated: (annotations) => builder({ ...parts, annotations: { ...parts.annotations, ...annotations } }),
    in: (namespace) => builder({ ...parts, namespace }),
  }
}
