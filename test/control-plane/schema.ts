import { execFileSync } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { binaries } from './binaries.ts'
import { type ClusterConnection, startControlPlane } from './start.ts'

/**
 * `npm run schema`: asks a real kube-apiserver for the OpenAPI documents of the built-in kinds that the embedded API
 * serves, keeps what apply, patches and defaults need, and writes `shared/apiserver/data/schema.json`.
 */

interface OpenApi {
  components: { schemas: Record<string, Property> }
}

interface Property {
  $ref?: string
  allOf?: Property[]
  oneOf?: Property[]
  type?: string
  format?: string
  properties?: Record<string, Property>
  additionalProperties?: Property
  items?: Property
  default?: unknown
  [extension: `x-kubernetes-${string}`]: unknown
}

/** What the Go types tell of each type: see fields/main.go. */
type Facts = Record<string, { zero: Record<string, string>; numbers: Record<string, unknown> }>

const roots: Record<string, [document: string, type: string]> = {
  Deployment: ['apis/apps/v1', 'io.k8s.api.apps.v1.Deployment'],
  Secret: ['api/v1', 'io.k8s.api.core.v1.Secret'],
  ConfigMap: ['api/v1', 'io.k8s.api.core.v1.ConfigMap'],
  Namespace: ['api/v1', 'io.k8s.api.core.v1.Namespace'],
  Lease: ['apis/coordination.k8s.io/v1', 'io.k8s.api.coordination.v1.Lease'],
  Event: ['apis/events.k8s.io/v1', 'io.k8s.api.events.v1.Event'],
  CustomResourceDefinition: [
    'apis/apiextensions.k8s.io/v1',
    'io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition',
  ],
}

const output = new URL('../../shared/apiserver/data/schema.json', import.meta.url)
const folder = new URL('.', import.meta.url).pathname

/** `apps.v1.Deployment` for `io.k8s.api.apps.v1.Deployment`. */
const short = (name: string) => name.replace(/^.*\.(?:apis|api)\.(?=[a-z])/, '').replace(/^.*pkg\./, '')

const leaves: Record<string, string> = {
  'io.k8s.apimachinery.pkg.api.resource.Quantity': 'quantity',
  'io.k8s.apimachinery.pkg.util.intstr.IntOrString': 'intOrString',
  'io.k8s.apimachinery.pkg.apis.meta.v1.Time': 'time',
  'io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime': 'microTime',
}

/** The type expression of a property, and the names of the types it needs. */
function typeOf(property: Property, needs: (name: string) => void): unknown {
  const ref = property.$ref ?? property.allOf?.[0]?.$ref
  if (ref) {
    const name = ref.replace('#/components/schemas/', '')
    const leaf = leaves[name]
    if (leaf) return leaf
    needs(name)
    return short(name)
  }
  if (property.type === 'array') return listOf(property, needs)
  if (property.type === 'object' && property.additionalProperties)
    return {
      map: typeOf(property.additionalProperties, needs),
      ...(property['x-kubernetes-map-type'] === 'atomic' && { atomic: true }),
    }
  if (property.type === 'string' && property.format === 'byte') return 'bytes'
  if (property.format === 'int64') return 'int64'
  return property.type ?? 'any'
}

function listOf(property: Property, needs: (name: string) => void) {
  const keys = property['x-kubernetes-list-map-keys']
  const as = property['x-kubernetes-list-type'] ?? 'atomic'
  return {
    list: typeOf(property.items ?? {}, needs),
    ...(as !== 'atomic' && { as }),
    ...(keys !== undefined && { keys }),
  }
}

function fieldOf(property: Property, zero: string, needs: (name: string) => void): unknown {
  const type = typeOf(property, needs)
  const scalarDefault = typeof property.default === 'object' ? undefined : property.default
  const facts = {
    ...(zero !== 'omit' && { zero }),
    ...(scalarDefault !== undefined && { default: scalarDefault }),
    ...(property['x-kubernetes-patch-merge-key'] !== undefined && {
      mergeKey: property['x-kubernetes-patch-merge-key'],
    }),
    ...(property['x-kubernetes-patch-strategy'] !== undefined && {
      strategy: property['x-kubernetes-patch-strategy'],
    }),
  }
  return Object.keys(facts).length === 0 ? type : { type, ...facts }
}

/** All types that the kinds reach, small. */
function smallSchema(documents: Record<string, OpenApi>, facts: Facts) {
  const types: Record<string, unknown> = {}
  const visit = (schemas: Record<string, Property>, name: string) => {
    const key = short(name)
    if (key in types) return
    const schema = schemas[name]
    if (!schema) throw new Error(`No schema ${name}`)
    types[key] = null
    const needs = (other: string) => visit(schemas, other)
    const { zero = {}, numbers = {} } = facts[name] ?? {}
    // Definitions are never sent in protobuf: no client has them as a type.
    const isSent = Object.keys(numbers).length > 0 && !key.startsWith('apiextensions.')
    const fields = Object.entries(schema.properties ?? {}).map(([field, property]) => [
      field,
      fieldOf(property, zero[field] ?? 'omit', needs),
    ])
    types[key] = schema.properties
      ? {
          fields: Object.fromEntries(fields),
          ...(schema['x-kubernetes-map-type'] === 'atomic' && { atomic: true }),
          ...(isSent && { numbers }),
        }
      : { open: schema.type ?? 'any' }
  }
  for (const [document, name] of Object.values(roots)) {
    const schemas = documents[document]?.components.schemas
    if (!schemas) throw new Error(`No document ${document}`)
    visit(schemas, name)
  }
  const kinds = Object.fromEntries(Object.entries(roots).map(([kind, [, name]]) => [kind, short(name)]))
  return { kinds, types: Object.fromEntries(Object.entries(types).sort()) }
}

/** One line per type, so that a change of the API reads as a small diff. */
function rendered({ kinds, types }: ReturnType<typeof smallSchema>): string {
  const lines = Object.entries(types).map(([name, type]) => `${JSON.stringify(name)}:${JSON.stringify(type)}`)
  return `{"kinds":${JSON.stringify(kinds)},\n"types":{\n${lines.join(',\n')}\n}}\n`
}

function openApi({ binaries, kubeconfigFile }: ClusterConnection, document: string): OpenApi {
  const args = ['--kubeconfig', kubeconfigFile, 'get', '--raw', `/openapi/v3/${document}`]
  return JSON.parse(
    execFileSync(binaries.kubectl, args, { encoding: 'utf8', maxBuffer: 64 << 20 }),
  ) as OpenApi
}

async function main() {
  const plane = await startControlPlane({ binaries: await binaries(console.log), controllers: [] })
  try {
    const documents: Record<string, OpenApi> = {}
    for (const [document] of Object.values(roots)) documents[document] ??= openApi(plane.connection, document)
    const facts = JSON.parse(
      execFileSync('go', ['-C', folder, 'run', './fields'], { encoding: 'utf8' }),
    ) as Facts
    await writeFile(output, rendered(smallSchema(documents, facts)))
  } finally {
    await plane.stop()
  }
}

await main()
