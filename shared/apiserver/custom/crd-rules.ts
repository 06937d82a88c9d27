import { customResourceDefinitions, isObject, type KubeObject } from '../../kinds/object.ts'
import { builtInSchema } from '../built-in-rules.ts'
import { normalise } from '../defaults/defaults.ts'
import type { Rules } from '../resources.ts'
import { type Cause, cause } from '../status.ts'
import { subdomainErrors } from '../validation/names.ts'
import { unknownFields } from '../validation/unknown-fields.ts'

/** The part of a CustomResourceDefinition that the server acts on. */
export interface CrdSpec {
  group: string
  scope: 'Namespaced' | 'Cluster'
  names: {
    plural: string
    kind: string
    singular?: string
    listKind?: string
    shortNames?: string[]
    categories?: string[]
  }
  versions: CrdVersion[]
}

export interface CrdVersion {
  name: string
  served: boolean
  storage: boolean
  schema?: { openAPIV3Schema?: Record<string, unknown> }
  subresources?: {
    status?: object
    scale?: { specReplicasPath: string; statusReplicasPath: string; labelSelectorPath?: string }
  }
  additionalPrinterColumns?: unknown
  selectableFields?: { jsonPath: string }[]
}

export function specOf(crd: KubeObject): CrdSpec {
  return crd.spec as unknown as CrdSpec
}

const { kind } = customResourceDefinitions
export const crdSchema = builtInSchema(customResourceDefinitions)

/** How CustomResourceDefinitions are read, defaulted and checked. */
export const crdRules: Rules = {
  hasGeneration: true,
  createsOnUpdate: false,
  needsVersion: true,
  isTyped: false,
  nameErrors: subdomainErrors,
  decode: (object, decoder) => ({
    object: withNames(normalise(object, { kind }, crdSchema, decoder)),
    unknown: unknownFields(object, crdSchema.root),
  }),
  prepareCreate(object) {
    const storage = isObject(object.spec) ? storageVersion(specOf(object)) : undefined
    const status = {
      conditions: null,
      acceptedNames: { plural: '', kind: '' },
      storedVersions: storage === undefined ? [] : [storage],
    }
    return { ...object, status }
  },
  prepareUpdate: (object, live) => ({ ...object, status: live.status }),
  prepareStatus: (object, live) => ({ ...live, status: object.status }),
  validate: (object, live) => causesOf(object, live),
}

const storageVersion = ({ versions }: CrdSpec) =>
  Array.isArray(versions) ? versions.find((version) => version.storage)?.name : undefined

function withNames(object: KubeObject): KubeObject {
  if (!isObject(object.spec) || !isObject(object.spec.names)) return object
  const { names } = specOf(object)
  const singular = names.singular || String(names.kind ?? '').toLowerCase()
  const listKind = names.listKind || `${names.kind}List`
  const conversion = object.spec.conversion ?? { strategy: 'None' }
  return { ...object, spec: { ...object.spec, names: { ...names, singular, listKind }, conversion } }
}

function causesOf(object: KubeObject, live: KubeObject | undefined): Cause[] {
  if (!isObject(object.spec)) return [cause.required('spec.group'), cause.required('spec.scope')]
  const spec = specOf(object)
  const causes: Cause[] = []
  const { names = { plural: '', kind: '' }, group = '' } = spec
  if (!live && object.metadata?.name !== `${names.plural}.${group}`)
    causes.push(
      cause.invalid('metadata.name', object.metadata?.name, 'must be spec.names.plural+"."+spec.group'),
    )
  if (group === '') causes.push(cause.required('spec.group'))
  if (!spec.scope) causes.push(cause.required('spec.scope'))
  else if (!['Cluster', 'Namespaced'].includes(spec.scope))
    causes.push(cause.notSupported('spec.scope', spec.scope, ['Cluster', 'Namespaced']))
  causes.push(...versionCauses(spec.versions ?? []))
  if (!names.plural) causes.push(cause.required('spec.names.plural'))
  if (!names.kind) causes.push(cause.required('spec.names.kind'))
  return live && isObject(live.spec) ? [...causes, ...changeCauses(spec, specOf(live))] : causes
}

function versionCauses(versions: CrdVersion[]): Cause[] {
  const causes: Cause[] = []
  const stored = versions.filter((version) => version.storage)
  if (stored.length !== 1)
    causes.push(
      cause.invalid('spec.versions', versions, 'must have exactly one version marked as storage version'),
    )
  versions.forEach(({ schema }, index) => {
    if (!isObject(schema?.openAPIV3Schema))
      causes.push(cause.required(`spec.versions[${index}].schema.openAPIV3Schema`, 'schemas are required'))
  })
  return causes
}

function changeCauses(spec: CrdSpec, live: CrdSpec): Cause[] {
  const causes: Cause[] = []
  const immutable = (field: string, value: unknown, before: unknown) => {
    if (value !== before) causes.push(cause.invalid(field, value, 'field is immutable'))
  }
  immutable('spec.group', spec.group, live.group)
  immutable('spec.names.plural', spec.names?.plural, live.names.plural)
  immutable('spec.scope', spec.scope, live.scope)
  immutable('spec.names.kind', spec.names?.kind, live.names.kind)
  return causes
}
