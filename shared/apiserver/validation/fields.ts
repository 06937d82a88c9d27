import { equal } from '../ownership/typed.ts'
import { type Cause, cause } from '../status.ts'
import { labelValueErrors, qualifiedNameErrors } from './names.ts'

/** Checks that several kinds share. `field` is the path that the causes name. */

export type Fields = Record<string, unknown>

const annotationsMaxBytes = 256 * 1024

/** One cause per message. */
export function causesOf(field: string, value: unknown, messages: readonly string[]): Cause[] {
  return messages.map((message) => cause.invalid(field, value, message))
}

export function labelCauses(field: string, labels: unknown): Cause[] {
  return Object.entries((labels ?? {}) as Record<string, string>).flatMap(([key, value]) => [
    ...causesOf(field, key, qualifiedNameErrors(key)),
    ...causesOf(field, value, labelValueErrors(value)),
  ])
}

export function annotationCauses(field: string, annotations: unknown): Cause[] {
  const entries = Object.entries((annotations ?? {}) as Record<string, string>)
  const size = entries.reduce((sum, pair) => sum + Buffer.byteLength(pair.join('')), 0)
  return [
    ...entries.flatMap(([key]) => causesOf(field, key, qualifiedNameErrors(key.toLowerCase()))),
    ...(size > annotationsMaxBytes ? [cause.tooLong(field, annotationsMaxBytes)] : []),
  ]
}

/** A field that keeps the value which it was created with. */
export function immutableCauses(field: string, after: unknown, before: unknown): Cause[] {
  return equal(after ?? null, before ?? null) ? [] : [cause.invalid(field, after, 'field is immutable')]
}

export function nonNegativeCauses(field: string, value: unknown): Cause[] {
  return typeof value === 'number' && value < 0 ? [cause.invalid(field, value, atLeastZero)] : []
}

export const atLeastZero = 'must be greater than or equal to 0'

/** A text that must be one of a few; absent when `value` is undefined or empty. */
export function choiceCauses(field: string, value: unknown, supported: string[]): Cause[] {
  if (value === undefined || value === '' || supported.includes(String(value))) return []
  return [cause.notSupported(field, value, supported)]
}

const idMax = 2 ** 31 - 1

/** Ids of users and groups. */
export function idCauses(field: string, context: unknown, names: string[]): Cause[] {
  return names.flatMap((name) => {
    const id = (context as Fields | undefined)?.[name]
    if (typeof id !== 'number' || (id >= 0 && id <= idMax)) return []
    return [cause.invalid(`${field}.${name}`, id, `must be between 0 and ${idMax}, inclusive`)]
  })
}

/** A list of a decoded object. */
export function listOf(value: unknown): Fields[] {
  return Array.isArray(value) ? (value as Fields[]) : []
}

/** The items whose key stood before, each named as a duplicate. */
export function duplicateCauses(values: { field: string; value: unknown }[]): Cause[] {
  const seen = new Set<unknown>()
  return values.flatMap(({ field, value }) => {
    if (seen.has(value)) return [cause.duplicate(field, value)]
    seen.add(value)
    return []
  })
}
