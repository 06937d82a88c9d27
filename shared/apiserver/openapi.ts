import { createHash } from 'node:crypto'
import { isObject } from '../kinds/object.ts'
import type { ApiResource, Registry } from './resources.ts'
import { metadataNode, type SchemaField, type SchemaNode } from './schema.ts'

/** OpenAPI v3 documents, one per group and version, with what kubectl reads of them: the schemas, and which requests take which options. */

type Json = Record<string, unknown>

/** The index of the documents. */
export function openApiIndex(registry: Registry): object {
  const paths: Json = {}
  for (const { group, version } of registry.all()) {
    const root = rootOf(group, version)
    paths[root] ??= { serverRelativeURL: `/openapi/v3/${root}?hash=${hashOf(registry, group, version)}` }
  }
  return { paths }
}

const rootOf = (group: string, version: string) =>
  group === '' ? `api/${version}` : `apis/${group}/${version}`

function hashOf(registry: Registry, group: string, version: string): string {
  const text = JSON.stringify(openApiDocument(registry, group, version))
  return createHash('sha256').update(text).digest('hex').toUpperCase()
}

/** The documents of a registry as it stands: the list of its resources is a new one after each change. */
const documents = new WeakMap<readonly ApiResource[], Map<string, object>>()

/** The document of one group and version. */
export function openApiDocument(registry: Registry, group: string, version: string): object {
  const all = registry.all()
  const known = documents.get(all) ?? new Map<string, object>()
  documents.set(all, known)
  const document = known.get(`${group}/${version}`) ?? newDocument(all, group, version)
  known.set(`${group}/${version}`, document)
  return document
}

function newDocument(all: readonly ApiResource[], group: string, version: string): object {
  const resources = all.filter((one) => one.group === group && one.version === version)
  const schemas: Json = { [metaName]: propertiesOf(metadataNode(), []) }
  const paths: Json = {}
  for (const resource of resources) {
    schemas[schemaName(resource)] = rootSchema(resource)
    Object.assign(paths, pathsOf(resource))
  }
  const info = { title: 'Kubernetes', version: 'v1.36.3' }
  return { openapi: '3.0.0', info, paths, components: { schemas } }
}

const metaName = 'io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta'

function schemaName({ group, version, kind }: ApiResource): string {
  const reversed = group === '' ? 'core' : group.split('.').reverse().join('.')
  return `${reversed}.${version}.${kind}`
}

const kindOf = ({ group, version, kind }: ApiResource) => ({ group, version, kind })

function rootSchema(resource: ApiResource): Json {
  const schema = resource.customSchema ? { ...resource.customSchema } : propertiesOf(resource.schema.root, [])
  const properties = isObject(schema.properties) ? schema.properties : {}
  return {
    ...schema,
    type: 'object',
    properties: {
      apiVersion: { type: 'string', description: 'The group and version of the API that the object is of.' },
      kind: { type: 'string', description: 'What the object is.' },
      metadata: { $ref: `#/components/schemas/${metaName}` },
      ...Object.fromEntries(Object.entries(properties).filter(([name]) => !head.has(name))),
    },
    'x-kubernetes-group-version-kind': [kindOf(resource)],
  }
}

const head = new Set(['apiVersion', 'kind', 'metadata'])

const parameters = ['dryRun', 'fieldManager', 'fieldValidation', 'force', 'pretty'].map((name) => ({
  name,
  in: 'query',
  schema: { type: name === 'force' ? 'boolean' : 'string' },
}))

function pathsOf(resource: ApiResource): Json {
  const { group, version, plural, namespaced, verbs } = resource
  const collection = `/${rootOf(group, version)}/${namespaced ? 'namespaces/{namespace}/' : ''}${plural}`
  const schema = { $ref: `#/components/schemas/${schemaName(resource)}` }
  const responses = { '200': { description: 'OK', content: { 'application/json': { schema } } } }
  const operation = (action: string) => ({
    parameters,
    responses,
    'x-kubernetes-action': action,
    'x-kubernetes-group-version-kind': kindOf(resource),
  })
  const has = (verb: string) => verbs.includes(verb)
  return {
    [collection]: {
      ...(has('list') && { get: operation('list') }),
      ...(has('create') && { post: operation('post') }),
    },
    [`${collection}/{name}`]: {
      get: operation('get'),
      put: operation('put'),
      patch: operation('patch'),
      delete: operation('delete'),
    },
  }
}

const scalarSchemas: Record<string, Json> = {
  string: { type: 'string' },
  integer: { type: 'integer' },
  number: { type: 'number' },
  boolean: { type: 'boolean' },
  quantity: { type: 'string' },
  intOrString: { type: 'string', format: 'int-or-string' },
  time: { type: 'string', format: 'date-time' },
  microTime: { type: 'string', format: 'date-time' },
  bytes: { type: 'string', format: 'byte' },
}

/** A type as OpenAPI says it; one that stands within itself is cut off there. */
function propertiesOf(node: SchemaNode, trail: SchemaNode[]): Json {
  if (trail.includes(node)) return { type: 'object' }
  const inside = [...trail, node]
  if (node.type === 'list')
    return {
      type: 'array',
      items: node.items ? propertiesOf(node.items, inside) : { type: 'object' },
      ...(node.as && { 'x-kubernetes-list-type': node.as }),
      ...(node.keys && { 'x-kubernetes-list-map-keys': node.keys }),
    }
  // Anything at all is an object here, as the real server has it: kubectl explain fails on a schema without a type.
  if (node.type !== 'object') return scalarSchemas[node.type] ?? { type: 'object' }
  const fields = [...(node.fields ?? [])]
  return {
    type: 'object',
    ...(fields.length > 0 && {
      properties: Object.fromEntries(fields.map(([name, field]) => [name, fieldSchema(field, inside)])),
    }),
    ...(node.values && { additionalProperties: propertiesOf(node.values, inside) }),
    ...(node.atomic && { 'x-kubernetes-map-type': 'atomic' }),
  }
}

function fieldSchema(field: SchemaField, trail: SchemaNode[]): Json {
  return {
    ...propertiesOf(field.node, trail),
    ...(field.default !== undefined && { default: field.default }),
    ...(field.mergeKey && { 'x-kubernetes-patch-merge-key': field.mergeKey }),
    ...(field.strategy && { 'x-kubernetes-patch-strategy': field.strategy }),
  }
}
