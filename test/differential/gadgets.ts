import type { KubeObject } from '../../shared/kinds/object.ts'

export const gadgetGroup = 'differential.neiam.org'

const text = { type: 'string' }
const texts = { type: 'object', additionalProperties: text }
const preserved = { 'x-kubernetes-preserve-unknown-fields': true }

const spec = {
  type: 'object',
  properties: {
    map: texts,
    atomicMap: { ...texts, 'x-kubernetes-map-type': 'atomic' },
    object: {
      type: 'object',
      properties: { a: text, b: { type: 'integer' }, c: { type: 'object', properties: { d: text } } },
    },
    set: { type: 'array', items: text, 'x-kubernetes-list-type': 'set' },
    list: { type: 'array', items: text },
    entries: {
      type: 'array',
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['key', 'part'],
      items: {
        type: 'object',
        required: ['key'],
        properties: {
          key: text,
          part: { ...text, default: 'x' },
          value: text,
          more: { type: 'object', properties: { z: text } },
        },
      },
    },
    free: { type: 'object', ...preserved },
    either: { 'x-kubernetes-int-or-string': true },
    any: preserved,
    filled: { ...text, default: 'in' },
    maybe: { ...text, nullable: true },
  },
}

const entries = {
  type: 'array',
  'x-kubernetes-list-type': 'map',
  'x-kubernetes-list-map-keys': ['type'],
  items: { type: 'object', required: ['type'], properties: { type: text, status: text } },
}

/** A kind made to show what ownership does with each sort of field. */
export const gadgetCrd: KubeObject = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `gadgets.${gadgetGroup}` },
  spec: {
    group: gadgetGroup,
    scope: 'Namespaced',
    names: { plural: 'gadgets', kind: 'Gadget' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        subresources: { status: {} },
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: { spec, status: { type: 'object', properties: { a: text, conditions: entries } } },
          },
        },
      },
    ],
  },
}
