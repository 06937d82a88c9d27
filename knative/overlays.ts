import type { KubeObject } from '../shared/kinds/object.ts'
import {
  clusterName,
  type FunctionName,
  functionNames,
  head,
  image,
  namespace,
  type ProcessName,
  processNames,
} from './names.ts'

/**
 * What some clusters need in another way than the base has it: each a component, for kustomizations that put several
 * together, and a folder with the base and this one component, to be applied as it is.
 */

/** One folder with a kustomization.yaml. */
export interface Kustomization {
  /** A component changes what the kustomization that names it has taken in; it cannot be applied alone. */
  isComponent?: boolean
  files?: Record<string, () => KubeObject[]>
  /** Other kustomizations that it takes in, by their paths. */
  others?: string[]
  components?: string[]
  patches?: Patch[]
  images?: object[]
}

/** A change of each object that `target` selects: a list of JSON patch operations, or an object to be merged in. */
export interface Patch {
  target: { group?: string; kind: string; name?: string; labelSelector?: string }
  patch: object
}

const differences: Record<string, Kustomization> = {
  dev: dev(),
  direct: direct(),
  kafka: kafka(),
  namespaced: namespaced(),
  oidc: oidc(),
}

/** Each difference on its own, by its name. */
export const components: Record<string, Kustomization> = mapped(differences, (one) => ({
  ...one,
  isComponent: true,
}))

/** The base with one of the components, by that one's name. */
export const overlays: Record<string, Kustomization> = mapped(differences, (_, name) => ({
  others: ['../base'],
  components: [`../components/${name}`],
}))

/** A Broker that stores events in Kafka. Its class cannot be changed later: delete the Broker first. */
function kafka(): Kustomization {
  const broker = {
    apiVersion: 'eventing.knative.dev/v1',
    kind: 'Broker',
    metadata: { name: 'any', annotations: { 'eventing.knative.dev/broker.class': 'Kafka' } },
    spec: {
      config: {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        name: 'kafka-broker-config',
        namespace: 'knative-eventing',
      },
    },
  }
  // One object's event does not wait for another's: the order is of no use to functions that read the object anew.
  const trigger = {
    apiVersion: 'eventing.knative.dev/v1',
    kind: 'Trigger',
    metadata: { name: 'any', annotations: { 'kafka.eventing.knative.dev/delivery.order': 'unordered' } },
  }
  return {
    patches: [
      { target: { kind: 'Broker' }, patch: broker },
      { target: { kind: 'Trigger' }, patch: trigger },
    ],
  }
}

/**
 * Without Knative Eventing: the watcher sends to the functions itself, tries again by itself until an event is taken (so
 * that there are no dead letters), and asks for the resyncs that a cron asks for elsewhere.
 */
function direct(): Kustomization {
  const sinks = {
    SINK_MUTATION: urlOf('mutation'),
    SINK_MUTANTDEPLOYMENT: urlOf('mutant-deployment'),
    SINK_RESYNC: urlOf('resync'),
  }
  // As the PingSources of the base have it.
  const resyncs = { RESYNC_SECONDS: '300', FULL_RESYNC_SECONDS: '3600' }
  return {
    patches: [
      ...['Broker', 'Trigger', 'PingSource', 'SinkBinding'].map((kind) => removal({ kind })),
      removal({ labelSelector: 'app.kubernetes.io/name=dead-letter', kind: '.*' }),
      addEnv({ kind: 'Deployment', name: 'watcher' }, { ...sinks, ...resyncs }),
      addEnv(serviceOf('resync'), sinks),
    ],
  }
}

/**
 * Rights in chosen namespaces only: no process may read or write an object elsewhere. Each namespace is named in
 * WATCH_NAMESPACES and gets its roles by `kubectl apply -n NAMESPACE -k knative/tenant`. For the whole cluster there
 * remain the CRDs, the Namespace and the roles that add to view and edit; none of them gives a process a right.
 */
function namespaced(): Kustomization {
  const env = { WATCH_NAMESPACES: 'default' }
  return {
    patches: [
      ...processNames.flatMap((process) => [
        removal({ kind: 'ClusterRole', name: clusterName(process) }),
        removal({ kind: 'ClusterRoleBinding', name: clusterName(process) }),
      ]),
      addEnv({ kind: 'Deployment', name: 'watcher' }, env),
      addEnv(serviceOf('resync'), env),
    ],
  }
}

