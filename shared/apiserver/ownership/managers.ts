import { apiVersionOf, type KubeObject } from '../../kinds/object.ts'
import { type ServerContext, stampOf } from '../context.ts'
import type { ApiResource } from '../resources.ts'
import { updateManagedFields } from './apply.ts'
import { withScaleManagers } from './scaled.ts'

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
  if (options.subresource === 'scale' && before)
    return withScaleManagers(resource, before, after, options.manager)
  return updateManagedFields({
    before,
    after,
    schema: resource.schema,
    manager: options.manager,
    apiVersion: apiVersionOf(resource),
    now: stampOf(ctx.clock.now()),
    subresource: options.subresource,
  })
}
