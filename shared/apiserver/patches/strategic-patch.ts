import { isObject, type KubeObject } from '../../kinds/object.ts'
import { anything, type SchemaField, type SchemaNode } from '../schema.ts'
import { badRequest, internalError } from '../status.ts'
import { cannotDecode } from './patch.ts'
import {
  deleteDirective,
  isDirective,
  orderDirective,
  patchDirective,
  retainDirective,
  withoutDirectives,
} from './strategic-directives.ts'
import { checkOrder, mergedList, ordered } from './strategic-lists.ts'

/**
 * Strategic merge patch, which only built-in kinds have: a merge patch that merges lists whose schema says so, by merge
 * key or as a set, and obeys directives in the patch (`$patch`, `$retainKeys`, `$setElementOrder/…`,
 * `$deleteFromPrimitiveList/…`). Throws ApiError for a patch that cannot be read or followed.
 */
export function strategicMergePatch(object: KubeObject, patch: unknown, schema: SchemaNode): KubeObject {
  if (!isObject(patch))
    throw badRequest(`error decoding patch: ${cannotDecode(patch, 'map[string]interface {}')}`)
  return mergedMap(structuredClone(object), structuredClone(patch), schema) as KubeObject
}

type Fields = Record<string, unknown>

/** Both are used up: the caller hands in copies. */
function mergedMap(original: Fields, patch: Fields, node: SchemaNode): Fields {
  const { [patchDirective]: directive, ...changes } = patch
  if (directive === 'replace') return changes
  if (directive === 'delete') return {}
  if (directive !== undefined && directive !== 'merge')
    throw internalError(`unexpected/unknown patch type found in: map: ${String(directive)}`)
  const kept = retained(original, changes)
  const { [retainDirective]: _, ...rest } = changes
  const changed = inStatedOrder(kept, rest, node)
  for (const [name, change] of Object.entries(changed.patch)) mergeField(changed.original, name, change, node)
  return changed.original
}

/** Without the fields that `$retainKeys` does not list. */
function retained(original: Fields, patch: Fields): Fields {
  const keys = patch[retainDirective]
  if (keys === undefined) return original
  const isList = Array.isArray(keys) && keys.every((key) => typeof key === 'string')
  const names = Object.keys(patch).filter((name) => !isDirective(name))
  if (!isList || names.some((name) => patch[name] !== null && !keys.includes(name)))
    throw badRequest('invalid patch format of retainKeys')
  return Object.fromEntries(Object.entries(original).filter(([name]) => keys.includes(name)))
}

/** Merges the lists for which the patch states an order, and puts them into it; they are done then. */
function inStatedOrder(
  original: Fields,
  patch: Fields,
  node: SchemaNode,
): { original: Fields; patch: Fields } {
  const [whole, left] = [{ ...original }, { ...patch }]
  for (const [directive, order] of Object.entries(patch)) {
    if (!directive.startsWith(orderDirective)) continue
    const name = directive.slice(orderDirective.length)
    delete left[directive]
    if (!Array.isArray(order)) throw badRequest('invalid patch format of setElementOrder list')
    const [before, change] = [whole[name], left[name]]
    if (before === undefined && !Array.isArray(change)) continue
    const field = fieldOf(node, name)
    if (Array.isArray(change)) checkOrder(change, order, field.mergeKey)
    const olds = Array.isArray(before) ? before : []
    if (olds.length === 0 && Array.isArray(change) && change.length === 0)
      throw internalError('no elements in any of the given slices', '')
    const merged =
      before === undefined
        ? { list: withoutDirectives(change) as unknown[], order: [] }
        : Array.isArray(change)
          ? mergedList(olds, change, field, mergedMap)
          : { list: olds, order: olds }
    whole[name] = ordered(merged.list, order, merged.order, field.mergeKey)
    if (change !== null) delete left[name]
  }
  return { original: whole, patch: left }
}

function mergeField(original: Fields, directive: string, change: unknown, node: SchemaNode): void {
  const isDelete = directive.startsWith(deleteDirective)
  const name = isDelete ? directive.slice(deleteDirective.length) : directive
  const before = original[name]
  if (change === null) delete original[name]
  else if (isDelete) {
    if (!Array.isArray(change)) throw badRequest('invalid patch format of primitive list')
    if (Array.isArray(before)) original[name] = before.filter((item) => !change.includes(item))
  } else if (before === undefined || before === null) original[name] = withoutDirectives(change)
  else original[name] = mergedValue(before, change, fieldOf(node, name))
}

function mergedValue(before: unknown, change: unknown, field: SchemaField): unknown {
  const strategies = field.strategy?.split(',') ?? []
  if (isObject(before) && isObject(change))
    return strategies.includes('replace') ? change : mergedMap(before, change, field.node)
  if (Array.isArray(before) && Array.isArray(change) && strategies.includes('merge'))
    return mergedList(before, change, field, mergedMap).list
  return change
}

/** A map's values share a schema and have no strategy; nor does what no schema knows. */
function fieldOf(node: SchemaNode, name: string): SchemaField {
  return node.fields?.get(name) ?? { node: node.values ?? anything, zero: 'keep' }
}
