import { isObject } from '../../kinds/object.ts'

/** The instructions that a strategic merge patch carries among the fields. */
export const patchDirective = '$patch'
export const retainDirective = '$retainKeys'
export const orderDirective = '$setElementOrder/'
export const deleteDirective = '$deleteFromPrimitiveList/'

export function isDirective(name: string): boolean {
  return (
    name === patchDirective ||
    name === retainDirective ||
    name.startsWith(orderDirective) ||
    name.startsWith(deleteDirective)
  )
}

/** What a patch adds where nothing was: without instructions, nulls and list entries that are one. */
export function withoutDirectives(value: unknown): unknown {
  if (Array.isArray(value))
    return value.filter((item) => !isObject(item) || !(patchDirective in item)).map(withoutDirectives)
  if (!isObject(value)) return value
  const fields = Object.entries(value).filter(([name, child]) => !isDirective(name) && child !== null)
  return Object.fromEntries(fields.map(([name, child]) => [name, withoutDirectives(child)]))
}
