import { isObject, type KubeObject } from '../kinds/object.ts'
import { readMetadata, subdomainProblem } from './metadata.ts'
import type { Rules } from './resources.ts'
import { badRequest, type Cause, cause } from './status.ts'
import { prune, type Structural, withDefaults } from './structural.ts'
import { duplicateCauses, structuralCauses } from './structural-check.ts'

/** How objects of one version of a custom resource are read, defaulted and checked. */
export function customRules(
  names: { kind: string; version: string },
  schema: Structural,
  hasStatus: boolean,
): Rules {
  const { kind, version } = names
  const wrong = (found: string, field: string, wanted: string) =>
    badRequest(
      `${kind} in version "${version}" cannot be handled as a ${kind}: json: cannot unmarshal ${found} into Go struct field ObjectMeta.${field} of type ${wanted}`,
    )
  return {
    hasGeneration: true,
    createsOnUpdate: false,
    isTyped: true,
    nameProblem: subdomainProblem,
    decode(object) {
      const { metadata, unknown } = readMetadata(object.metadata, wrong)
      const dropped = unknown.map((name) => `metadata.${name}`)
      const pruned = prune({ ...object, metadata }, schema, (path) => dropped.push(path))
      return { object: withDefaults(pruned, schema) as KubeObject, unknown: dropped.toSorted() }
    },
    prepareCreate: (object) =>
      hasStatus ? (withDefaults(withoutStatus(object), schema) as KubeObject) : object,
    prepareUpdate: (object, live) => (hasStatus ? withStatus(object, live.status) : object),
    prepareStatus: (object, live) => ({
      ...withStatus(live, object.status),
      metadata: {
        ...live.metadata,
        ...(object.metadata?.managedFields && { managedFields: object.metadata.managedFields }),
        ...versionsOf(object),
      },
    }),
    validate: (object) => causesOf(object, schema),
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

function causesOf(object: KubeObject, schema: Structural): Cause[] {
  const causes = structuralCauses(object, schema, '')
  causes.push(...duplicateCauses(object, schema, ''))
  if (causes.length > 0 && hasRules(schema))
    causes.push(
      cause.invalid(
        '<nil>',
        null,
        'some validation rules were not checked because the object was invalid; correct the existing errors to complete validation',
      ),
    )
  return causes
}

function hasRules(schema: unknown): boolean {
  if (!isObject(schema)) return Array.isArray(schema) && schema.some(hasRules)
  return 'x-kubernetes-validations' in schema || Object.values(schema).some(hasRules)
}
