import { parse as parseYaml } from 'yaml'
import { apiVersionOf, isObject, type KubeObject, type StoredObject } from '../kinds/object.ts'
import { type ServerContext, stampOf } from './context.ts'
import { DecodeError } from './defaults/decode.ts'
import { mediaTypeOf, readText } from './http/body.ts'
import { type WriteQuery, writeQuery } from './http/options.ts'
import { wireObject } from './http/wire.ts'
import { admitNamespace, createObject, type Place, updateObject } from './operations.ts'
import { applyPatch } from './ownership/apply.ts'
import { jsonPatch, mergePatch } from './patches/patch.ts'
import { strategicMergePatch } from './patches/strategic-patch.ts'
import { type ApiResource, keyOf } from './resources.ts'
import { scaleOf, scaleToChange, withScale } from './scale.ts'
import { badRequest, conflict, failure, notFound, unsupportedMediaType } from './status.ts'
import { checkPlace, checkUnknown, stored, type WriteAsk, type Written } from './write.ts'

const jsonType = 'application/json-patch+json'
const mergeType = 'application/merge-patch+json'
const applyType = 'application/apply-patch+yaml'
const strategicType = 'application/strategic-merge-patch+json'

/** Answers a PATCH of any of the four types. Throws 400, 404, 409, 415, 422, and the 500 of an apply that cannot be read. */
export async function modify(ctx: ServerContext, ask: WriteAsk): Promise<Written> {
  const { request, url, target, warnings } = ask
  const type = mediaTypeOf(request)
  const { resource, namespace, name = '', subresource } = target
  checkType(resource, type)
  const query = writeQuery(request, url.searchParams, 'PatchOptions', type === applyType)
  const text = await readText(request)
  const place = { namespace, name }
  if (type === applyType) return apply(ctx, { resource, place, subresource, query, text })
  const change = (live: StoredObject): KubeObject => {
    const shown = subresource === 'scale' ? scaleToChange(resource, live) : wireObject(resource, live)
    const patched = patchOf(type, text, resource)(shown)
    if (subresource === 'scale') return withScale(resource, live, patched)
    const read = readPatched(resource, patched, query, warnings)
    checkPlace(read, place)
    return read
  }
  const object = updateObject(ctx, resource, place, change, { ...query, subresource })
  return { object: subresource === 'scale' ? scaleOf(resource, object) : object, isNew: false }
}

function checkType(resource: ApiResource, type: string): void {
  const accepted = resource.rules.isTyped
    ? [jsonType, mergeType, applyType]
    : [jsonType, mergeType, strategicType, applyType]
  if (accepted.includes(type)) return
  throw resource.itemsAreTyped
    ? unsupportedMediaType(accepted)
    : failure(415, 'UnsupportedMediaType', '415: Unsupported Media Type', {})
}

function patchOf(type: string, text: string, resource: ApiResource): (object: KubeObject) => KubeObject {
  const patch = parsed(text)
  switch (type) {
    case jsonType:
      return (object) => jsonPatch(object, patch)
    case strategicType:
      return (object) => strategicMergePatch(object, patch, resource.schema.root)
    default:
      return (object) => mergePatch(object, patch)
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw badRequest('error decoding patch: unexpected end of JSON input')
  }
}

/** What the patch has made, read as a body would be; what its types cannot hold, or do not know with Strict, is a 422. */
function readPatched(
  resource: ApiResource,
  patched: KubeObject,
  query: WriteQuery,
  warnings: string[],
): KubeObject {
  const refuse = (why: string) => {
    const message = `Invalid value: ${JSON.stringify(JSON.stringify(patched))}: ${why}`
    const causes = [{ reason: 'FieldValueInvalid', message, field: 'patch' }]
    return failure(422, 'Invalid', ` "" is invalid: patch: ${message}`, { causes })
  }
  try {
    const { object, unknown } = resource.rules.decode(stored(resource, patched), 'json')
    const found = checkUnknown(unknown, query.fieldValidation, (problems) =>
      refuse(`strict decoding error: ${problems}`),
    )
    warnings.push(...found)
    return object
  } catch (error) {
    throw error instanceof DecodeError ? refuse(error.message) : error
  }
}

interface ApplyCall {
  resource: ApiResource
  place: Place
  subresource: string | undefined
  query: WriteQuery
  text: string
}

function apply(ctx: ServerContext, call: ApplyCall): Written {
  const { resource, place, subresource, query } = call
  const applied = readApplied(call)
  const live = ctx.store.get(resource.storage, keyOf(resource, place.namespace, place.name))
  if (!live && subresource) throw notFound(resource, place.name)
  if (!live) admitNamespace(ctx, resource, place.namespace, place.name)
  const { uid } = applied.metadata ?? {}
  if (!live && uid)
    throw conflict(
      resource,
      place.name,
      `uid mismatch: the provided object specified uid ${uid}, and no existing object was found`,
    )
  const { object } = applyPatch({
    resource,
    live,
    applied,
    schema: resource.schema,
    manager: query.manager,
    force: query.force ?? false,
    apiVersion: apiVersionOf(resource),
    now: stampOf(ctx.clock.now()),
    subresource,
    normalise: (merged) => resource.rules.decode(merged, 'unstructured').object,
  })
  const options = { ...query, subresource, isManaged: true }
  if (live) return { object: updateObject(ctx, resource, place, () => object, options), isNew: false }
  const { resourceVersion: _, ...metadata } = object.metadata ?? {}
  const created = createObject(ctx, resource, place.namespace, { ...object, metadata }, options)
  return { object: created, isNew: true }
}

/** What most clients send, and much sooner read than YAML; undefined when it is not JSON. */
function fromJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function readApplied({ text, place, resource }: ApplyCall): KubeObject {
  let applied: unknown
  try {
    applied = fromJson(text) ?? parseYaml(text)
  } catch (error) {
    throw badRequest(`error decoding YAML: ${(error as Error).message.split('\n')[0]}`)
  }
  if (!isObject(applied))
    throw badRequest(
      'error decoding YAML: json: cannot unmarshal into Go value of type map[string]interface {}',
    )
  const object = stored(resource, applied as KubeObject)
  const { kind, apiVersion } = object
  if (kind && apiVersion) checkPlace(object, place)
  return object
}
