import { isObject } from '../../kinds/object.ts'
import { anything, fieldNode, resolved, type SchemaNode } from '../schema.ts'
import { emptySet, type FieldSet, isEmptySet, keyStep, union, valueStep } from './field-set.ts'

/**
 * What server-side apply does with single values by their schema: naming the entries of lists, the set of fields that
 * an object states, merging, taking fields out. Values are never changed in place; `undefined` is "absent", null is a
 * value. The rules are those of structured-merge-diff.
 */

/** An associative list's item as a path element. A key that is absent counts as its default, or null. */
export function itemStep(list: SchemaNode, item: unknown): string {
  if (!list.keys) return valueStep(item)
  const fields = isObject(item) ? item : {}
  return keyStep(
    Object.fromEntries(
      list.keys.map((key) => [key, fields[key] ?? list.items?.fields?.get(key)?.default ?? null]),
    ),
  )
}

/** Whether a value is to be treated as a whole: scalars, atomic lists and maps, what no schema describes. */
export function isWhole(node: SchemaNode, value: unknown): boolean {
  if (node.type === 'object') return node.atomic === true || (value !== undefined && !isObject(value))
  if (node.type === 'list') return node.as === 'atomic' || (value !== undefined && !Array.isArray(value))
  return true
}

/** Both sides null, absent or empty: compared and merged as one value, so that null and `{}` stay apart. */
function areEmpty(...values: unknown[]): boolean {
  return values.every((value) => value === undefined || value === null || sizeOf(value) === 0)
}

export function sizeOf(value: unknown): number {
  if (Array.isArray(value)) return value.length
  return isObject(value) ? Object.keys(value).length : 1
}

/** The items of a list by path element, in order; several under one element are duplicates. */
function itemsByStep(node: SchemaNode, list: unknown): Map<string, unknown[]> {
  const items = new Map<string, unknown[]>()
  for (const item of Array.isArray(list) ? list : []) {
    const step = itemStep(node, item)
    const known = items.get(step)
    if (known) known.push(item)
    else items.set(step, [item])
  }
  return items
}

/** The fields that an object states, as server-side apply records them for its manager. */
export function fieldSetOf(value: unknown, schema: SchemaNode): FieldSet {
  const node = resolved(schema, value)
  if (value === null || isWhole(node, value)) return { member: true, children: new Map() }
  return node.type === 'list' ? itemsSet(value as unknown[], node) : membersSet(value as object, node)
}

function membersSet(value: object, node: SchemaNode): FieldSet {
  const children = new Map<string, FieldSet>()
  for (const [name, child] of Object.entries(value)) {
    const below = fieldSetOf(child, fieldNode(node, name) ?? anything)
    const itself = child === null || (isObject(child) && sizeOf(child) === 0) || !node.fields?.has(name)
    const set = itself ? asMember(below) : below
    if (!isEmptySet(set)) children.set(`f:${name}`, set)
  }
  return { member: false, children }
}

function itemsSet(list: unknown[], node: SchemaNode): FieldSet {
  const children = new Map<string, FieldSet>()
  for (const [step, items] of itemsByStep(node, list))
    children.set(step, asMember(items.length === 1 ? fieldSetOf(items[0], node.items ?? anything) : emptySet))
  return { member: false, children }
}

function asMember(set: FieldSet): FieldSet {
  return { member: true, children: set.children }
}

/** `live` with what `applied` states. Fields that only `live` has stay; of lists, see {@link mergedList}. */
export function merged(live: unknown, applied: unknown, schema: SchemaNode): unknown {
  if (applied === undefined) return live
  const node = resolved(schema, applied ?? live)
  if (areEmpty(live, applied) || !sameShape(live, applied)) return applied
  if (isWhole(node, applied ?? undefined)) return applied
  if (node.type === 'list') return mergedList(live, applied, node)
  const out: Record<string, unknown> = {}
  const [before, stated] = [objectOf(live), objectOf(applied)]
  for (const name of new Set([...Object.keys(before), ...Object.keys(stated)]))
    out[name] = merged(before[name], stated[name], fieldNode(node, name) ?? anything)
  return out
}

