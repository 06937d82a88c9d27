import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseAllDocuments } from 'yaml'
import type { KubeObject } from '../../kinds/object.ts'
import type { Subscription } from '../events/broker.ts'
import { type Delivery, defaultDelivery, deliveryOf } from '../events/delivery.ts'
import { triggerFilter } from '../events/filters.ts'
import { placeOf, urlOf } from './addresses.ts'
import {
  brokerShape,
  check,
  kustomizationShape,
  pingShape,
  sinkBindingShape,
  triggerShape,
} from './shapes.ts'
import { type ProcessSpec, processSpec, type ServiceSpec, serviceSpec } from './workloads.ts'

/** A PingSource with its sink resolved. */
export interface Ping {
  namespace: string
  name: string
  schedule: string
  timezone: string
  contentType: string | undefined
  data: string | undefined
  extensions: Record<string, string>
  sinkUrl: string
}

/** What the local Knative runs, read from the very files that `kubectl apply -k` takes. */
export interface Manifests {
  /** `namespace/name` of each Broker. */
  brokers: string[]
  subscriptions: Subscription[]
  pings: Ping[]
  services: ServiceSpec[]
  /** Deployments, which run all the time. */
  processes: ProcessSpec[]
  /** Namespaces and CustomResourceDefinitions, for the API server. */
  apiObjects: KubeObject[]
}

interface Found {
  /** For messages: `eventing.yaml: Trigger mutation`. */
  what: string
  object: KubeObject
}

/** Kinds that need nothing here: the processes run as the user, and are not evicted. */
const notServed = new Set([
  'ServiceAccount',
  'ClusterRole',
  'ClusterRoleBinding',
  'Role',
  'RoleBinding',
  'PodDisruptionBudget',
  'NetworkPolicy',
])

/**
 * Reads the kustomization in `folder` and those that it takes in. Throws an Error that names file, object and field for what it cannot read or
 * does not serve.
 */
export async function readManifests(folder: string): Promise<Manifests> {
  const found = await readFound(folder)
  const of = (kind: string) => found.filter(({ object }) => object.kind === kind)
  const sinks = of('SinkBinding').map(sinkBinding)
  const sinkOf = (object: KubeObject) => sinks.find((sink) => sink.isFor(object))?.url
  const unknown = found.find(
    ({ object }) => !served.has(object.kind ?? '') && !notServed.has(object.kind ?? ''),
  )
  if (unknown) throw new Error(`${unknown.what}: the local Knative does not know this kind`)

  const brokers = of('Broker').map(readBroker)
  const manifests = {
    brokers: brokers.map(({ name }) => name),
    subscriptions: of('Trigger').map((one) => subscription(one, brokers)),
    pings: of('PingSource').map(ping),
    services: of('Service').map(({ what, object }) => serviceSpec(what, object, sinkOf(object))),
    processes: of('Deployment').map(({ what, object }) => processSpec(what, object, sinkOf(object))),
    apiObjects: [...of('Namespace'), ...of('CustomResourceDefinition')].map(({ object }) => object),
  }
  checkAddresses(manifests)
  return manifests
}

const served = new Set([
  'Broker',
  'Trigger',
  'PingSource',
  'SinkBinding',
  'Service',
  'Deployment',
  'Namespace',
  'CustomResourceDefinition',
])

/** The objects in every YAML file of a folder, in the order of the names. */
export async function readObjects(folder: string): Promise<KubeObject[]> {
  const files = (await readdir(folder)).filter((file) => /\.ya?ml$/.test(file)).sort()
  return (await Promise.all(files.map((file) => readFileObjects(folder, file))))
    .flat()
    .map((one) => one.object)
}

async function readFound(folder: string): Promise<Found[]> {
  const [kustomization] = await readFileObjects(folder, 'kustomization.yaml')
  const { resources } = check('kustomization.yaml', kustomizationShape, kustomization?.object)
  const readEntry = (name: string) =>
    /\.ya?ml$/.test(name) ? readFileObjects(folder, name) : readFound(join(folder, name))
  return (await Promise.all(resources.map(readEntry))).flat()
}

