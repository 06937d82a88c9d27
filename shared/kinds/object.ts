/** Wire types of the Kubernetes API that this project touches. Field names are the API's own. */

export interface OwnerReference {
  apiVersion: string
  kind: string
  name: string
  uid: string
  controller?: boolean
  blockOwnerDeletion?: boolean
}

/** One manager's fields (KEP-555). `fieldsV1` is a trie with keys `f:name`, `k:{…}`, `v:…`, `i:n` and `.`. */
export interface ManagedFieldsEntry {
  manager?: string
  operation?: string
  apiVersion?: string
  time?: string
  fieldsType?: string
  fieldsV1?: FieldsV1
  subresource?: string
}

export interface FieldsV1 {
  [key: string]: FieldsV1
}

export interface ObjectMeta {
  name?: string
  generateName?: string
  namespace?: string
  uid?: string
  resourceVersion?: string
  generation?: number
  creationTimestamp?: string | null
  deletionTimestamp?: string
  deletionGracePeriodSeconds?: number
  labels?: Record<string, string>
  annotations?: Record<string, string>
  ownerReferences?: OwnerReference[]
  finalizers?: string[]
  managedFields?: ManagedFieldsEntry[]
}

/** Any object of the API. What is not named here is kept as it came. */
export interface KubeObject {
  apiVersion?: string
  kind?: string
  metadata?: ObjectMeta
  [field: string]: unknown
}

/** An object as the server gives it back: it has a name, a uid and a resourceVersion. */
export interface StoredObject extends KubeObject {
  metadata: ObjectMeta & { name: string; uid: string; resourceVersion: string }
}

export interface Condition {
  type: string
  status: 'True' | 'False' | 'Unknown'
  reason: string
  message: string
  lastTransitionTime: string
  observedGeneration?: number
}

/** The API's answer to a request that failed (and to some that did not). */
export interface Status {
  kind: 'Status'
  apiVersion: 'v1'
  metadata?: Record<string, unknown>
  status?: string
  message?: string
  reason?: string
  details?: {
    name?: string
    group?: string
    kind?: string
    uid?: string
    causes?: { reason?: string; message?: string; field?: string }[]
    retryAfterSeconds?: number
  }
  code?: number
}

/** A kind's place in the API: what is needed to build its paths. */
export interface Resource {
  /** Empty for the core group. */
  group: string
  version: string
  kind: string
  plural: string
  namespaced: boolean
}

/** Names one object. `uid` only where a particular incarnation is meant. */
export interface Ref {
  apiVersion: string
  kind: string
  namespace?: string
  name: string
  uid?: string
}

function resource(group: string, version: string, kind: string, plural: string, namespaced = true): Resource {
  return { group, version, kind, plural, namespaced }
}

export const deployments = resource('apps', 'v1', 'Deployment', 'deployments')
export const secrets = resource('', 'v1', 'Secret', 'secrets')
export const configMaps = resource('', 'v1', 'ConfigMap', 'configmaps')
export const namespaces = resource('', 'v1', 'Namespace', 'namespaces', false)
export const leases = resource('coordination.k8s.io', 'v1', 'Lease', 'leases')
export const events = resource('events.k8s.io', 'v1', 'Event', 'events')
export const customResourceDefinitions = resource(
  'apiextensions.k8s.io',
  'v1',
  'CustomResourceDefinition',
  'customresourcedefinitions',
  false,
)

/** `apps/v1`, or `v1` for the core group. */
export function apiVersionOf(resource: Pick<Resource, 'group' | 'version'>): string {
  return resource.group === '' ? resource.version : `${resource.group}/${resource.version}`
}

/**
 * The path of a collection, of an object in it, or of an object's subresource:
 * `/apis/apps/v1/namespaces/shop/deployments/web/status`. Each part is percent-encoded, so that no name can change
 * the path. Without `namespace` a namespaced collection is that of all namespaces.
 */
export function pathOf(
  resource: Resource,
  target: { namespace?: string | undefined; name?: string; subresource?: string } = {},
): string {
  const root =
    resource.group === '' ? `/api/${resource.version}` : `/apis/${resource.group}/${resource.version}`
  const parts = resource.namespaced && target.namespace ? ['namespaces', target.namespace] : []
  parts.push(resource.plural)
  if (target.name !== undefined) parts.push(target.name)
  if (target.subresource !== undefined) parts.push(target.subresource)
  return `${root}/${parts.map(encodeURIComponent).join('/')}`
}

/** The owner reference that has `controller: true`, if any. There is at most one. */
export function controllerOf(object: KubeObject): OwnerReference | undefined {
  return object.metadata?.ownerReferences?.find((owner) => owner.controller === true)
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
