import { isObject } from '../../kinds/object.ts'
import { equal } from '../ownership/typed.ts'
import { plain } from '../ownership/typed-errors.ts'
import { anything, type SchemaField, type SchemaNode } from '../schema.ts'
import { internalError, patchRejected } from '../status.ts'
import { patchDirective } from './strategic-directives.ts'

type Fields = Record<string, unknown>

/** How two entries of one key become one. */
type MergeMaps = (original: Fields, patch: Fields, node: SchemaNode) => Fields

/** A list merged, and the order in which the server then takes its own items to have stood. */
export interface MergedList {
  list: unknown[]
  order: unknown[]
}

/**
 * A list with the patch merged in. Entries that the patch names stand in its order; the others keep their place
 * relative to those.
 */
export function mergedList(
  original: unknown[],
  patch: unknown[],
  field: SchemaField,
  mergeMaps: MergeMaps,
): MergedList {
  if (original.length === 0 && patch.length === 0) return { list: original, order: original }
  if ([...original, ...patch].every(isObject))
    return mergedMaps(original as Fields[], patch as Fields[], field, mergeMaps)
  if ([...original, ...patch].some((item) => typeof item === 'object')) throw patchRejected()
  const merged = deduplicated([...original, ...patch])
  // With nothing to add the server works on the living list itself, and then takes its order for the one before.
  const order = patch.length === 0 ? merged : original
  return { list: ordered(merged, patch, order, undefined), order }
}

/** The server puts the last item in the place of one that stood before. */
function deduplicated(items: unknown[]): unknown[] {
  const out = [...items]
  for (let i = 0; i < out.length; i++)
    for (let j = i + 1; j < out.length; j++) {
      if (out[j] !== out[i]) continue
      const last = out.pop()
      if (j < out.length) out[j--] = last
    }
  return out
}

function mergedMaps(
  original: Fields[],
  patch: Fields[],
  field: SchemaField,
  mergeMaps: MergeMaps,
): MergedList {
  const { mergeKey } = field
  const plain = patch.filter((item) => item[patchDirective] === undefined)
  if (patch.some((item) => item[patchDirective] === 'replace')) return { list: plain, order: original }
  if (mergeKey === undefined) throw patchRejected()
  const deleted = patch.filter((item) => item[patchDirective] === 'delete')
  const left = original.filter((one) => !deleted.some((item) => sameKey(one, item, mergeKey)))
  let list = left
  for (const item of patch) {
    const directive = item[patchDirective]
    if (directive === 'delete') continue
    if (directive === 'merge') throw internalError('merging lists cannot yet be specified in the patch', '')
    if (directive !== undefined)
      throw internalError(`unexpected/unknown patch type found in: ${String(directive)}`, '')
    list = withItem(list, item, mergeKey, (known) => mergeMaps(known, item, field.node.items ?? anything))
  }
  // New items take the places of deleted ones in what the server looks at as the order before the patch.
  return { list: ordered(list, plain, left, mergeKey), order: list.slice(0, original.length) }
}

function withItem(
  list: Fields[],
  item: Fields,
  mergeKey: string,
  merge: (known: Fields) => Fields,
): Fields[] {
  if (item[mergeKey] === undefined)
    throw internalError(`map: does not contain declared merge key: ${mergeKey}`)
  const place = list.findIndex((one) => sameKey(one, item, mergeKey))
  const known = list[place]
  if (!known) return [...list, item]
  return list.with(place, merge(known))
}

const sameKey = (a: Fields, b: Fields, mergeKey: string) => equal(a[mergeKey], b[mergeKey])

/** Throws unless the items of the patch (but those to delete) stand in the stated order, none of them missing there. */
export function checkOrder(patch: unknown[], order: unknown[], mergeKey: string | undefined): void {
  const keyOf = keyed(mergeKey)
  if (order.length === 0) return
  const isStated = (item: Fields) =>
    item[patchDirective] !== 'delete' && (mergeKey === undefined || item[mergeKey] !== undefined)
  let next = 0
  for (const item of patch.filter((one) => !isObject(one) || isStated(one))) {
    while (next < order.length && keyOf(order[next]) !== keyOf(item)) next++
    if (next++ < order.length) continue
    const lists = [patch, order].map(plain)
    throw internalError(
      `The order in patch list:\n${lists[0]}\n doesn't match $setElementOrder list:\n${lists[1]}\n`,
      '',
    )
  }
}

function keyed(mergeKey: string | undefined) {
  return (item: unknown) => JSON.stringify(mergeKey !== undefined && isObject(item) ? item[mergeKey] : item)
}

/**
 * The items of `list`, those named by `order` in its order. The others stand as in `original`, and before the next named
 * item that they stood before there.
 */
export function ordered(
  list: unknown[],
  order: unknown[],
  original: unknown[],
  mergeKey: string | undefined,
): unknown[] {
  const [wanted, before] = [placeIn(order, mergeKey), placeIn(original, mergeKey)]
  const named = sortedBy(
    wanted,
    list.filter((item) => wanted(item) >= 0),
  )
  const others = sortedBy(
    before,
    list.filter((item) => wanted(item) < 0),
  )
  const out: unknown[] = []
  for (const item of named) {
    while (others.length > 0 && before(others[0]) >= 0 && before(others[0]) < before(item))
      out.push(others.shift())
    out.push(item)
  }
  return [...out, ...others]
}

function placeIn(items: unknown[], mergeKey: string | undefined) {
  const keyOf = keyed(mergeKey)
  const places = new Map<string, number>()
  for (const [place, item] of items.entries()) if (!places.has(keyOf(item))) places.set(keyOf(item), place)
  return (item: unknown) => places.get(keyOf(item)) ?? -1
}

/**
 * Sorted by place, one item after the other. An item without a place goes before whatever it meets, and whatever meets
 * it goes before it: the server's own comparison does so, and where such items end up depends on it.
 */
function sortedBy(place: (item: unknown) => number, items: unknown[]): unknown[] {
  const out: unknown[] = []
  for (const item of items) {
    const isBefore = (other: unknown) => place(item) < 0 || place(other) < 0 || place(item) < place(other)
    let at = out.length
    while (at > 0 && isBefore(out[at - 1])) at--
    out.splice(at, 0, item)
  }
  return out
}
