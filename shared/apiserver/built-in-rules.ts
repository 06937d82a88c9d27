import type { KubeObject, Resource } from '../kinds/object.ts'
import { normalise } from './defaults/defaults.ts'
import { fieldAt, type Rules, withFieldAt } from './resources.ts'
import { type KindSchema, schemaFor } from './schema.ts'
import { dotlessErrors, subdomainErrors } from './validation/names.ts'
import { unknownFields } from './validation/unknown-fields.ts'
import { validate } from './validation/validate.ts'

/** The schema of a kind that needs no CRD. */
export function builtInSchema(resource: Pick<Resource, 'group' | 'kind'>): KindSchema {
  const schema = schemaFor(resource)
  if (!schema) throw new TypeError(`No schema for ${resource.kind}`)
  return schema
}

/** How objects of the kinds that need no CRD are read, defaulted and checked. */
export function builtInRules(resource: Resource): Rules {
  const { kind } = resource
  const schema = builtInSchema(resource)
  return {
    hasGeneration: kind === 'Deployment',
    createsOnUpdate: kind === 'Lease' || kind === 'Event',
    needsVersion: kind === 'Lease',
    isTyped: false,
    nameErrors: kind === 'Namespace' ? dotlessErrors : subdomainErrors,
    decode: (object, decoder) => ({
      object: normalise(object, resource, schema, decoder),
      unknown: unknownFields(object, schema.root),
    }),
    prepareCreate: (object) =>
      kind === 'Namespace' ? newNamespace(object) : withFreshStatus(object, schema),
    prepareUpdate: (object, live) => withStatus(object, live.status),
    prepareStatus: (object, live) => ({
      ...withStatus(live, object.status),
      metadata: withLabelsOf(object, live),
    }),
    validate: (object, live) => validate(object, resource, live),
  }
}

function withStatus(object: KubeObject, status: unknown): KubeObject {
  const { status: _, ...rest } = object
  return status === undefined ? rest : { ...rest, status }
}

function withFreshStatus(object: KubeObject, schema: KindSchema): KubeObject {
  return withStatus(object, schema.empty.status)
}

function withLabelsOf(object: KubeObject, live: KubeObject): NonNullable<KubeObject['metadata']> {
  const { labels: _, ...metadata } = object.metadata ?? {}
  return { ...metadata, ...(live.metadata?.labels && { labels: live.metadata.labels }) }
}

function newNamespace(object: KubeObject): KubeObject {
  const finalizers = fieldAt(object, ['spec', 'finalizers'])
  const all = new Set([...(Array.isArray(finalizers) ? finalizers : []), 'kubernetes'])
  const labels = { ...object.metadata?.labels, 'kubernetes.io/metadata.name': object.metadata?.name ?? '' }
  const named = withFieldAt(object, ['metadata', 'labels'], labels)
  return { ...named, spec: { ...(object.spec as object), finalizers: [...all] }, status: { phase: 'Active' } }
}
