import type { KubeObject, Resource } from '../kinds/object.ts'
import { bareFinalizerCauses } from './metadata.ts'
import { type Cause, cause } from './status.ts'
import { configMapCauses, secretCauses } from './validate-data.ts'
import { deploymentCauses } from './validate-deployment.ts'
import { coreEventCauses, eventCauses } from './validate-event.ts'
import { atLeastZero, type Fields } from './validate-fields.ts'

/**
 * What is wrong with an object of a built-in kind, besides its metadata, each thing with the API's own words; nothing
 * when it is valid. The object is one that `normalise` gave; `live` is the one that it takes the place of.
 */
export function validate(
  object: KubeObject,
  resource: Pick<Resource, 'group' | 'kind'>,
  live: KubeObject | undefined,
): Cause[] {
  return validators[`${resource.kind}.${resource.group}`]?.(object, live) ?? []
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
