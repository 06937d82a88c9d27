import type { KubeObject } from '../kinds/object.ts'
import type { ServerContext } from './context.ts'
import type { ApiResource } from './resources.ts'

export interface WriteOptions {
  /** Whose fields these are. */
  manager: string
  dryRun?: boolean
  subresource?: string | undefined
}

/** Brings managedFields up to date after a POST, PUT or PATCH that is no apply. */
export function recordManager(
  _ctx: ServerContext,
  _resource: ApiResource,
  _before: KubeObject | undefined,
  after: KubeObject,
  _options: WriteOptions,
): KubeObject {
  return after
}
