import { isObject } from '../../kinds/object.ts'
import { fieldNode, type SchemaNode } from '../schema.ts'

/** The paths of the fields that a type does not know, in the order of the body: `metadata.foo`, `spec.ports[0].bar`. */
export function unknownFields(value: unknown, node: SchemaNode | undefined, path = ''): string[] {
  if (!node || node.type === 'any' || node.type === 'deduced') return []
  if (Array.isArray(value))
    return value.flatMap((item, index) => unknownFields(item, node.items, `${path}[${index}]`))
  if (!isObject(value) || node.type !== 'object') return []
  return Object.entries(value).flatMap(([name, field]) => {
    const place = path === '' ? name : `${path}.${name}`
    const inner = fieldNode(node, name)
    if (!inner && !isHead(path, name)) return [place]
    return unknownFields(field, inner, place)
  })
}

const isHead = (path: string, name: string) => path === '' && (name === 'kind' || name === 'apiVersion')
