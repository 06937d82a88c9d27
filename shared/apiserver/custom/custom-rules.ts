import type { KubeObject } from '../../kinds/object.ts'
import { normaliseMetadata } from '../defaults/defaults.ts'
import { fieldAt, type Rules } from '../resources.ts'
import { metadataNode } from '../schema.ts'
import { type Cause, cause } from '../status.ts'
import { subdomainErrors } from '../validation/names.ts'
import { unknownFields } from '../validation/unknown-fields.ts'
import { hasRules, ruleCauses } from './cel-rules.ts'
import { prune, type Structural, withDefaults } from './structural.ts'
import { duplicateCauses, structuralCauses } from './structural-check.ts'

/** How objects of one version of a custom resource are read, defaulted and checked. */
export function customRules(
  schema: Structural,
  { hasStatus, replicas }: { hasStatus: boolean; replicas?: readonly string[] | undefined },
): Rules {
  return {
    hasGeneration: true,
    createsOnUpdate: false,
    needsVersion: true,
    isTyped: true,
    nameErrors: subdomainErrors,
    decode(object, decoder) {
      const unknown = unknownFields(object.metadata, metadataNode(), 'metadata')
      const pruned = prune(normaliseMetadata(object, decoder), schema, (path) => unknown.push(path))
      const nulls = decoder === 'unstructured' ? 'keep' : 'drop'
      return { object: withDefaults(pruned, schema, nulls) as KubeObject, unknown: unknown.toSorted() }
    },
    prepareCreate: (object) =>
      hasStatus ? (withDefaults(withoutStatus(object), schema, 'keep') as KubeObject) : object,
    prepareUpdate: (object, live) => (hasStatus ? withStatus(object, live.status) : object),
    prepareStatus: (object, live) => ({
      ...withStatus(live, object.status),
      metadata: {
        ...live.metadata,
        ...(object.metadata?.managedFields && { managedFields: object.metadata.managedFields }),
        ...versionsOf(object),
      },
    }),
    validate: (object, live) => [...causesOf(object, live, schema), ...replicasCauses(object, replicas)],
  }
}

/** A status write still says which version and which incarnation it is meant for. */
function versionsOf({ metadata = {} }: KubeObject) {
  return { ...(metadata.uid && { uid: metadata.uid }) }
}

function withoutStatus({ status: _, ...rest }: KubeObject): KubeObject {
  return rest
}

function withStatus(object: KubeObject, status: unknown): KubeObject {
  const rest = withoutStatus(object)
  return status === undefined ? rest : { ...rest, status }
}

/** The scale subresource wants a number of replicas that can be. */
function replicasCauses(object: KubeObject, path: readonly string[] = []): Cause[] {
  const found = fieldAt(object, path)
  if (typeof found !== 'number' || found >= 0) return []
  return [cause.invalid(`.${path.join('.')}`, found, 'should be a non-negative integer')]
}

function causesOf(object: KubeObject, live: KubeObject | undefined, schema: Structural): Cause[] {
  const causes = structuralCauses(object, schema, '')
  causes.push(...duplicateCauses(object, schema, ''))
  if (!causes.some(({ reason }) => blocking.has(reason)))
    return [...causes, ...ruleCauses(object, live, schema, '')]
  if (hasRules(schema))
    causes.push(
      cause.invalid(
        '<nil>',
        null,
        'some validation rules were not checked because the object was invalid; correct the existing errors to complete validation',
      ),
    )
  return causes
}

/** With one of these the server does not go on to the rules of `x-kubernetes-validations`. */
const blocking = new Set([
  'FieldValueNotSupported',
  'FieldValueRequired',
  'FieldValueTooLong',
  'FieldValueTooMany',
  'FieldValueTypeInvalid',
])
