import type { FieldsV1 } from '../../kinds/object.ts'

/**
 * A set of paths into an object, as a trie. Steps are the path elements of KEP-555 as `fieldsV1` spells them:
 * `f:<field>`, `k:{"name":"web"}` (an entry of an associative list by its keys), `v:"x"` (a member of a set),
 * `i:0` (a place in a list). Sets are values: no function here changes one that it was given.
 */
export interface FieldSet {
  /** Whether the path that ends here is in the set; never true at the root. */
  readonly member: boolean
  readonly children: ReadonlyMap<string, FieldSet>
}

export const emptySet: FieldSet = { member: false, children: new Map() }
const leaf: FieldSet = { member: true, children: new Map() }

export function isEmptySet(set: FieldSet): boolean {
  return !set.member && set.children.size === 0
}

/** The set with one path more. */
function withPath(set: FieldSet, path: readonly string[]): FieldSet {
  return union(set, setOfPath(path))
}

function setOfPath(path: readonly string[]): FieldSet {
  const [step, ...rest] = path
  if (step === undefined) return leaf
  return { member: false, children: new Map([[step, setOfPath(rest)]]) }
}

export function setOfPaths(paths: readonly (readonly string[])[]): FieldSet {
  return paths.reduce<FieldSet>(withPath, emptySet)
}

/** A set with this one under `step`; nothing when it is empty. */
export function under(step: string, set: FieldSet): FieldSet {
  return isEmptySet(set) ? emptySet : { member: false, children: new Map([[step, set]]) }
}

export function union(a: FieldSet, b: FieldSet): FieldSet {
  if (isEmptySet(a)) return b
  if (isEmptySet(b)) return a
  const children = new Map(a.children)
  for (const [step, child] of b.children) children.set(step, union(children.get(step) ?? emptySet, child))
  return { member: a.member || b.member, children }
}

export function intersection(a: FieldSet, b: FieldSet): FieldSet {
  return combined(
    a,
    (step, child) => {
      const other = b.children.get(step)
      return other ? intersection(child, other) : emptySet
    },
    a.member && b.member,
  )
}

/** The paths of `a` that are not themselves in `b`. */
export function difference(a: FieldSet, b: FieldSet): FieldSet {
  return combined(
    a,
    (step, child) => {
      const other = b.children.get(step)
      return other ? difference(child, other) : child
    },
    a.member && !b.member,
  )
}

/** The paths of `a` that neither are in `b` nor lie below a path of `b`. */
export function recursiveDifference(a: FieldSet, b: FieldSet): FieldSet {
  return combined(
    a,
    (step, child) => {
      const other = b.children.get(step)
      if (!other) return child
      return other.member ? emptySet : recursiveDifference(child, other)
    },
    a.member && !b.member,
  )
}

function combined(
  set: FieldSet,
  child: (step: string, child: FieldSet) => FieldSet,
  member: boolean,
): FieldSet {
  const children = new Map<string, FieldSet>()
  for (const [step, below] of set.children) {
    const kept = child(step, below)
    if (!isEmptySet(kept)) children.set(step, kept)
  }
  return { member, children }
}

export function sameSet(a: FieldSet, b: FieldSet): boolean {
  if (a.member !== b.member || a.children.size !== b.children.size) return false
  for (const [step, child] of a.children) {
    const other = b.children.get(step)
    if (!other || !sameSet(child, other)) return false
  }
  return true
}

/** Every path of the set; what ends at a step comes before what goes on from it, as messages list them. */
export function pathsOf(set: FieldSet, prefix: readonly string[] = []): string[][] {
  const steps = sorted(set)
  const here = steps.filter(([, child]) => child.member).map(([step]) => [...prefix, step])
  return [...here, ...steps.flatMap(([step, child]) => pathsOf(child, [...prefix, step]))]
}

/** A path as messages spell it: `.spec.containers[name="web"].image`. */
export function spelled(path: readonly string[]): string {
  return path.map(spelledStep).join('')
}

function spelledStep(step: string): string {
  const body = step.slice(2)
  if (step.startsWith('f:')) return `.${body}`
  if (step.startsWith('i:')) return `[${body}]`
  if (step.startsWith('v:')) return `[=${body}]`
  const keys = Object.entries(JSON.parse(body) as Record<string, unknown>)
  return `[${keys.map(([key, value]) => `${key}=${JSON.stringify(value)}`).join(',')}]`
}

/** The set as it stands in `managedFields`. */
export function fieldsV1Of(set: FieldSet): FieldsV1 {
  const fields: FieldsV1 = {}
  if (set.member && set.children.size > 0) fields['.'] = {}
  for (const [step, child] of sorted(set)) fields[step] = fieldsV1Of(child)
  return fields
}

/** Reads a `fieldsV1`. Throws a TypeError for a step that is no path element. */
export function fieldSetFrom(fields: FieldsV1): FieldSet {
  return { ...setFrom(fields), member: false }
}

function setFrom(fields: FieldsV1): FieldSet {
  const children = new Map<string, FieldSet>()
  for (const [step, below] of Object.entries(fields)) {
    if (step === '.') continue
    if (!/^[fkvi]:/.test(step)) throw new TypeError(`Not a path element: ${step}`)
    children.set(canonicalStep(step), setFrom(below))
  }
  return { member: '.' in fields || children.size === 0, children }
}

function canonicalStep(step: string): string {
  if (step.startsWith('k:')) return keyStep(JSON.parse(step.slice(2)) as Record<string, unknown>)
  return step.startsWith('v:') ? valueStep(JSON.parse(step.slice(2))) : step
}

/** `k:{…}` with the keys in order. */
export function keyStep(keys: Record<string, unknown>): string {
  const entries = Object.entries(keys).sort(([a], [b]) => (a < b ? -1 : 1))
  return `k:${goJson(Object.fromEntries(entries))}`
}

export function valueStep(value: unknown): string {
  return `v:${goJson(value)}`
}

/** JSON as Go writes it: what could end a script element in HTML is escaped. */
function goJson(value: unknown): string {
  return JSON.stringify(value).replace(/[<>&\u2028\u2029]/g, (sign) => {
    return `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`
  })
}

function sorted(set: FieldSet): [string, FieldSet][] {
  return [...set.children].sort(([a], [b]) => compareSteps(a, b))
}

const order = 'fkvi'

function compareSteps(a: string, b: string): number {
  const byType = order.indexOf(a[0] ?? '') - order.indexOf(b[0] ?? '')
  if (byType !== 0) return byType
  if (a.startsWith('f:')) return a < b ? -1 : 1
  return compareValues(JSON.parse(a.slice(2)), JSON.parse(b.slice(2)))
}

function compareValues(a: unknown, b: unknown): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b
  if (typeof a === 'object' && a !== null && typeof b === 'object' && b !== null) return compareKeys(a, b)
  return String(a) < String(b) ? -1 : String(a) > String(b) ? 1 : 0
}

function compareKeys(a: object, b: object): number {
  const others = Object.entries(b)
  for (const [place, [key, value]] of Object.entries(a).entries()) {
    const [otherKey, otherValue] = others[place] ?? []
    if (otherKey === undefined || key > otherKey) return 1
    const byValue = key < otherKey ? -1 : compareValues(value, otherValue)
    if (byValue !== 0) return byValue
  }
  return others.length > Object.keys(a).length ? -1 : 0
}
