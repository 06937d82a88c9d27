import { isObject, type KubeObject } from '../../kinds/object.ts'
import type { SchemaNode } from '../schema.ts'
import { difference, emptySet, type FieldSet } from './field-set.ts'
import { compared, fieldSetOf } from './typed.ts'

/**
 * How `kubectl apply --server-side` lives with the annotation of its client-side forerunner: what that applied and
 * nobody has changed since is kubectl's own, and an annotation that is there is kept up to date.
 */
const lastAppliedAnnotation = 'kubectl.kubernetes.io/last-applied-configuration'

/** The fields of the annotation's object whose values still stand. */
export function unchangedLastApplied(live: KubeObject, root: SchemaNode): FieldSet {
  const text = live.metadata?.annotations?.[lastAppliedAnnotation]
  if (text === undefined) return emptySet
  try {
    const last: unknown = JSON.parse(text)
    if (!isObject(last)) return emptySet
    return difference(fieldSetOf(last, root), compared(last, live, root).modified)
  } catch {
    return emptySet
  }
}

/** `object` with the annotation renewed from the body, if the living object has one. */
export function withLastApplied(object: KubeObject, live: KubeObject, applied: KubeObject): KubeObject {
  if (live.metadata?.annotations?.[lastAppliedAnnotation] === undefined) return object
  const { annotations: stated, ...metadata } = applied.metadata ?? {}
  const { [lastAppliedAnnotation]: _, ...annotations } = stated ?? {}
  const bare = { ...applied, metadata: { ...metadata, ...(stated && { annotations }) } }
  const renewed = {
    ...object.metadata?.annotations,
    [lastAppliedAnnotation]: `${JSON.stringify(sorted(bare))}\n`,
  }
  return { ...object, metadata: { ...object.metadata, annotations: renewed } }
}

/** Keys in order, as Go writes them. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (!isObject(value)) return value
  return Object.fromEntries(
    Object.keys(value)
      .sort()
      .map((key) => [key, sorted(value[key])]),
  )
}
