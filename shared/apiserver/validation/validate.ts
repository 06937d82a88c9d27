import type { KubeObject, Resource } from '../../kinds/object.ts'
import { type Cause, cause } from '../status.ts'
import { configMapCauses, secretCauses } from './data.ts'
import { deploymentCauses } from './deployment.ts'
import { coreEventCauses, eventCauses } from './event.ts'
import { atLeastZero, type Fields } from './fields.ts'

/**
 * What is wrong with an object of a built-in kind, besides its metadata, each thing with the API's own words; nothing
 * when it is valid. The object is one that `normalise` gave; `live` is the one that it takes the place of.
 */
export function validate(
  object: KubeObject,
  resource: Pick<Resource, 'group' | 'kind'>,
  live: KubeObject | undefined,
): Cause[] {
  const validator = validators[`${resource.kind}.${resource.group}`]
  return validator ? [...finalizerCauses(object), ...validator(object, live)] : []
}

const validators: Record<string, (object: KubeObject, live: KubeObject | undefined) => Cause[]> = {
  'Deployment.apps': deploymentCauses,
  'Secret.': secretCauses,
  'ConfigMap.': configMapCauses,
  'Namespace.': namespaceCauses,
  'Lease.coordination.k8s.io': leaseCauses,
  'Event.events.k8s.io': eventCauses,
  'Event.': coreEventCauses,
}

const standardFinalizers = ['kubernetes', 'orphan', 'foregroundDeletion']

/** Kinds that no CRD makes take finalizers without a domain only if they are the server's own. */
function finalizerCauses({ metadata }: KubeObject): Cause[] {
  const finalizers = metadata?.finalizers ?? []
  return finalizers.flatMap((name, place) => bareFinalizerCauses(`metadata.finalizers[${place}]`, name))
}

function bareFinalizerCauses(field: string, name: string): Cause[] {
  if (name.includes('/') || standardFinalizers.includes(name)) return []
  return [cause.invalid(field, name, 'name is neither a standard finalizer name nor is it fully qualified')]
}

function namespaceCauses({ spec = {} }: KubeObject): Cause[] {
  const finalizers = ((spec as Fields).finalizers ?? []) as string[]
  return finalizers.flatMap((name) => bareFinalizerCauses('spec.finalizers', name))
}

function leaseCauses({ spec = {} }: KubeObject): Cause[] {
  const { leaseDurationSeconds, leaseTransitions } = spec as Fields
  return [
    ...(typeof leaseDurationSeconds === 'number' && leaseDurationSeconds <= 0
      ? [cause.invalid('spec.leaseDurationSeconds', leaseDurationSeconds, 'must be greater than 0')]
      : []),
    ...(typeof leaseTransitions === 'number' && leaseTransitions < 0
      ? [cause.invalid('spec.leaseTransitions', leaseTransitions, atLeastZero)]
      : []),
  ]
}
