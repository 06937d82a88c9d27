import { apiVersionOf, type KubeObject } from '../../kinds/object.ts'
import { type ApiResource, fieldAt } from '../resources.ts'
import { difference, type FieldSet, intersection, isEmptySet, setOfPaths } from './field-set.ts'
import { idOf, type Managed, managedOf, noManagers, type Owned, withManaged } from './managed-fields.ts'

/**
 * Who owns the replicas after somebody wrote a Scale. The API server translates the managers of the object into managers
 * of a Scale, updates those, and translates them back (the ScaleHandler of apimachinery's managedfields). An updater is
 * another one in another version, and a Scale's version is not the object's: so each updater that owned the replicas comes
 * back as a new entry, without a time, even when nothing has changed. An applier is the same in every version.
 */

const scaleVersion = 'autoscaling/v1'

/** The object with its managers after a write of its Scale. What nobody owned (a default) nobody owns afterwards. */
export function withScaleManagers(
  resource: ApiResource,
  before: KubeObject,
  after: KubeObject,
  manager: string,
): KubeObject {
  const path = resource.scale?.specReplicas ?? []
  const replicas = setOfPaths([path.map((name) => `f:${name}`)])
  const parents = managedOf(before.metadata?.managedFields) ?? noManagers
  const owners = new Map(
    [...parents.values()].filter((one) => owns(one, replicas)).map((one) => [scaleId(one), one]),
  )
  const self: Owned = {
    manager: manager || 'unknown',
    operation: 'Update',
    apiVersion: scaleVersion,
    subresource: 'scale',
    set: replicas,
  }
  const left = ownersAfter(owners, numberAt(before, path), numberAt(after, path), self)
  return withManaged(after, merged(parents, left, replicas, resource))
}

/** The owners of a Scale's replicas; one that says 0 says nothing, so that to scale to 0 takes the field away. */
function ownersAfter(owners: Managed, before: number, after: number, self: Owned): Managed {
  if (owners.size === 0 || before === after) return owners
  return after === 0 ? noManagers : new Map([[scaleId(self), self]])
}

function merged(parents: Managed, owners: Managed, replicas: FieldSet, resource: ApiResource): Managed {
  const kept = new Map<string, Owned>()
  const rest = new Map(owners)
  for (const [id, owned] of parents) {
    if (!owns(owned, replicas) || rest.delete(id)) kept.set(id, owned)
    else {
      const set = difference(owned.set, replicas)
      if (!isEmptySet(set)) kept.set(id, { ...owned, set })
    }
  }
  const apiVersion = apiVersionOf(resource)
  for (const [id, owned] of rest) kept.set(id, { ...owned, apiVersion, set: replicas, time: undefined })
  return kept
}

function owns({ set }: Owned, replicas: FieldSet): boolean {
  return !isEmptySet(intersection(set, replicas))
}

/** Who a manager is among those of a Scale. */
function scaleId(owned: Owned): string {
  return idOf({ ...owned, apiVersion: scaleVersion })
}

function numberAt(object: KubeObject, path: readonly string[]): number {
  return Number(fieldAt(object, path) ?? 0)
}