async function readFileObjects(folder: string, file: string): Promise<Found[]> {
  const documents = parseAllDocuments(await readFile(join(folder, file), 'utf8'))
  return documents.flatMap((document) => {
    const [error] = document.errors
    if (error) throw new Error(`${file}: ${error.message}`)
    const object = document.toJS() as KubeObject | null
    return object ? [{ what: `${file}: ${object.kind} ${object.metadata?.name ?? ''}`.trim(), object }] : []
  })
}

function readBroker({ what, object }: Found): {
  name: string
  delivery: Delivery
  deadLetterUrl: string | undefined
} {
  const { metadata, spec } = check(what, brokerShape, object)
  return {
    name: `${metadata.namespace}/${metadata.name}`,
    ...readDelivery(what, spec?.delivery, metadata.namespace, defaultDelivery),
  }
}

function readDelivery(
  what: string,
  spec: Record<string, unknown> | undefined,
  namespace: string,
  fallback: Delivery,
): { delivery: Delivery; deadLetterUrl: string | undefined } {
  const sink = spec?.deadLetterSink
  return {
    delivery: spec ? deliveryOf(`${what}: spec.delivery`, spec) : fallback,
    deadLetterUrl: sink ? urlOf(`${what}: spec.delivery.deadLetterSink`, sink, namespace) : undefined,
  }
}

function subscription(
  { what, object }: Found,
  brokers: { name: string; delivery: Delivery; deadLetterUrl: string | undefined }[],
): Subscription {
  const { metadata, spec } = check(what, triggerShape, object)
  const { namespace, name } = metadata
  const home = brokers.find((one) => one.name === `${namespace}/${spec.broker}`)
  if (!home) throw new Error(`${what}: spec.broker: there is no Broker ${namespace}/${spec.broker}`)
  const own = readDelivery(what, spec.delivery, namespace, home.delivery)
  return {
    namespace,
    name,
    broker: spec.broker,
    accepts: triggerFilter(what, spec),
    subscriberUrl: urlOf(`${what}: spec.subscriber`, spec.subscriber, namespace),
    delivery: own.delivery,
    deadLetterUrl: own.deadLetterUrl ?? home.deadLetterUrl,
  }
}

function ping({ what, object }: Found): Ping {
  const { metadata, spec } = check(what, pingShape, object)
  return {
    ...metadata,
    schedule: spec.schedule,
    timezone: spec.timezone,
    contentType: spec.contentType,
    data: spec.dataBase64 ? Buffer.from(spec.dataBase64, 'base64').toString() : spec.data,
    extensions: spec.ceOverrides?.extensions ?? {},
    sinkUrl: urlOf(`${what}: spec.sink`, spec.sink, metadata.namespace),
  }
}

function sinkBinding({ what, object }: Found): { isFor(object: KubeObject): boolean; url: string } {
  const { metadata, spec } = check(what, sinkBindingShape, object)
  const { kind, name, apiVersion, namespace = metadata.namespace } = spec.subject
  return {
    isFor: (other) =>
      other.kind === kind &&
      other.apiVersion === apiVersion &&
      other.metadata?.name === name &&
      other.metadata.namespace === namespace,
    url: urlOf(`${what}: spec.sink`, spec.sink, metadata.namespace),
  }
}

/** Everything that is sent must have somewhere to go. */
function checkAddresses({ brokers, subscriptions, pings, services, processes }: Manifests): void {
  const addresses = [
    ...subscriptions.flatMap(({ name, subscriberUrl, deadLetterUrl }) =>
      [subscriberUrl, deadLetterUrl].map((url) => ({ what: `Trigger ${name}`, url })),
    ),
    ...pings.map(({ name, sinkUrl }) => ({ what: `PingSource ${name}`, url: sinkUrl })),
    ...[...services, ...processes].map(({ name, sinkUrl }) => ({
      what: `SinkBinding of ${name}`,
      url: sinkUrl,
    })),
  ]
  for (const { what, url } of addresses) {
    if (url === undefined) continue
    const place = placeOf(url)
    if (place.kind === 'outside') continue
    const isThere =
      place.kind === 'broker'
        ? brokers.includes(`${place.namespace}/${place.name}`)
        : services.some(({ namespace, name }) => namespace === place.namespace && name === place.name)
    if (!isThere) throw new Error(`${what}: there is no ${place.kind} ${place.namespace}/${place.name}`)
  }
}
