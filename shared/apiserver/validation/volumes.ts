import { type Cause, cause } from '../status.ts'
import { causesOf, choiceCauses, duplicateCauses, type Fields, listOf } from './fields.ts'
import { dnsLabelErrors } from './names.ts'

const modeMax = 0o777
const pathTypes = [
  '',
  'BlockDevice',
  'CharDevice',
  'Directory',
  'DirectoryOrCreate',
  'File',
  'FileOrCreate',
  'Socket',
]

/** What is wrong with a pod's volumes. */
export function volumesCauses(field: string, volumes: Fields[]): Cause[] {
  const names = volumes.map(({ name }, place) => ({ field: `${field}[${place}].name`, value: name }))
  const duplicates = new Map(
    duplicateCauses(names.filter(({ value }) => value !== '')).map((one) => [one.field, one]),
  )
  return volumes.flatMap((volume, place) => {
    const at = `${field}[${place}]`
    const name = String(volume.name ?? '')
    const duplicate = duplicates.get(`${at}.name`)
    const nameCauses =
      name === '' ? [cause.required(`${at}.name`)] : causesOf(`${at}.name`, name, dnsLabelErrors(name))
    return [...sourceCauses(at, volume), ...nameCauses, ...(duplicate ? [duplicate] : [])]
  })
}

/** In the order in which the server looks at them; a second one is one too many. */
const sources: Record<string, (field: string, source: Fields) => Cause[]> = {
  emptyDir: () => [],
  hostPath: (field, source) => [
    ...(source.path ? pathCauses(`${field}.path`, String(source.path)) : [cause.required(`${field}.path`)]),
    ...choiceCauses(`${field}.type`, source.type, pathTypes),
  ],
  secret: (field, source) => filesCauses(field, source, 'secretName'),
  persistentVolumeClaim: (field, { claimName }) => (claimName ? [] : [cause.required(`${field}.claimName`)]),
  configMap: (field, source) => filesCauses(field, source, 'name'),
  downwardAPI: (field, source) => [
    ...modeCauses(field, source),
    ...listOf(source.items).flatMap((item) =>
      item.fieldRef || item.resourceFieldRef
        ? []
        : [cause.required(field, 'one of fieldRef and resourceFieldRef is required')],
    ),
  ],
}

function sourceCauses(field: string, volume: Fields): Cause[] {
  const given = Object.keys(sources).filter((name) => volume[name] !== undefined)
  return given.flatMap((name, place) =>
    place === 0
      ? (sources[name]?.(`${field}.${name}`, volume[name] as Fields) ?? [])
      : [cause.forbidden(`${field}.${name}`, 'may not specify more than 1 volume type')],
  )
}

function filesCauses(field: string, source: Fields, nameField: string): Cause[] {
  return [
    ...(source[nameField] ? [] : [cause.required(`${field}.${nameField}`)]),
    ...modeCauses(field, source),
    ...listOf(source.items).flatMap((item, place) => itemCauses(`${field}.items[${place}]`, item)),
  ]
}

function modeCauses(field: string, { defaultMode: mode }: Fields): Cause[] {
  if (typeof mode !== 'number' || (mode >= 0 && mode <= modeMax)) return []
  return [
    cause.invalid(
      `${field}.defaultMode`,
      mode,
      'must be a number between 0 and 0777 (octal), both inclusive',
    ),
  ]
}

function itemCauses(field: string, { key, path }: Fields): Cause[] {
  return [
    ...(key ? [] : [cause.required(`${field}.key`)]),
    ...(path ? relativeCauses(`${field}.path`, String(path)) : [cause.required(`${field}.path`)]),
  ]
}

function relativeCauses(field: string, path: string): Cause[] {
  return [
    ...(path.startsWith('/') ? [cause.invalid(field, path, 'must be a relative path')] : []),
    ...pathCauses(field, path),
    ...(path.startsWith('..') && !path.startsWith('../../') && path !== '..'
      ? [cause.invalid(field, path, "must not start with '..'")]
      : []),
  ]
}

function pathCauses(field: string, path: string): Cause[] {
  return path.split('/').includes('..') ? [cause.invalid(field, path, "must not contain '..'")] : []
}
