import { isDeepStrictEqual } from 'node:util'
import { isObject } from '../../kinds/object.ts'
import { type Cause, cause } from '../status.ts'
import type { Structural } from './structural.ts'

/** What is wrong with a value of a custom resource, in the API's words. `path` is where it stands (`spec.size`). */
export function structuralCauses(value: unknown, schema: Structural, path: string): Cause[] {
  if (value === null && schema.nullable) return []
  const wrong = typeCause(value, schema, path)
  const causes = wrong ? [wrong] : []
  causes.push(...enumCauses(value, schema, path))
  if (wrong && schema.type === 'integer' && typeof value === 'number')
    causes.push(
      cause.invalid('<nil>', '', `Checked value must be of type integer (default format) in ${path}`),
    )
  if (wrong) return causes
  if (typeof value === 'string') causes.push(...stringCauses(value, schema, path))
  if (typeof value === 'number') causes.push(...numberCauses(value, schema, path))
  if (Array.isArray(value)) causes.push(...listCauses(value, schema, path))
  else if (isObject(value)) causes.push(...objectCauses(value, schema, path))
  return [...causes, ...combinedCauses(value, schema, path)]
}

function typeOf(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'number'
  return typeof value
}

function typeCause(value: unknown, schema: Structural, path: string): Cause | undefined {
  const found = typeOf(value)
  const refuse = (wanted: string, shown: unknown) => ({
    ...cause.invalid(
      path,
      shown,
      `${path || '<nil>'} in body must be of type ${wanted}: ${JSON.stringify(shown)}`,
    ),
    reason: 'FieldValueTypeInvalid',
  })
  if (schema['x-kubernetes-int-or-string'])
    return found === 'integer' || found === 'string' ? undefined : refuse('integer,string', found)
  const { type, format } = schema
  if (type === undefined) return undefined
  const fits = found === type || (type === 'number' && found === 'integer')
  if (!fits) return refuse(type, found)
  const isKnown = typeof value === 'string' && format !== undefined && formats[format]
  return isKnown && !isKnown(value) ? refuse(format, value) : undefined
}

const dateTime = /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$/
const formats: Record<string, (text: string) => boolean> = {
  'date-time': (text) => dateTime.test(text) && !Number.isNaN(Date.parse(text)),
  date: (text) => /^\d{4}-\d\d-\d\d$/.test(text) && !Number.isNaN(Date.parse(text)),
  uuid: (text) => /^[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}$/i.test(text),
  ipv4: (text) => /^(\d{1,3}\.){3}\d{1,3}$/.test(text) && text.split('.').every((part) => Number(part) < 256),
  byte: (text) => /^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(text),
}

function enumCauses(value: unknown, schema: Structural, path: string): Cause[] {
  if (!schema.enum || schema.enum.some((one) => isDeepStrictEqual(one, value))) return []
  const supported = schema.enum.map((one) => (typeof one === 'string' ? one : JSON.stringify(one)))
  return [cause.notSupported(path, value, supported)]
}

/** The first thing that is wrong: the server looks no further in a string. */
function stringCauses(value: string, schema: Structural, path: string): Cause[] {
  const { maxLength, minLength, pattern } = schema
  const length = [...value].length
  if (maxLength !== undefined && length > maxLength) return [cause.tooLong(path, maxLength)]
  if (minLength !== undefined && length < minLength)
    return [cause.invalid(path, value, `${path} in body should be at least ${minLength} chars long`)]
  if (pattern !== undefined && !new RegExp(pattern, 'u').test(value))
    return [cause.invalid(path, value, `${path} in body should match '${pattern}'`)]
  return []
}

function numberCauses(value: number, schema: Structural, path: string): Cause[] {
  const causes: Cause[] = []
  const refuse = (what: string) =>
    causes.push(cause.invalid(path, value, `${path} in body should be ${what}`))
  const { maximum, minimum, multipleOf } = schema
  if (maximum !== undefined) {
    if (schema.exclusiveMaximum && value >= maximum) refuse(`less than ${maximum}`)
    else if (value > maximum) refuse(`less than or equal to ${maximum}`)
  }
  if (minimum !== undefined) {
    if (schema.exclusiveMinimum && value <= minimum) refuse(`greater than ${minimum}`)
    else if (value < minimum) refuse(`greater than or equal to ${minimum}`)
  }
  if (multipleOf !== undefined && value % multipleOf !== 0) refuse(`a multiple of ${multipleOf}`)
  return causes
}

