import { createHash } from 'node:crypto'
import { isObject } from '../kinds/object.ts'

/** Small pure functions on JSON values. None of them throws on anything that JSON.parse can give. */

/** A copy without nulls, in maps and lists, however deep: to the API a null means "not set". */
export function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.filter((item) => item !== null).map(withoutNulls)
  if (!isObject(value)) return value
  const kept = Object.entries(value).filter(([, field]) => field !== null && field !== undefined)
  // fromEntries, not assignment: a key may be called __proto__.
  return Object.fromEntries(kept.map(([key, field]) => [key, withoutNulls(field)]))
}

/** JSON with the keys of every map in order, so that equal values give equal text. */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`
  if (!isObject(value)) return JSON.stringify(value) ?? 'null'
  const fields = Object.keys(value)
    .filter((key) => value[key] !== undefined)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonicalJson(value[key])}`)
  return `{${fields.join(',')}}`
}

export function isSame(one: unknown, other: unknown): boolean {
  return one === other || canonicalJson(one) === canonicalJson(other)
}

/** A short hash of a text or of any JSON value, of hexadecimal digits: the same wherever it is computed. */
export function hashOf(value: unknown): string {
  const text = typeof value === 'string' ? value : canonicalJson(value)
  return createHash('sha256').update(text).digest('hex').slice(0, 20)
}

/** Whether maps and lists are nested more than `levels` deep. Goes level by level, so no depth is too much for it. */
export function isDeeperThan(levels: number, value: unknown): boolean {
  let level = [value]
  for (let depth = 0; depth <= levels; depth++) {
    level = level.flatMap((item) => (typeof item === 'object' && item !== null ? Object.values(item) : []))
    if (level.length === 0) return false
  }
  return true
}

/** The map under `field`, or an empty one when there is none. */
export function mapIn(value: unknown, field: string): Record<string, unknown> {
  const found = isObject(value) && Object.hasOwn(value, field) ? value[field] : undefined
  return isObject(found) ? found : {}
}

/** At most `length` characters of a text, well formed, with a mark where it was cut. */
export function shortened(text: string, length: number): string {
  const wellFormed = text.toWellFormed()
  return wellFormed.length <= length ? wellFormed : `${wellFormed.slice(0, length - 1).toWellFormed()}…`
}
