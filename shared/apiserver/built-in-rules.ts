import { isObject, type KubeObject, type Resource } from '../kinds/object.ts'
import { dnsLabelProblem, goTypeOf, pathSegmentProblem, readMetadata, subdomainProblem } from './metadata.ts'
import { fieldAt, type Rules, withFieldAt } from './resources.ts'
import { badRequest } from './status.ts'

/** How objects of the kinds that need no CRD are read, defaulted and checked. */
export function builtInRules(resource: Resource): Rules {
  const { kind } = resource
  return {
    hasGeneration: kind === 'Deployment',
    createsOnUpdate: kind === 'Lease' || kind === 'Event',
    isTyped: false,
    nameProblem:
      kind === 'Namespace' ? dnsLabelProblem : kind === 'Event' ? pathSegmentProblem : subdomainProblem,
    decode: (object) => decode(resource, object),
    prepareCreate: kind === 'Namespace' ? newNamespace : withoutStatus,
    prepareUpdate: (object, live) => withStatusOf(object, live),
    prepareStatus: (object, live) => ({
      ...live,
      metadata: { ...object.metadata, labels: live.metadata?.labels } as KubeObject['metadata'] & object,
      status: object.status,
    }),
    validate: () => [],
  }
}

function decode({ kind, version }: Resource, object: KubeObject): { object: KubeObject; unknown: string[] } {
  const { metadata, unknown } = readMetadata(object.metadata, (found, field, wanted) => {
    const place = field === '' ? `${kind}.metadata` : `ObjectMeta.metadata.${field}`
    return badRequest(
      `${kind} in version "${version}" cannot be handled as a ${kind}: json: cannot unmarshal ${found} into Go struct field ${place} of type ${wanted}`,
    )
  })
  if (!isObject(object)) throw badRequest(`${goTypeOf(object)} is no object`)
  return { object: { ...object, metadata }, unknown: unknown.map((name) => `metadata.${name}`) }
}

function withoutStatus(object: KubeObject): KubeObject {
  const { status: _, ...rest } = object
  return rest
}

function withStatusOf(object: KubeObject, live: KubeObject): KubeObject {
  const rest = withoutStatus(object)
  return live.status === undefined ? rest : { ...rest, status: live.status }
}

function newNamespace(object: KubeObject): KubeObject {
  const finalizers = fieldAt(object, ['spec', 'finalizers'])
  const all = new Set([...(Array.isArray(finalizers) ? finalizers : []), 'kubernetes'])
  const labels = { ...object.metadata?.labels, 'kubernetes.io/metadata.name': object.metadata?.name ?? '' }
  const named = withFieldAt(object, ['metadata', 'labels'], labels)
  return { ...named, spec: { ...(object.spec as object), finalizers: [...all] }, status: { phase: 'Active' } }
}
