import { isObject, type KubeObject } from '../../kinds/object.ts'
import { equal } from '../ownership/typed.ts'
import { badRequest, failure, patchRejected } from '../status.ts'

/** JSON merge patch (RFC 7386) and JSON patch (RFC 6902), as the API server applies them. Nothing given is changed. */

/** Objects are merged field by field, null removes, everything else replaces. */
export function mergePatch(object: KubeObject, patch: unknown): KubeObject {
  if (!isObject(patch))
    throw badRequest(`error decoding patch: ${cannotDecode(patch, 'map[string]interface {}')}`)
  return mergedValue(object, patch) as KubeObject
}

function mergedValue(value: unknown, patch: unknown): unknown {
  if (!isObject(patch)) return patch
  const out: Record<string, unknown> = isObject(value) ? { ...value } : {}
  for (const [name, change] of Object.entries(patch)) {
    if (change === null) delete out[name]
    else out[name] = mergedValue(out[name], change)
  }
  return out
}

const operationsMax = 10_000

/**
 * Throws ApiError: 400 when `operations` is no list of operations, 413 when it is too long, 422 when one of them does
 * not apply (a test that fails, a path that is not there). Like the real server it lets a `replace` and a `copy` pass
 * whose field is missing, and counts negative places from a list's end.
 */
export function jsonPatch(object: KubeObject, operations: unknown): KubeObject {
  if (!Array.isArray(operations))
    throw badRequest(`error decoding patch: ${cannotDecode(operations, '[]handlers.jsonPatchOp')}`)
  if (operations.length > operationsMax) {
    const message = `The allowed maximum operations in a JSON patch is ${operationsMax}, got ${operations.length}`
    throw failure(413, 'RequestEntityTooLarge', message)
  }
  let document: unknown = structuredClone(object)
  for (const operation of operations) document = applied(document, operation)
  if (!isObject(document)) throw patchRejected()
  return document
}

function applied(document: unknown, operation: unknown): unknown {
  if (!isObject(operation) || typeof operation.path !== 'string') throw patchRejected()
  const { op, path, from } = operation
  const value = structuredClone(operation.value ?? null)
  if (path === '' && op === 'replace') return value
  if (path === '' && op === 'test' && equal(document, value)) return document
  const target = placeOf(document, path)
  switch (op) {
    case 'add':
      target.add(value)
      break
    case 'remove':
      target.remove()
      break
    case 'replace':
      target.replace(value)
      break
    case 'move':
    case 'copy': {
      const source = placeOf(document, typeof from === 'string' ? from : '')
      const moved = structuredClone(source.get() ?? null)
      if (op === 'move') source.remove()
      placeOf(document, path).add(moved)
      break
    }
    case 'test':
      if (!equal(target.get() ?? null, value)) throw patchRejected()
      break
    default:
      throw patchRejected()
  }
  return document
}

interface Place {
  get(): unknown
  add(value: unknown): void
  replace(value: unknown): void
  remove(): void
}

/** The place that a JSON pointer names. What stands before its first slash is not looked at. */
function placeOf(document: unknown, pointer: string): Place {
  if (!pointer.includes('/')) throw patchRejected()
  const steps = pointer.split('/').slice(1).map(unescaped)
  const last = steps.pop() ?? ''
  let parent = document
  for (const step of steps) {
    parent = Array.isArray(parent)
      ? parent[indexIn(parent, step)]
      : isObject(parent)
        ? parent[step]
        : undefined
  }
  if (Array.isArray(parent)) return placeInList(parent, last)
  if (isObject(parent)) return placeInMap(parent, last)
  throw patchRejected()
}

const unescaped = (step: string) => step.replaceAll('~1', '/').replaceAll('~0', '~')

function placeInMap(map: Record<string, unknown>, name: string): Place {
  return {
    get: () => map[name],
    add: (value) => {
      map[name] = value
    },
    replace: (value) => {
      map[name] = value
    },
    remove: () => {
      if (!(name in map)) throw patchRejected()
      delete map[name]
    },
  }
}

function placeInList(list: unknown[], step: string): Place {
  return {
    get: () => list[indexIn(list, step)],
    add: (value) => {
      list.splice(step === '-' ? list.length : indexIn(list, step, list.length + 1), 0, value)
    },
    replace: (value) => {
      list[indexIn(list, step)] = value
    },
    remove: () => {
      list.splice(indexIn(list, step), 1)
    },
  }
}

/** `length` is how many places there are to choose from; negative ones count from their end. */
function indexIn(list: unknown[], step: string, length = list.length): number {
  const index = /^[+-]?\d+$/.test(step) ? Number(step) : Number.NaN
  const place = index < 0 ? index + length : index
  if (!(place >= 0 && place < length)) throw patchRejected()
  return place
}

/** Why a patch that is JSON, but of another shape, cannot be read. */
export function cannotDecode(value: unknown, type: string): string {
  const what = Array.isArray(value)
    ? 'array'
    : value === null || isObject(value)
      ? 'object'
      : typeof value === 'boolean'
        ? 'bool'
        : typeof value
  return `json: cannot unmarshal ${what} into Go value of type ${type}`
}