/** For a cluster of one node on a developer's machine: an image that was loaded there, one watcher, a talkative log. */
function dev(): Kustomization {
  const container = '/spec/template/spec/containers/0'
  const talkative = { op: 'replace', path: `${container}/env/1/value`, value: 'debug' }
  const loaded = { op: 'add', path: `${container}/imagePullPolicy`, value: 'IfNotPresent' }
  const soon = {
    op: 'replace',
    path: '/spec/template/metadata/annotations/autoscaling.knative.dev~1window',
    value: '6s',
  }
  return {
    // Knative asks no registry for the digest of an image of this name.
    images: [{ name: image.split(':')[0], newName: 'dev.local/mutantops', newTag: 'dev' }],
    patches: [
      removal({ kind: 'PodDisruptionBudget' }),
      {
        target: { kind: 'Deployment', name: 'watcher' },
        patch: [{ op: 'replace', path: '/spec/replicas', value: 1 }, talkative, loaded],
      },
      { target: { group: 'serving.knative.dev', kind: 'Service' }, patch: [soon, talkative, loaded] },
    ],
  }
}

/**
 * Events with identities, where Eventing's features `authentication-oidc` and `transport-encryption` are on: the Broker
 * takes events of our sources only, and each function those of its audience only. There is no EventPolicy for a function:
 * Eventing enforces one where it receives events itself, and a Knative Service does that by itself.
 */
function oidc(): Kustomization {
  return {
    files: { 'policies.yaml': () => [brokerPolicy()] },
    patches: [
      ...functionNames.map((name) => addEnv(serviceOf(name), { OIDC_AUDIENCE: audienceOf(name) })),
      ...(['mutation', 'mutant-deployment', 'resync'] as const).map((name) => ({
        target: { kind: 'Trigger', name },
        patch: [
          { op: 'add', path: '/spec/subscriber/audience', value: audienceOf(name) },
          { op: 'add', path: '/spec/delivery/deadLetterSink/audience', value: audienceOf('dead-letter') },
        ],
      })),
    ],
  }
}

/** Who may send to the Broker: the two bound senders and the cron. */
function brokerPolicy(): KubeObject {
  const from = [
    ...['watcher', 'resync'].map((name) => ({ kind: 'SinkBinding', name })),
    ...['resync', 'resync-full'].map((name) => ({ kind: 'PingSource', name })),
  ]
  return {
    ...head('eventing.knative.dev/v1alpha1', 'EventPolicy', 'broker'),
    spec: {
      to: [{ ref: { apiVersion: 'eventing.knative.dev/v1', kind: 'Broker', name: 'default' } }],
      from: from.map(({ kind, name }) => ({
        ref: { apiVersion: 'sources.knative.dev/v1', kind, name, namespace },
      })),
    },
  }
}

function mapped(
  table: Record<string, Kustomization>,
  change: (one: Kustomization, name: string) => Kustomization,
): Record<string, Kustomization> {
  return Object.fromEntries(Object.entries(table).map(([name, one]) => [name, change(one, name)]))
}

function audienceOf(name: FunctionName): string {
  return `${namespace}/${name}`
}

function urlOf(name: ProcessName): string {
  return `http://${name}.${namespace}.svc.cluster.local`
}

function serviceOf(name: FunctionName): Patch['target'] {
  return { group: 'serving.knative.dev', kind: 'Service', name }
}

/** Both kinds of workload have their container at the same place. */
function addEnv(target: Patch['target'], env: Record<string, string>): Patch {
  return {
    target,
    patch: Object.entries(env).map(([name, value]) => ({
      op: 'add',
      path: '/spec/template/spec/containers/0/env/-',
      value: { name, value },
    })),
  }
}

/** Takes out what is selected. A kustomization looks at the target alone; the names in the patch must only be there. */
function removal(target: Patch['target']): Patch {
  return { target, patch: { $patch: 'delete', apiVersion: 'v1', kind: 'Any', metadata: { name: 'any' } } }
}