function listCauses(list: unknown[], schema: Structural, path: string): Cause[] {
  const causes: Cause[] = []
  const { maxItems, minItems, items } = schema
  if (maxItems !== undefined && list.length > maxItems)
    causes.push({
      reason: 'FieldValueTooMany',
      message: `Too many: ${list.length}: must have at most ${maxItems} items`,
      field: path,
    })
  if (minItems !== undefined && list.length < minItems)
    causes.push(cause.invalid(path, list.length, `${path} in body should have at least ${minItems} items`))
  list.forEach((item, index) => {
    if (items) causes.push(...structuralCauses(item, items, `${path}[${index}]`))
  })
  return causes
}

function objectCauses(value: Record<string, unknown>, schema: Structural, path: string): Cause[] {
  const causes: Cause[] = []
  const count = Object.keys(value).length
  const { maxProperties, minProperties } = schema
  if (maxProperties !== undefined && count > maxProperties)
    causes.push({
      reason: 'FieldValueTooMany',
      message: `Too many: ${count}: must have at most ${maxProperties} items`,
      field: path,
    })
  if (minProperties !== undefined && count < minProperties)
    causes.push(
      cause.invalid(path, count, `${path} in body should have at least ${minProperties} properties`),
    )
  for (const name of schema.required ?? [])
    if (!Object.hasOwn(value, name)) causes.push(cause.required(join(path, name)))
  for (const [name, field] of Object.entries(value)) {
    const own =
      schema.properties && Object.hasOwn(schema.properties, name) ? schema.properties[name] : undefined
    const node = own ?? (isObject(schema.additionalProperties) ? schema.additionalProperties : undefined)
    if (node && !(path === '' && name === 'metadata'))
      causes.push(...structuralCauses(field, node as Structural, join(path, name)))
  }
  return causes
}

function combinedCauses(value: unknown, schema: Structural, path: string): Cause[] {
  const fails = (one: Structural) => structuralCauses(value, one, path).length > 0
  const causes = (schema.allOf ?? []).flatMap((one) => structuralCauses(value, one, path))
  const shownPath = path === '' ? '<nil>' : path
  const refuse = (what: string) => causes.push(cause.invalid(path, value, `${shownPath} in body ${what}`))
  if (schema.anyOf?.every(fails)) refuse('must validate at least one schema (anyOf)')
  if (schema.oneOf && schema.oneOf.filter((one) => !fails(one)).length !== 1)
    refuse('must validate one and only one schema (oneOf)')
  if (schema.not && !fails(schema.not)) refuse('must not validate the schema (not)')
  return causes
}

/** What stands twice in lists that are sets or maps. */
export function duplicateCauses(value: unknown, schema: Structural, path: string): Cause[] {
  if (Array.isArray(value)) {
    const keyed =
      schema['x-kubernetes-list-type'] === 'map' ? (schema['x-kubernetes-list-map-keys'] ?? []) : undefined
    const isSet = schema['x-kubernetes-list-type'] === 'set'
    const seen: unknown[] = []
    return value.flatMap((item, index) => {
      const inner = schema.items ? duplicateCauses(item, schema.items, `${path}[${index}]`) : []
      if (!isSet && !keyed) return inner
      if (keyed && !isObject(item))
        return [cause.invalid(`${path}[${index}]`, item, 'must be an object for an array of list-type map')]
      const key = keyed ? keysOf(item, keyed) : item
      const isSeen = seen.some((other) => isDeepStrictEqual(other, key))
      seen.push(key)
      return isSeen ? [...inner, cause.duplicate(`${path}[${index}]`, key)] : inner
    })
  }
  if (!isObject(value)) return []
  return Object.entries(value).flatMap(([name, field]) => {
    const values = isObject(schema.additionalProperties)
      ? (schema.additionalProperties as Structural)
      : undefined
    const node = schema.properties?.[name] ?? values
    return node ? duplicateCauses(field, node, join(path, name)) : []
  })
}

function keysOf(item: unknown, keys: string[]): unknown {
  if (!isObject(item)) return item
  return Object.fromEntries(keys.filter((key) => Object.hasOwn(item, key)).map((key) => [key, item[key]]))
}

const join = (path: string, name: string) => (path === '' ? name : `${path}.${name}`)