/** Null fits any shape, as the absent does. */
function sameShape(a: unknown, b: unknown): boolean {
  if (a === undefined || a === null || b === undefined || b === null) return true
  return isObject(a) === isObject(b) && Array.isArray(a) === Array.isArray(b)
}

const objectOf = (value: unknown): Record<string, unknown> => (isObject(value) ? value : {})

/**
 * Entries that both have stand in the order of `applied`; those that only `live` has stay where they are, before the
 * new ones at the same place. A shared entry that `applied` has moved further down is placed there.
 */
function mergedList(live: unknown, applied: unknown, node: SchemaNode): unknown[] {
  const before = itemsByStep(node, live)
  const stated = [...itemsByStep(node, applied)]
  const wanted = new Set(stated.map(([step]) => step))
  const out: unknown[] = []
  let next = 0
  const placeNext = () => {
    const [step, [item] = []] = stated[next++] ?? ['']
    const olds = before.get(step) ?? []
    out.push(merged(olds.length === 1 ? olds[0] : undefined, item, node.items ?? anything))
  }
  for (const item of Array.isArray(live) ? live : []) {
    const step = itemStep(node, item)
    if (!wanted.has(step)) {
      out.push(item)
      continue
    }
    const anchor = stated.findIndex(([one], place) => place >= next && before.has(one))
    if (stated[anchor]?.[0] !== step) continue
    while (next <= anchor) placeNext()
  }
  while (next < stated.length) placeNext()
  return out
}

/**
 * The value without the fields and list entries that `set` names. A map or list from which everything went is null,
 * as on the real server (which for a custom resource then fails its validation).
 */
export function withoutItems(value: unknown, schema: SchemaNode, set: FieldSet): unknown {
  const node = resolved(schema, value)
  if (isWhole(node, value) || value === null || value === undefined) return value
  if (sizeOf(value) === 0) return null
  if (node.type === 'list') {
    const items = (value as unknown[]).flatMap((item) => {
      const below = set.children.get(itemStep(node, item))
      if (!below) return [item]
      if (below.member) return []
      return [withoutItems(item, node.items ?? anything, below)]
    })
    return items.length === 0 ? null : items
  }
  const out: Record<string, unknown> = {}
  for (const [name, child] of Object.entries(value)) {
    const below = set.children.get(`f:${name}`)
    if (!below) out[name] = child
    else if (!below.member) out[name] = withoutItems(child, fieldNode(node, name) ?? anything, below)
  }
  return sizeOf(out) === 0 ? null : out
}

/** The set in which every field of a fixed shape that has fields below it counts itself as stated. */
export function withNamedFields(set: FieldSet, schema: SchemaNode): FieldSet {
  const node = schema.type === 'deduced' ? deducedShape : schema
  const children = new Map<string, FieldSet>()
  for (const [step, child] of set.children) {
    const name = step.startsWith('f:') ? step.slice(2) : undefined
    const below = name === undefined ? (node.items ?? anything) : (fieldNode(node, name) ?? anything)
    const inner = withNamedFields(child, below)
    const named = name !== undefined && node.fields?.has(name) === true
    children.set(step, named ? asMember(inner) : inner)
  }
  return { member: set.member, children }
}

const deducedShape: SchemaNode = { type: 'object', values: { type: 'deduced' } }

/** What is different: paths that only the new value has, that both have, that only the old one has. */
export interface Comparison {
  readonly added: FieldSet
  readonly modified: FieldSet
  readonly removed: FieldSet
}

const same: Comparison = { added: emptySet, modified: emptySet, removed: emptySet }
const here: FieldSet = { member: true, children: new Map() }

