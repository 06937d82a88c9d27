import { type FieldsV1, isObject, type KubeObject, type ManagedFieldsEntry } from '../kinds/object.ts'
import { isSame } from './values.ts'

/**
 * Which of the fields that we apply are still ours (KEP-555). An edit or a removal by somebody else takes a field out
 * of our entry in `managedFields`; the server's own normalising and mutating admission do not. So this, and no
 * comparison of values, tells whether to apply again. It needs no schema: the object that we apply is walked beside
 * the fields that the server recorded for us.
 *
 * Tried on 1.36: a map given as `{}` and an atomic list given as `[]` are recorded, an empty list with keys is not;
 * what is atomic ends in an empty node; an item's key holds the server's defaults too (`protocol` of a port).
 */
export interface Coverage {
  /** The paths that are applied and not owned, as the API server writes them. */
  missing: string[]
  /** The part of the given fields that belongs to what is applied. */
  covered: FieldsV1
}

/** In metadata, and at the root: what names the object is never a managed field. */
const unmanaged = new Set(['name', 'namespace', 'uid', 'resourceVersion'])

/** Walks what is applied beside the fields that a manager owns. */
export function coverageOf(applied: KubeObject, fields: FieldsV1 = {}): Coverage {
  const { apiVersion: _, kind: __, metadata = {}, ...rest } = applied
  const managed = Object.fromEntries(Object.entries(metadata).filter(([field]) => !unmanaged.has(field)))
  const missing: string[] = []
  // An empty node means "all of it", which at the root would be wrong: owning nothing looks the same there.
  const covered = walkMap({ metadata: managed, ...rest }, fields, '', missing)
  return { missing, covered }
}

function walk(value: unknown, node: FieldsV1, path: string, missing: string[]): FieldsV1 {
  if (Object.keys(node).length === 0) return {}
  if (Array.isArray(value)) return walkList(value, node, path, missing)
  return isObject(value) ? walkMap(value, node, path, missing) : {}
}

function walkMap(value: Record<string, unknown>, node: FieldsV1, path: string, missing: string[]): FieldsV1 {
  const covered: [string, FieldsV1][] = []
  for (const [field, inner] of Object.entries(value)) {
    const key = `f:${field}`
    const child = Object.hasOwn(node, key) ? node[key] : undefined
    if (child) add(covered, key, child, walk(inner, child, `${path}.${field}`, missing))
    else if (!leavesNoTrace(inner)) missing.push(`${path}.${field}`)
  }
  return Object.fromEntries(covered)
}

function walkList(items: unknown[], node: FieldsV1, path: string, missing: string[]): FieldsV1 {
  const covered: [string, FieldsV1][] = []
  const members = membersOf(node)
  // Those that give the most key fields first, or one with a defaulted key could take another's place.
  const ranked = items
    .map((item, index) => ({
      item,
      index,
      rank: Math.max(0, ...members.map((member) => keysGiven(member, item))),
    }))
    .sort((one, other) => other.rank - one.rank)
  for (const { item, index } of ranked) {
    const at = members.findIndex((member) => isMember(member, item, index))
    const [member] = at < 0 ? [] : members.splice(at, 1)
    if (member) {
      const inside = walk(item, member.node, `${path}${member.shown}`, missing)
      const itself = Object.hasOwn(member.node, '.') ? { '.': {} } : {}
      add(covered, member.key, member.node, { ...itself, ...inside })
    } else missing.push(`${path}[${index}]`)
  }
  return Object.fromEntries(covered)
}

/** An empty part of a node that is not empty is nothing; of an empty one it is all. */
function add(covered: [string, FieldsV1][], key: string, node: FieldsV1, part: FieldsV1): void {
  if (Object.keys(node).length === 0 || Object.keys(part).length > 0) covered.push([key, part])
}

