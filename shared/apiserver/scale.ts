import { isObject, type KubeObject, type StoredObject } from '../kinds/object.ts'
import { type ApiResource, fieldAt, withFieldAt } from './resources.ts'
import { cause, failure, invalid } from './status.ts'

/** The `autoscaling/v1` Scale of an object. Throws 500 where a custom resource has no spec replicas. */
export function scaleOf(resource: ApiResource, stored: StoredObject): KubeObject {
  const { name, namespace, uid, resourceVersion, creationTimestamp } = stored.metadata
  const paths = resource.scale
  const replicas = fieldAt(stored, paths?.specReplicas ?? [])
  if (typeof replicas !== 'number' && resource.itemsAreTyped) {
    const message = `the spec replicas field ".${paths?.specReplicas.join('.')}" does not exist`
    throw failure(500, 'InternalError', `Internal error occurred: ${message}`, { causes: [{ message }] })
  }
  const selector = paths?.selector
    ? fieldAt(stored, paths.selector)
    : labelsText(fieldAt(stored, ['spec', 'selector']))
  return {
    kind: 'Scale',
    apiVersion: 'autoscaling/v1',
    metadata: {
      name,
      ...(namespace !== undefined && { namespace }),
      uid,
      resourceVersion,
      creationTimestamp: creationTimestamp ?? null,
    },
    spec: typeof replicas === 'number' && replicas !== 0 ? { replicas } : {},
    status: {
      replicas: Number(fieldAt(stored, paths?.statusReplicas ?? []) ?? 0),
      ...(typeof selector === 'string' && selector !== '' && { selector }),
    },
  }
}

function labelsText(selector: unknown): string {
  if (!isObject(selector) || !isObject(selector.matchLabels)) return ''
  return Object.entries(selector.matchLabels)
    .map(([key, value]) => `${key}=${value}`)
    .sort()
    .join(',')
}

/** The Scale that a patch starts from: without replicas where there are none yet. */
export function scaleToChange(resource: ApiResource, stored: StoredObject): KubeObject {
  const path = resource.scale?.specReplicas ?? []
  const isSet = typeof fieldAt(stored, path) === 'number'
  const scale = scaleOf(resource, isSet ? stored : (withFieldAt(stored, path, 0) as StoredObject))
  return isSet ? scale : { ...scale, spec: {} }
}

/** The object with the number of replicas that a Scale asks for. */
export function withScale(resource: ApiResource, live: StoredObject, scale: KubeObject): KubeObject {
  const replicas = Number(fieldAt(scale, ['spec', 'replicas']) ?? 0)
  // Custom resources are held to it by themselves, however they are written.
  if (replicas < 0 && !resource.itemsAreTyped)
    throw invalid({ group: 'autoscaling', kind: 'Scale', plural: 'scales' }, live.metadata.name, [
      cause.invalid('spec.replicas', replicas, 'must be greater than or equal to 0'),
    ])
  const scaled = withFieldAt(live, resource.scale?.specReplicas ?? [], replicas)
  const { resourceVersion, uid } = scale.metadata ?? {}
  return {
    ...scaled,
    metadata: {
      ...live.metadata,
      ...(uid && { uid }),
      resourceVersion: resourceVersion ?? live.metadata.resourceVersion,
    },
  }
}
