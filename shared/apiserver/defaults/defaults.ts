import { isObject, type KubeObject, type Resource } from '../../kinds/object.ts'
import { type KindSchema, metadataNode } from '../schema.ts'
import { type Decoder, decoded } from './decode.ts'
import { podTemplateDefaults } from './pod-defaults.ts'

type Fields = Record<string, unknown>

/**
 * An object of a built-in kind as the server would store it: read by its types (unknown fields dropped, canonical
 * quantities and times) and with the kind's defaults. What the server sets in its own right (uid, generation,
 * a namespace's finalizer, status) is not set here. Throws DecodeError.
 */
export function normalise(
  object: KubeObject,
  resource: Pick<Resource, 'kind'>,
  schema: KindSchema,
  decoder: Decoder,
): KubeObject {
  const { apiVersion, kind } = object
  const read = decoded(object, schema.root, decoder)
  const head = { ...(apiVersion !== undefined && { apiVersion }), ...(kind !== undefined && { kind }) }
  return { ...head, ...(defaultsOf[resource.kind]?.(read) ?? read) }
}

/** A custom resource with its metadata read as that of any object; its other fields are the CRD's matter. */
export function normaliseMetadata(object: KubeObject, decoder: Decoder): KubeObject {
  const metadata = decoded(object.metadata ?? {}, metadataNode(), decoder)
  return { ...object, metadata }
}

const defaultsOf: Record<string, (object: Fields) => Fields> = {
  Deployment: deploymentDefaults,
  Secret: secretDefaults,
  Namespace: namespaceDefaults,
  CustomResourceDefinition: crdDefaults,
}

/** `value` with the defaults for what it lacks. */
export function withDefaults(value: unknown, defaults: Fields): Fields {
  const given = isObject(value) ? value : {}
  const missing = Object.entries(defaults).filter(([name]) => given[name] === undefined)
  return missing.length === 0 ? given : { ...given, ...Object.fromEntries(missing) }
}

function deploymentDefaults(object: Fields): Fields {
  const spec = withDefaults(object.spec, {
    replicas: 1,
    revisionHistoryLimit: 10,
    progressDeadlineSeconds: 600,
  })
  const strategy = withDefaults(spec.strategy, { type: 'RollingUpdate' })
  const rollingUpdate =
    strategy.type === 'RollingUpdate' &&
    withDefaults(strategy.rollingUpdate, { maxUnavailable: '25%', maxSurge: '25%' })
  return {
    ...object,
    spec: {
      ...spec,
      strategy: { ...strategy, ...(rollingUpdate && { rollingUpdate }) },
      template: podTemplateDefaults(spec.template as Fields),
    },
  }
}

/** `stringData` is for writing only: it goes into `data`. */
function secretDefaults({ stringData, ...secret }: Fields): Fields {
  const written = Object.entries((stringData ?? {}) as Record<string, string>).map(([key, text]) => [
    key,
    Buffer.from(text).toString('base64'),
  ])
  const data = { ...(secret.data as Fields), ...Object.fromEntries(written) }
  return {
    ...withDefaults(secret, { type: 'Opaque' }),
    ...(Object.keys(data).length > 0 && { data }),
  }
}

/** Every namespace can be selected by its name. */
function namespaceDefaults(namespace: Fields): Fields {
  const metadata = namespace.metadata as Fields
  if (typeof metadata.name !== 'string') return namespace
  const labels = { ...(metadata.labels as Fields), 'kubernetes.io/metadata.name': metadata.name }
  return { ...namespace, metadata: { ...metadata, labels } }
}

function crdDefaults(crd: Fields): Fields {
  const spec = crd.spec as Fields & { names: { kind: string } }
  const { kind } = spec.names
  const names = withDefaults(spec.names, { singular: kind.toLowerCase(), listKind: `${kind}List` })
  return { ...crd, spec: { ...withDefaults(spec, { conversion: { strategy: 'None' } }), names } }
}
