import type { ApiResource, Registry } from '../resources.ts'
import { type ApiError, failure, methodNotAllowed, noSuchResource, notFound, qualified } from '../status.ts'

/** What a request is about, read from its method and path. */
export interface Target {
  resource: ApiResource
  /** Absent for cluster-wide resources and for lists over all namespaces. */
  namespace?: string
  name?: string
  subresource?: string
  verb: Verb
}

export type Verb = 'get' | 'list' | 'watch' | 'create' | 'update' | 'patch' | 'delete' | 'deletecollection'

/** Thrown for a path outside of all groups: answered with plain text, as the real server does. */
export class PageNotFound extends Error {
  override readonly name = 'PageNotFound'
}

/**
 * Finds the resource that a path names: `/api/v1/…` or `/apis/GROUP/VERSION/…`, then `namespaces/NS` for namespaced ones, then
 * `PLURAL[/NAME[/SUBRESOURCE]]`. Throws 404 or 405 as the real server answers.
 */
export function targetOf(registry: Registry, method: string, url: URL): Target {
  const parts = url.pathname.split('/').slice(1).map(decoded)
  const isCore = parts[0] === 'api'
  const [group = '', version = ''] = isCore ? ['', parts[1]] : [parts[1], parts[2]]
  if (!registry.hasGroup(group)) throw new PageNotFound()
  if (!registry.hasGroupVersion(group, version))
    throw registry.isCustom(group) ? new PageNotFound() : noSuchResource()
  let rest = parts.slice(isCore ? 2 : 3)
  const isOldWatch = rest[0] === 'watch'
  if (isOldWatch) rest = rest.slice(1)
  const place = placeOf(registry, group, version, rest)
  const watches = isOldWatch || isTrue(url.searchParams.get('watch'))
  return { ...place, verb: verbOf(method, place, watches, isOldWatch) }
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    throw failure(400, 'BadRequest', `invalid URL escape in "${part}"`)
  }
}

type Place = Omit<Target, 'verb'>

function placeOf(registry: Registry, group: string, version: string, parts: string[]): Place {
  if (parts[0] === 'namespaces' && parts[2] !== undefined) {
    const namespaced = registry.find(group, version, parts[2])
    if (namespaced?.namespaced) return placeIn(namespaced, parts.slice(3), parts[1])
  }
  const resource = registry.find(group, version, parts[0] ?? '')
  const isNowhere = !resource || (resource.namespaced && parts.length > 1)
  if (isNowhere) throw registry.isCustom(group) ? new PageNotFound() : noSuchResource()
  return placeIn(resource, parts.slice(1))
}

function placeIn(resource: ApiResource, rest: string[], namespace?: string): Place {
  const [name, subresource, ...more] = rest
  if (more.length > 0) throw noSuchResource()
  if (subresource !== undefined && !hasSubresource(resource, subresource))
    throw resource.customSchema ? notFound(resource, name ?? '') : noSuchResource()
  return {
    resource,
    ...(namespace !== undefined && { namespace }),
    ...(name !== undefined && name !== '' && { name }),
    ...(subresource !== undefined && { subresource }),
  }
}

function hasSubresource(resource: ApiResource, subresource: string): boolean {
  if (subresource === 'status') return resource.hasStatus
  if (subresource === 'scale') return resource.scale !== undefined
  return subresource === 'finalize' && resource.plural === 'namespaces' && resource.group === ''
}

function verbOf(method: string, place: Place, watches: boolean, isOldWatch: boolean): Verb {
  const { resource, name, namespace, subresource } = place
  const verb = verbFor(method, name !== undefined, watches, isOldWatch)
  const ofAllNamespaces = resource.namespaced && namespace === undefined
  if (ofAllNamespaces && verb === 'create' && resource.customSchema) throw new PageNotFound()
  if (subresource && verb === 'delete' && resource.customSchema) throw cannot('delete', resource)
  const isAllowed =
    verb !== undefined &&
    (subresource ? ['get', 'update', 'patch'].includes(verb) : resource.verbs.includes(verb)) &&
    (!ofAllNamespaces || verb === 'list' || verb === 'watch')
  if (!isAllowed || !verb) throw methodNotAllowed()
  return verb
}

function cannot(verb: string, resource: ApiResource): ApiError {
  const { group, plural } = resource
  const message = `${verb} is not supported on resources of kind "${qualified(plural, group)}"`
  return failure(405, 'MethodNotAllowed', message, { group, kind: plural })
}

function verbFor(method: string, isOne: boolean, watches: boolean, isOldWatch: boolean): Verb | undefined {
  switch (method) {
    case 'GET':
      if (isOne) return isOldWatch ? 'watch' : 'get'
      return watches ? 'watch' : 'list'
    case 'POST':
      return isOne ? undefined : 'create'
    case 'PUT':
      return isOne ? 'update' : undefined
    case 'PATCH':
      return isOne ? 'patch' : undefined
    case 'DELETE':
      return isOne ? 'delete' : 'deletecollection'
    default:
      return undefined
  }
}

/** How the API reads a boolean in a query: anything but these is true. */
export function isTrue(value: string | null): boolean {
  return value !== null && value !== 'false' && value !== '0'
}
