import { apiVersionOf, isObject, type KubeObject } from '../../kinds/object.ts'
import { type ServerContext, stampOf } from '../context.ts'
import { type ApiResource, fieldAt } from '../resources.ts'
import { updateManagedFields } from './apply.ts'

export interface WriteOptions {
  /** Whose fields these are. */
  manager: string
  dryRun?: boolean
  subresource?: string | undefined
  /** It is a PUT: the body names the incarnation, and for some kinds the version, that it takes the place of. */
  isReplace?: boolean
  /** The object brings its managedFields up to date by itself (an apply). */
  isManaged?: boolean
}

/** The object with the managedFields that a write leaves. */
export function recordManager(
  ctx: ServerContext,
  resource: ApiResource,
  before: KubeObject | undefined,
  after: KubeObject,
  options: WriteOptions,
): KubeObject {
  if (options.isManaged) return after
  const record = (object: KubeObject) =>
    updateManagedFields({
      before,
      after: object,
      schema: resource.schema,
      manager: options.manager,
      apiVersion: apiVersionOf(resource),
      now: stampOf(ctx.clock.now()),
      subresource: options.subresource,
    })
  return options.subresource === 'scale' && before ? scaled(resource, before, after, record) : record(after)
}

/**
 * A Scale hands ownership of the replicas over, but makes none: what nobody owned (a default) nobody owns afterwards. And it says
 * nothing of replicas when they are 0: to scale to 0 looks like taking the field away.
 */
function scaled(
  resource: ApiResource,
  before: KubeObject,
  after: KubeObject,
  record: (object: KubeObject) => KubeObject,
): KubeObject {
  const path = resource.scale?.specReplicas ?? []
  const replicas = fieldAt(after, path)
  if (fieldAt(before, path) === replicas) return record(after)
  const owned = path.map((name) => `f:${name}`)
  const isOwned = before.metadata?.managedFields?.some(
    ({ fieldsV1 }) => fieldAt(fieldsV1, owned) !== undefined,
  )
  if (isOwned && replicas !== 0) return record(after)
  const { metadata } = record(withoutFieldAt(after, path))
  return { ...after, ...(metadata && { metadata }) }
}

function withoutFieldAt(object: KubeObject, path: readonly string[]): KubeObject {
  const [first, ...rest] = path
  if (first === undefined) return object
  const { [first]: inner, ...others } = object
  return rest.length === 0 || !isObject(inner) ? others : { ...others, [first]: withoutFieldAt(inner, rest) }
}
