import { isObject } from '../../kinds/object.ts'
import {
  anything,
  deduced,
  type KindSchema,
  metadataNode,
  type SchemaField,
  type SchemaNode,
} from '../schema.ts'

/** A structural schema as a CustomResourceDefinition states it, as far as ownership depends on it. */
export interface StructuralSchema {
  type?: string
  properties?: Record<string, StructuralSchema>
  additionalProperties?: StructuralSchema | boolean
  items?: StructuralSchema
  default?: unknown
  'x-kubernetes-preserve-unknown-fields'?: boolean
  'x-kubernetes-embedded-resource'?: boolean
  'x-kubernetes-int-or-string'?: boolean
  'x-kubernetes-list-type'?: string
  'x-kubernetes-list-map-keys'?: string[]
  'x-kubernetes-map-type'?: string
  [keyword: string]: unknown
}

/**
 * The schema of a custom resource from one version's `openAPIV3Schema`. `statusSubresource` tells whether that version
 * has one: then a write to the object never owns its status, nor one to the status anything else.
 */
export function schemaFromCrd(
  openAPIV3Schema: StructuralSchema | undefined,
  options: { statusSubresource: boolean },
): KindSchema {
  const node = objectNode(openAPIV3Schema ?? { 'x-kubernetes-preserve-unknown-fields': true })
  const fields = new Map([...(node.fields ?? []), ...identity()])
  return {
    root: { ...node, fields },
    empty: {},
    resetFields: options.statusSubresource
      ? {
          main: [['f:status']],
          status: [...fields.keys()].filter((name) => name !== 'status').map((name) => [`f:${name}`]),
        }
      : { main: [], status: [] },
  }
}

/** What every object has, whatever its schema says. */
function identity(): [string, SchemaField][] {
  return [
    ['apiVersion', { node: { type: 'string' }, zero: 'keep' }],
    ['kind', { node: { type: 'string' }, zero: 'keep' }],
    ['metadata', { node: metadataNode(), zero: 'keep' }],
  ]
}

function nodeFrom(schema: StructuralSchema): SchemaNode {
  if (schema['x-kubernetes-int-or-string']) return anything
  switch (schema.type) {
    case 'object':
      return objectNode(schema)
    case 'array':
      return listNode(schema)
    case 'string':
    case 'integer':
    case 'number':
    case 'boolean':
      return { type: schema.type }
    default:
      return schema['x-kubernetes-preserve-unknown-fields'] ? deduced : anything
  }
}

function objectNode(schema: StructuralSchema): SchemaNode {
  const fields = new Map<string, SchemaField>()
  for (const [name, property] of Object.entries(schema.properties ?? {}))
    fields.set(name, {
      node: nodeFrom(property),
      zero: 'keep',
      ...(property.default !== undefined && { default: property.default }),
    })
  if (schema['x-kubernetes-embedded-resource'])
    for (const [name, field] of identity()) fields.set(name, field)
  const values = valuesNode(schema)
  return {
    type: 'object',
    fields,
    ...(values && { values }),
    ...(schema['x-kubernetes-map-type'] === 'atomic' && { atomic: true }),
  }
}

function valuesNode(schema: StructuralSchema): SchemaNode | undefined {
  if (isObject(schema.additionalProperties)) return nodeFrom(schema.additionalProperties)
  if (schema['x-kubernetes-preserve-unknown-fields']) return deduced
  return schema.additionalProperties === true ? anything : undefined
}

function listNode(schema: StructuralSchema): SchemaNode {
  const as = schema['x-kubernetes-list-type']
  const keys = schema['x-kubernetes-list-map-keys']
  return {
    type: 'list',
    items: schema.items ? nodeFrom(schema.items) : anything,
    as: as === 'set' || as === 'map' ? as : 'atomic',
    ...(as === 'map' && keys && { keys }),
  }
}
