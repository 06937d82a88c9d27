import { isObject, type KubeObject, type Status, type StoredObject } from '../kinds/object.ts'
import type { ServerContext } from './context.ts'
import { type DeletionOptions, deleteObject, type Propagation } from './deletion.ts'
import { shapedList } from './http/answers.ts'
import { mediaTypeOf, readText } from './http/body.ts'
import { dryRunCauses, invalidOptions, listOptions } from './http/options.ts'
import type { Target } from './http/request.ts'
import { type Shape, wireObject } from './http/wire.ts'
import { matcherOf, prefixOf } from './read.ts'
import type { ApiResource } from './resources.ts'
import { ApiError, badRequest, type Cause, cause } from './status.ts'

const policies = ['Foreground', 'Background', 'Orphan']

/** The DeleteOptions of a request, from its body and its query. Throws 400 and 422. */
async function deletionOptions(request: Request, query: URLSearchParams): Promise<DeletionOptions> {
  const body = await readOptions(request)
  const preconditions = isObject(body.preconditions) ? body.preconditions : {}
  const policy = (body.propagationPolicy ?? query.get('propagationPolicy') ?? undefined) as string | undefined
  const orphan = body.orphanDependents ?? query.get('orphanDependents') ?? undefined
  const causes: Cause[] = []
  if (policy !== undefined && orphan !== undefined)
    causes.push(
      cause.invalid(
        'propagationPolicy',
        policy,
        'orphanDependents and deletionPropagation cannot be both set',
      ),
    )
  if (policy !== undefined && !policies.includes(policy))
    causes.push(cause.notSupported('propagationPolicy', policy, [...policies, 'nil']))
  const inBody = Array.isArray(body.dryRun) ? body.dryRun.map(String) : []
  const dryRun = new URLSearchParams(query)
  for (const value of inBody) dryRun.append('dryRun', value)
  causes.push(...dryRunCauses(dryRun))
  if (causes.length > 0) throw invalidOptions('DeleteOptions', causes)
  const asked = (name: string) =>
    typeof preconditions[name] === 'string' ? (preconditions[name] as string) : undefined
  return {
    uid: asked('uid'),
    resourceVersion: asked('resourceVersion'),
    propagation: (policy ?? (String(orphan) === 'true' ? 'Orphan' : undefined)) as Propagation | undefined,
    dryRun: dryRun.has('dryRun'),
  }
}

async function readOptions(request: Request): Promise<Record<string, unknown>> {
  const text = await readText(request)
  if (text.trim() === '') return {}
  try {
    if (mediaTypeOf(request) !== 'application/json') throw new TypeError('not JSON')
    const body = JSON.parse(text)
    if (isObject(body)) return body
  } catch {
    // Told below.
  }
  throw badRequest(`couldn't get version/kind; json parse error: the body is no DeleteOptions`)
}

/** Answers a DELETE of one object: the object while it waits for its finalizers, else a Status. */
export async function remove(
  ctx: ServerContext,
  target: Target,
  request: Request,
  url: URL,
): Promise<KubeObject | Status> {
  const { resource, namespace, name = '' } = target
  const options = await deletionOptions(request, url.searchParams)
  const { object, isGone } = deleteObject(ctx, resource, { namespace, name }, options)
  return isGone ? deleted(resource, object) : wireObject(resource, object)
}

function deleted(resource: ApiResource, { metadata }: StoredObject): Status {
  return {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Success',
    details: {
      name: metadata.name,
      ...(resource.group !== '' && { group: resource.group }),
      kind: resource.plural,
      uid: metadata.uid,
    },
  }
}

/** Answers a DELETE of a collection: the list of what it deleted. */
export async function removeAll(
  ctx: ServerContext,
  target: Target,
  request: Request,
  url: URL,
  shape: Shape,
): Promise<object> {
  const { resource } = target
  const options = await deletionOptions(request, url.searchParams)
  const matches = matcherOf(target, listOptions(url.searchParams, false))
  const objects = ctx.store.list(resource.storage, prefixOf(target)).filter(matches)
  const resourceVersion = String(ctx.store.revision())
  for (const { metadata } of objects) {
    try {
      deleteObject(ctx, resource, metadata, options)
    } catch (error) {
      // Somebody else was faster: what it came for is done.
      if (!(error instanceof ApiError) || error.code !== 404) throw error
    }
  }
  return shapedList(resource, objects, { resourceVersion }, shape, ctx.clock.now())
}
