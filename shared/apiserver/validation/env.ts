import { type Cause, cause } from '../status.ts'
import { causesOf, type Fields, listOf } from './fields.ts'
import { configKeyErrors, envNameErrors, qualifiedNameErrors, subdomainErrors } from './names.ts'

/** What is wrong with a container's `env` and `envFrom`. `field` is the container's path. */
export function envCauses(field: string, { env, envFrom }: Fields): Cause[] {
  return [
    ...listOf(env).flatMap((one, place) => variableCauses(`${field}.env[${place}]`, one)),
    ...listOf(envFrom).flatMap((one, place) => fromCauses(`${field}.envFrom`, place, one)),
  ]
}

function variableCauses(field: string, { name, value, valueFrom }: Fields): Cause[] {
  return [
    ...(name
      ? causesOf(`${field}.name`, name, envNameErrors(String(name)))
      : [cause.required(`${field}.name`)]),
    ...(valueFrom === undefined ? [] : valueFromCauses(`${field}.valueFrom`, valueFrom as Fields, value)),
  ]
}

const choices =
  'must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`'

function valueFromCauses(field: string, source: Fields, value: unknown): Cause[] {
  const given = Object.keys(source)
  const several = given.length > 1 ? 'may not have more than one field specified at a time' : undefined
  const why =
    given.length === 0 ? choices : value ? 'may not be specified when `value` is not empty' : several
  return [
    ...given.flatMap((name) => sources[name]?.(`${field}.${name}`, source[name] as Fields) ?? []),
    ...(why === undefined ? [] : [cause.invalid(field, '', why)]),
  ]
}

const keyCauses = (field: string, { name, key }: Fields): Cause[] => [
  ...causesOf(`${field}.name`, name ?? '', subdomainErrors(String(name ?? ''))),
  ...(key ? causesOf(`${field}.key`, key, configKeyErrors(String(key))) : [cause.required(`${field}.key`)]),
]

const resourceNames = ['cpu', 'ephemeral-storage', 'memory']
const resourceChoices = ['limits', 'requests'].flatMap((kind) =>
  resourceNames.map((name) => `${kind}.${name}`),
)

const sources: Record<string, (field: string, source: Fields) => Cause[]> = {
  fieldRef: fieldRefCauses,
  configMapKeyRef: keyCauses,
  secretKeyRef: keyCauses,
  resourceFieldRef: (field, { resource }) => {
    if (!resource) return [cause.required(`${field}.resource`)]
    const isKnown =
      resourceChoices.includes(String(resource)) || /^(limits|requests)\.hugepages-/.test(String(resource))
    return isKnown ? [] : [cause.notSupported(`${field}.resource`, resource, resourceChoices)]
  },
}

/** What an environment variable can show of its pod. */
const podFields = [
  'metadata.name',
  'metadata.namespace',
  'metadata.uid',
  'spec.nodeName',
  'spec.serviceAccountName',
  'status.hostIP',
  'status.hostIPs',
  'status.podIP',
  'status.podIPs',
]

function fieldRefCauses(field: string, { apiVersion, fieldPath }: Fields): Cause[] {
  const at = `${field}.fieldPath`
  const path = String(fieldPath ?? '')
  if (path === '') return [cause.required(at)]
  if (apiVersion !== 'v1')
    return [cause.invalid(at, path, `error converting fieldPath: unsupported pod version: ${apiVersion}`)]
  const [, map, key = ''] = /^metadata\.(labels|annotations)\['(.*)'\]$/.exec(path) ?? []
  if (map !== undefined)
    return causesOf(field, key, qualifiedNameErrors(map === 'annotations' ? key.toLowerCase() : key))
  if (podFields.includes(path)) return []
  return [cause.invalid(at, path, `error converting fieldPath: field label not supported: ${path}`)]
}

function fromCauses(list: string, place: number, { prefix, configMapRef, secretRef }: Fields): Cause[] {
  const field = `${list}[${place}]`
  const given = { configMapRef, secretRef }
  const names = Object.entries(given).filter(([, source]) => source !== undefined)
  return [
    ...(prefix ? causesOf(`${field}.prefix`, prefix, envNameErrors(String(prefix))) : []),
    ...names.flatMap(([name, source]) => refCauses(`${field}.${name}.name`, (source as Fields).name)),
    ...(names.length === 0
      ? [cause.invalid(list, '', 'must specify one of: `configMapRef` or `secretRef`')]
      : []),
    ...(names.length > 1
      ? [cause.invalid(list, '', 'may not have more than one field specified at a time')]
      : []),
  ]
}

function refCauses(field: string, name: unknown): Cause[] {
  return name ? causesOf(field, name, subdomainErrors(String(name))) : [cause.required(field)]
}
