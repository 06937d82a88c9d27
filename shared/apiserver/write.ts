import { isObject, type KubeObject, type StoredObject } from '../kinds/object.ts'
import type { ServerContext } from './context.ts'
import { DecodeError } from './defaults/decode.ts'
import { readObject } from './http/body.ts'
import { type FieldValidation, writeQuery } from './http/options.ts'
import type { Target } from './http/request.ts'
import { createObject, type Place, updateObject } from './operations.ts'
import { type ApiResource, keyOf } from './resources.ts'
import { scaleOf, withScale } from './scale.ts'
import { badRequest, notFound, uidMismatch } from './status.ts'

/** A request that writes. */
export interface WriteAsk {
  request: Request
  url: URL
  target: Target
  /** What the client is to be warned of is put here, whether the write succeeds or not. */
  warnings: string[]
}

/** What a write gives back: the object, and whether it is new. */
export interface Written {
  object: StoredObject | KubeObject
  isNew: boolean
}

/**
 * A body as the kind reads it, and what to warn of, as `fieldValidation` says. Throws 400 for a value of a wrong type, and with
 * Strict for a field that the kind does not know.
 */
async function readBody(
  { request, target, warnings }: WriteAsk,
  validation: FieldValidation,
): Promise<KubeObject> {
  const { resource } = target
  const given = await readObject(request, resource)
  const { kind, version } = resource
  const refuse = (why: string) =>
    badRequest(`${kind} in version "${version}" cannot be handled as a ${kind}: ${why}`)
  try {
    const { object, unknown } = resource.rules.decode(stored(resource, given), 'json')
    const found = checkUnknown(unknown, validation, (problems) =>
      refuse(`strict decoding error: ${problems}`),
    )
    warnings.push(...found)
    return object
  } catch (error) {
    throw error instanceof DecodeError ? refuse(error.message) : error
  }
}

/** The object as it is stored, whichever group shows it. */
export function stored(resource: ApiResource, object: KubeObject): KubeObject {
  return resource.view ? resource.view.fromWire(object) : object
}

/** The warnings of fields that the kind does not know; with Strict they are what `refuse` makes of them. */
export function checkUnknown(
  unknown: string[],
  validation: FieldValidation,
  refuse: (problems: string) => Error,
): string[] {
  const problems = unknown.map((path) => `unknown field ${JSON.stringify(path)}`)
  if (validation === 'Strict' && problems.length > 0) throw refuse(problems.join(', '))
  return validation === 'Warn' ? problems : []
}

export async function create(ctx: ServerContext, ask: WriteAsk): Promise<Written> {
  const { request, url, target } = ask
  const { resource, namespace } = target
  const query = writeQuery(request, url.searchParams, 'CreateOptions')
  const object = await readBody(ask, query.fieldValidation)
  return { object: createObject(ctx, resource, namespace, object, query), isNew: true }
}

export async function replace(ctx: ServerContext, ask: WriteAsk): Promise<Written> {
  const { request, url, target } = ask
  const { resource, namespace, name = '', subresource } = target
  const query = writeQuery(request, url.searchParams, 'UpdateOptions')
  const place = { namespace, name }
  const options = { ...query, subresource, isReplace: true }
  if (subresource === 'scale') {
    const scale = await readScale(request, resource)
    const scaled = updateObject(ctx, resource, place, (live) => withScale(resource, live, scale), options)
    return { object: scaleOf(resource, scaled), isNew: false }
  }
  const object = await readBody(ask, query.fieldValidation)
  checkPlace(object, place)
  const isThere = ctx.store.get(resource.storage, keyOf(resource, namespace, name)) !== undefined
  if (!isThere && !subresource && resource.rules.createsOnUpdate)
    return { object: createByUpdate(ctx, resource, place, object, options), isNew: true }
  if (!isThere) throw notFound(resource, name)
  return { object: updateObject(ctx, resource, place, () => object, options), isNew: false }
}

/**
 * A resourceVersion on a name that is not there is ignored (a dry run shows it again, since nothing is stored that would
 * have one of its own); a uid is not.
 */
function createByUpdate(
  ctx: ServerContext,
  resource: ApiResource,
  place: Place,
  object: KubeObject,
  options: Parameters<typeof createObject>[4],
): StoredObject {
  const { resourceVersion, uid, ...metadata } = object.metadata ?? {}
  if (uid) throw uidMismatch(resource, place, { asked: uid, live: '' })
  const created = createObject(ctx, resource, place.namespace, { ...object, metadata }, options)
  if (!options.dryRun || !resourceVersion) return created
  return { ...created, metadata: { ...created.metadata, resourceVersion } }
}

async function readScale(request: Request, resource: ApiResource): Promise<KubeObject> {
  const scaleResource = { ...resource, group: 'autoscaling', version: 'v1', kind: 'Scale' }
  return readObject(request, scaleResource)
}

/** The body must be about the object that the path names. Throws 400. */
export function checkPlace(object: KubeObject, place: Place): void {
  const { name, namespace } = isObject(object.metadata) ? object.metadata : {}
  if (!name)
    throw badRequest(
      `the name of the object (${place.name} based on URL) was undeterminable: name must be provided`,
    )
  if (name !== place.name)
    throw badRequest(`the name of the object (${name}) does not match the name on the URL (${place.name})`)
  if (namespace && namespace !== (place.namespace ?? ''))
    throw badRequest('the namespace of the provided object does not match the namespace sent on the request')
}