/** Compares field by field, as the schema divides the values. */
export function compared(before: unknown, after: unknown, schema: SchemaNode): Comparison {
  const node = resolved(schema, after ?? before)
  if (!sameShape(before, after)) return comparedShapes(before, after, schema)
  if (isWhole(node, after ?? before) || areEmpty(before, after)) return comparedWhole(before, after)
  const found: Comparison =
    node.type === 'list' ? comparedLists(before, after, node) : comparedMaps(before, after, node)
  if (before === undefined) return { ...found, added: asMember(found.added) }
  return after === undefined ? { ...found, removed: asMember(found.removed) } : found
}

/** Where a map has taken the place of something else, or the reverse, both that and the map's fields are different. */
function comparedShapes(before: unknown, after: unknown, schema: SchemaNode): Comparison {
  const whole = comparedWhole(before, after)
  const fields = schema.type === 'deduced' ? comparedMaps(before, after, deducedShape) : same
  return { added: fields.added, modified: asMember(whole.modified), removed: fields.removed }
}

function comparedWhole(before: unknown, after: unknown): Comparison {
  if (before === undefined) return after === undefined ? same : { ...same, added: here }
  if (after === undefined) return { ...same, removed: here }
  return equal(before, after) ? same : { ...same, modified: here }
}

function comparedMaps(before: unknown, after: unknown, node: SchemaNode): Comparison {
  const [old, now] = [objectOf(before), objectOf(after)]
  const found = comparison()
  for (const name of new Set([...Object.keys(old), ...Object.keys(now)]))
    found.add(`f:${name}`, compared(old[name], now[name], fieldNode(node, name) ?? anything))
  return found.sets
}

function comparedLists(before: unknown, after: unknown, node: SchemaNode): Comparison {
  const [old, now] = [itemsByStep(node, before), itemsByStep(node, after)]
  const items = node.items ?? anything
  const found = comparison()
  for (const step of new Set([...old.keys(), ...now.keys()])) {
    const [olds, nows] = [old.get(step) ?? [], now.get(step) ?? []]
    const isSingle = olds.length <= 1 && nows.length <= 1
    found.add(step, isSingle ? compared(olds[0], nows[0], items) : comparedDuplicates(olds, nows, items))
  }
  return found.sets
}

/**
 * An entry that stands more than once is compared as a whole, and owned so: when it becomes one of several its own
 * fields are gone, when it is alone again they are new.
 */
function comparedDuplicates(olds: unknown[], nows: unknown[], items: SchemaNode): Comparison {
  const whole = comparedWhole(olds.length > 0 ? olds : undefined, nows.length > 0 ? nows : undefined)
  const fieldsOf = (list: unknown[]) => (list.length === 1 ? fieldSetOf(list[0], items) : emptySet)
  return {
    ...whole,
    added: union(whole.added, { ...fieldsOf(nows), member: whole.added.member }),
    removed: union(whole.removed, { ...fieldsOf(olds), member: whole.removed.member }),
  }
}

/** A comparison to fill step by step. */
function comparison() {
  const sets = { added: setToFill(), modified: setToFill(), removed: setToFill() }
  const add = (step: string, below: Comparison) => {
    for (const which of ['added', 'modified', 'removed'] as const)
      if (!isEmptySet(below[which])) sets[which].children.set(step, below[which])
  }
  return { sets, add }
}

const setToFill = () => ({ member: false, children: new Map<string, FieldSet>() })

/** Deep equality of JSON values; the order of an object's keys does not count. */
export function equal(a: unknown, b: unknown): boolean {
  if (a === b) return true
  if (Array.isArray(a) || Array.isArray(b))
    return (
      Array.isArray(a) && Array.isArray(b) && a.length === b.length && a.every((one, i) => equal(one, b[i]))
    )
  if (!isObject(a) || !isObject(b)) return false
  const names = Object.keys(a)
  return names.length === Object.keys(b).length && names.every((name) => name in b && equal(a[name], b[name]))
}
