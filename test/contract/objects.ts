import type { KubeObject } from '../../shared/kinds/object.ts'

/** The objects that the contract is about, as short as the API takes them. */

export function configMap(name: string, extra: Record<string, unknown> = {}): KubeObject {
  const { metadata, ...rest } = extra
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, ...(metadata as object) }, ...rest }
}

export function deployment(name: string, spec: Record<string, unknown> = {}, container = {}): KubeObject {
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name, labels: { app: name } },
    spec: {
      replicas: 0,
      selector: { matchLabels: { app: name } },
      template: {
        metadata: { labels: { app: name } },
        spec: { containers: [{ name: 'main', image: 'nginx', ...container }] },
      },
      ...spec,
    },
  }
}

export const widgetGroup = 'contract.neiam.org'
export const widgetCrdPath = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'

export function widget(name: string, spec?: unknown, extra: Record<string, unknown> = {}): KubeObject {
  const { metadata, ...rest } = extra
  return {
    apiVersion: `${widgetGroup}/v1`,
    kind: 'Widget',
    metadata: { name, ...(metadata as object) },
    ...(spec !== undefined && { spec }),
    ...rest,
  }
}

const specSchema = {
  type: 'object',
  required: ['size'],
  properties: {
    size: { type: 'integer', minimum: 1, maximum: 10 },
    color: { type: 'string', enum: ['red', 'green'], default: 'red' },
    code: { type: 'string', pattern: '^[a-z]+$', minLength: 2, maxLength: 5 },
    tags: { type: 'array', items: { type: 'string' }, maxItems: 3, 'x-kubernetes-list-type': 'set' },
    ports: {
      type: 'array',
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['port'],
      items: {
        type: 'object',
        required: ['port'],
        properties: { port: { type: 'integer' }, protocol: { type: 'string', default: 'TCP' } },
      },
    },
    free: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
    map: { type: 'object', additionalProperties: { type: 'string' } },
    either: { 'x-kubernetes-int-or-string': true },
    when: { type: 'string', format: 'date-time' },
    maybe: { type: 'string', nullable: true },
    replicas: { type: 'integer' },
  },
}

/** A CRD with about all that a structural schema can say. */
export function widgetCrd(plural = 'widgets', kind = 'Widget'): KubeObject {
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${widgetGroup}` },
    spec: {
      group: widgetGroup,
      scope: 'Namespaced',
      names: { plural, kind, shortNames: [`x${plural}`], categories: ['contract'] },
      versions: [
        {
          name: 'v1',
          served: true,
          storage: true,
          subresources: {
            status: {},
            scale: { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.replicas' },
          },
          selectableFields: [{ jsonPath: '.spec.color' }],
          additionalPrinterColumns: [
            { name: 'Size', type: 'integer', jsonPath: '.spec.size', description: 'How big it is.' },
            { name: 'Ready', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
            { name: 'Tags', type: 'string', priority: 1, jsonPath: '.spec.tags' },
            { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
          ],
          schema: {
            openAPIV3Schema: {
              type: 'object',
              required: ['spec'],
              properties: {
                spec: specSchema,
                status: {
                  type: 'object',
                  default: { observedGeneration: -1 },
                  'x-kubernetes-preserve-unknown-fields': true,
                  properties: { observedGeneration: { type: 'integer' }, replicas: { type: 'integer' } },
                },
              },
            },
          },
        },
      ],
    },
  }
}

export function ruled(name: string, spec: object): KubeObject {
  return { ...widget(name, spec), kind: 'Ruled' }
}

const rules = (...list: object[]) => ({ 'x-kubernetes-validations': list })

/** A CRD with rules in CEL, at every level. */
export function ruledCrd(): KubeObject {
  const spec = {
    type: 'object',
    required: ['min'],
    ...rules(
      { rule: '!has(self.max) || self.min <= self.max', message: 'min is over max' },
      { rule: 'self.min != 7', reason: 'FieldValueForbidden', fieldPath: '.min', message: 'no seven' },
      { rule: 'self.min != 8', messageExpression: "'not ' + 'eight'" },
      { rule: 'self.min >= oldSelf.min', message: 'may only grow' },
    ),
    properties: {
      min: { type: 'integer', ...rules({ rule: 'self < 100' }) },
      max: { type: 'integer' },
      name: {
        type: 'string',
        maxLength: 20,
        ...rules(
          { rule: "self.startsWith('a')", message: 'must start with a' },
          { rule: 'self == oldSelf', message: 'immutable' },
        ),
      },
      list: {
        type: 'array',
        maxItems: 5,
        items: { type: 'object', properties: { n: { type: 'integer', ...rules({ rule: 'self > 0' }) } } },
        ...rules({ rule: 'self.all(x, x.n < 50)' }),
      },
      rate: { type: 'number', ...rules({ rule: 'self <= 1.5' }) },
      map: {
        type: 'object',
        maxProperties: 5,
        additionalProperties: { type: 'string', maxLength: 10, ...rules({ rule: "self != 'bad'" }) },
      },
    },
  }
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `ruleds.${widgetGroup}` },
    spec: {
      group: widgetGroup,
      scope: 'Namespaced',
      names: { plural: 'ruleds', kind: 'Ruled' },
      versions: [
        {
          name: 'v1',
          served: true,
          storage: true,
          schema: { openAPIV3Schema: { type: 'object', properties: { spec } } },
        },
      ],
    },
  }
}