/** Whether the server records nothing for it: an empty list, or a map of nothing else. An empty map is recorded. */
function leavesNoTrace(value: unknown): boolean {
  if (Array.isArray(value)) return value.length === 0
  if (!isObject(value)) return false
  const fields = Object.values(value)
  return fields.length > 0 && fields.every(leavesNoTrace)
}

interface Member {
  key: string
  node: FieldsV1
  sort: 'k' | 'v' | 'i'
  value: unknown
  shown: string
}

function membersOf(node: FieldsV1): Member[] {
  return Object.entries(node).flatMap(([key, child]) => {
    const sort = key.slice(0, 1)
    if (key.slice(1, 2) !== ':' || (sort !== 'k' && sort !== 'v' && sort !== 'i')) return []
    const value = parsed(key.slice(2))
    return [{ key, node: child, sort, value, shown: shownMember(value) } satisfies Member]
  })
}

function shownMember(value: unknown): string {
  if (!isObject(value)) return `[${JSON.stringify(value)}]`
  const fields = Object.entries(value).map(([name, field]) => `${name}=${JSON.stringify(field)}`)
  return `[${fields.join(',')}]`
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function isMember({ sort, value }: Member, item: unknown, index: number): boolean {
  if (sort === 'i') return value === index
  if (sort === 'v') return isSame(value, item)
  if (!isObject(value) || !isObject(item)) return false
  return Object.entries(value).every(([name, field]) => item[name] === undefined || isSame(item[name], field))
}

function keysGiven({ sort, value }: Member, item: unknown): number {
  if (sort !== 'k' || !isObject(value) || !isObject(item)) return 0
  return Object.keys(value).filter((name) => item[name] !== undefined).length
}

/** What a manager owns besides `part`, which must be a part of it. */
export function fieldsWithout(fields: FieldsV1, part: FieldsV1): FieldsV1 {
  const left = Object.entries(fields).flatMap(([key, node]): [string, FieldsV1][] => {
    const taken = Object.hasOwn(part, key) ? part[key] : undefined
    if (!taken) return [[key, node]]
    const rest = fieldsWithout(node, taken)
    return Object.keys(taken).length === 0 || Object.keys(rest).length === 0 ? [] : [[key, rest]]
  })
  return Object.fromEntries(left)
}

/** What either owns. An empty node owns all of it, so it stays empty. */
export function fieldsOfBoth(one: FieldsV1, other: FieldsV1): FieldsV1 {
  const keys = new Set([...Object.keys(one), ...Object.keys(other)])
  const both = [...keys].map((key): [string, FieldsV1] => {
    const [left, right] = [one[key], other[key]]
    return [key, left && right ? fieldsOfBoth(left, right) : (left ?? right ?? {})]
  })
  return Object.fromEntries(both)
}

/**
 * Fields as an apply records them: maps without the `.` that an update leaves when it made them; items of lists keep
 * theirs.
 */
export function fieldsAsApplied(fields: FieldsV1, inItem = false): FieldsV1 {
  const kept = Object.entries(fields).filter(([key]) => key !== '.' || inItem)
  return Object.fromEntries(kept.map(([key, node]) => [key, fieldsAsApplied(node, !key.startsWith('f:'))]))
}

/** Who owns a field of what we apply in our place: the managers whose entries hold it, by name. */
export function holdersOf(
  applied: KubeObject,
  path: string,
  entries: readonly ManagedFieldsEntry[],
): string[] {
  const holders = entries.filter(({ fieldsV1, subresource }) => {
    if (subresource === 'status') return false
    return !coverageOf(applied, fieldsV1).missing.some((missing) => isAtOrUnder(path, missing))
  })
  return [...new Set(holders.map(({ manager = 'somebody' }) => manager))]
}

function isAtOrUnder(path: string, ancestor: string): boolean {
  return (
    path.startsWith(ancestor) && ['', '.', '['].includes(path.slice(ancestor.length, ancestor.length + 1))
  )
}
