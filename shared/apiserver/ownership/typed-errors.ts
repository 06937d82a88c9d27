import { isObject } from '../../kinds/object.ts'
import { anything, fieldNode, resolved, type SchemaNode } from '../schema.ts'
import { spelled } from './field-set.ts'
import { itemStep } from './typed.ts'

/**
 * What keeps an object from being read by its schema, worded as structured-merge-diff words it; empty when nothing
 * does. Null fits everywhere but in lists. `allowDuplicates` is for living objects: an update may have put two entries
 * of one key into a list.
 */
export function typedErrors(
  value: unknown,
  schema: SchemaNode,
  options: { allowDuplicates: boolean },
): string[] {
  return errorsOf(value, schema, [], options)
}

/** Several errors as one text. */
export function joinedErrors(errors: string[]): string {
  return errors.length === 1
    ? (errors[0] ?? '')
    : `errors:\n${errors
        .map((error) => `  ${error}`)
        .sort()
        .join('\n')}`
}

type Options = { allowDuplicates: boolean }

function errorsOf(value: unknown, schema: SchemaNode, path: string[], options: Options): string[] {
  if (value === null || value === undefined) return []
  const node = resolved(schema, value)
  if (node.type === 'any' || node.type === 'deduced') return []
  if (node.type === 'list') return listErrors(value, node, path, options)
  if (node.type === 'object') return mapErrors(value, node, path, options)
  const expected = scalarError(value, node)
  return expected === undefined ? [] : [`${spelled(path)}: ${expected}`]
}

function scalarError(value: unknown, node: SchemaNode): string | undefined {
  switch (node.type) {
    case 'integer':
    case 'int64':
    case 'number':
      return typeof value === 'number' ? undefined : `expected numeric (int or float), got ${goType(value)}`
    case 'boolean':
      return typeof value === 'boolean' ? undefined : `expected boolean, got &{${plain(value)}}`
    case 'quantity':
    case 'intOrString':
      return typeof value === 'object' ? `expected any scalar, got &{${plain(value)}}` : undefined
    default:
      return typeof value === 'string'
        ? undefined
        : `expected string, got &value.valueUnstructured{Value:${literal(value)}}`
  }
}

function mapErrors(value: unknown, node: SchemaNode, path: string[], options: Options): string[] {
  if (!isObject(value)) return [`${spelled(path)}: expected map, got &{${plain(value)}}`]
  // The real server stops at the first field that it does not know, whichever comes up first.
  const unknownField = Object.keys(value)
    .sort()
    .find((name) => fieldNode(node, name) === undefined)
  if (unknownField !== undefined)
    return [`${spelled([...path, `f:${unknownField}`])}: field not declared in schema`]
  return Object.entries(value).flatMap(([name, child]) =>
    errorsOf(child, fieldNode(node, name) ?? anything, [...path, `f:${name}`], options),
  )
}

function listErrors(value: unknown, node: SchemaNode, path: string[], options: Options): string[] {
  if (!Array.isArray(value)) return [`${spelled(path)}: expected list, got &{${plain(value)}}`]
  const items = node.items ?? anything
  if (node.as === 'atomic')
    return value.flatMap((item, place) => errorsOf(item, items, [...path, `i:${place}`], options))
  const errors: string[] = []
  const seen = new Set<string>()
  for (const [place, item] of value.entries()) {
    const wrong = itemError(item, node)
    if (wrong !== undefined) return [`${spelled(path)}: element ${place}: ${wrong}`]
    const step = itemStep(node, item)
    if (seen.has(step) && !options.allowDuplicates)
      errors.push(`${spelled(path)}: duplicate entries for key ${spelled([step])}`)
    else errors.push(...errorsOf(item, items, [...path, step], options))
    seen.add(step)
  }
  return errors
}

/** Why an item cannot be an entry of an associative list. */
function itemError(item: unknown, node: SchemaNode): string | undefined {
  if (node.as === 'map') {
    if (item === null) return 'associative list with keys may not have a null element'
    return isObject(item) ? undefined : 'associative list with keys may not have non-map elements'
  }
  if (item === null) return "associative list without keys has an element that's an explicit null"
  if (Array.isArray(item)) return 'not supported: associative list with lists as elements'
  return isObject(item) ? "associative list without keys has an element that's a map type" : undefined
}

/** The name of a JSON value's type in Go. */
function goType(value: unknown): string {
  if (Array.isArray(value)) return '[]interface {}'
  if (isObject(value)) return 'map[string]interface {}'
  if (typeof value === 'boolean') return 'bool'
  if (typeof value === 'number') return Number.isInteger(value) ? 'int64' : 'float64'
  return 'string'
}

/** A value as Go's `%v` prints it. */
export function plain(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(plain).join(' ')}]`
  if (isObject(value))
    return `map[${Object.keys(value)
      .sort()
      .map((key) => `${key}:${plain(value[key])}`)
      .join(' ')}]`
  return value === null ? '<nil>' : String(value)
}

/** A value as Go's `%#v` prints it. */
function literal(value: unknown): string {
  if (Array.isArray(value)) return `[]interface {}{${value.map(literal).join(', ')}}`
  if (isObject(value))
    return `map[string]interface {}{${Object.keys(value)
      .sort()
      .map((key) => `${JSON.stringify(key)}:${literal(value[key])}`)
      .join(', ')}}`
  if (value === null) return 'interface {}(nil)'
  return typeof value === 'string' ? JSON.stringify(value) : String(value)
}
