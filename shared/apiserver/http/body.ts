import { parse as parseYaml } from 'yaml'
import {
  apiVersionOf,
  configMaps,
  deployments,
  events,
  isObject,
  type KubeObject,
  leases,
  namespaces,
  secrets,
} from '../../kinds/object.ts'
import type { ApiResource } from '../resources.ts'
import { type SchemaNode, schemaFor } from '../schema.ts'
import { badRequest, cause, failure, invalid, unsupportedMediaType } from '../status.ts'
import { fromProtobuf, UnreadableProtobuf } from './protobuf.ts'

/** What a JSON request body of the API may be at most, in bytes. */
const bodyLengthMax = 3 * 1024 * 1024

/** The media type of a request, without parameters; `application/json` when none is given. */
export function mediaTypeOf(request: Request): string {
  const header = request.headers.get('content-type') ?? ''
  return header.split(';')[0]?.trim().toLowerCase() || 'application/json'
}

/** Reads a body to its end. Throws 413 for one that is too long. */
async function readBytes(request: Request): Promise<Uint8Array> {
  const tooLong = () =>
    failure(413, 'RequestEntityTooLarge', `Request entity too large: limit is ${bodyLengthMax}`)
  if (Number(request.headers.get('content-length') ?? 0) > bodyLengthMax) throw tooLong()
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of request.body ?? []) {
    length += chunk.length
    if (length > bodyLengthMax) throw tooLong()
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

/** As {@link readBytes}, for a body of text. */
export async function readText(request: Request): Promise<string> {
  return new TextDecoder().decode(await readBytes(request))
}

const protobuf = 'application/vnd.kubernetes.protobuf'
const objectTypes = ['application/json', 'application/yaml', protobuf]

/** The object in the body of a POST or PUT. Throws 400 and 415 in the API's words. */
export async function readObject(request: Request, resource: ApiResource): Promise<KubeObject> {
  const type = mediaTypeOf(request)
  const root = schemaFor(resource)?.root
  if (type === protobuf && root?.numbers) {
    const body = await readBytes(request)
    return ofKind(messageIn(body, root, resource), '', resource)
  }
  if (type !== 'application/json' && type !== 'application/yaml') throw unsupportedMediaType(objectTypes)
  const text = await readText(request)
  const object = type === 'application/yaml' ? fromYaml(text, resource) : fromJson(text, resource)
  return ofKind(object, text, resource)
}

/** Kind and version are those of the path where none is given. */
function messageIn(body: Uint8Array, root: SchemaNode, resource: ApiResource): Record<string, unknown> {
  try {
    const object = fromProtobuf(body, root)
    return {
      ...object,
      kind: object.kind || resource.kind,
      apiVersion: object.apiVersion || apiVersionOf(resource),
    }
  } catch (error) {
    if (!(error instanceof UnreadableProtobuf)) throw error
    if (error.where === 'envelope') throw unrecognized(resource, error.message, body)
    const { kind, version } = resource
    throw badRequest(`${kind} in version "${version}" cannot be handled as a ${kind}: ${error.message}`)
  }
}

function unrecognized(resource: ApiResource, why: string, body: string | Uint8Array) {
  const bytes = Buffer.from(body as Uint8Array)
  const text = bytes.toString()
  const isObjectLike = text.trimStart().startsWith('{')
  const shown = text.trim() === '' ? '<empty>' : isObjectLike ? text : bytes.toString('hex')
  return badRequest(
    `the object provided is unrecognized (must be of type ${resource.kind}): ${why} (${shown})`,
  )
}

function fromJson(text: string, resource: ApiResource): unknown {
  try {
    return JSON.parse(text)
  } catch {
    const why = /^\s*[[{"]?[^\]}]*$/.test(text) ? 'unexpected end of JSON input' : 'invalid character'
    throw unrecognized(resource, `couldn't get version/kind; json parse error: ${why}`, text)
  }
}

function fromYaml(text: string, resource: ApiResource): unknown {
  try {
    return parseYaml(text)
  } catch (error) {
    throw unrecognized(
      resource,
      `error converting YAML to JSON: ${(error as Error).message.split('\n')[0]}`,
      text,
    )
  }
}

/** Fills kind and apiVersion in from the path for built-in kinds, and refuses others than the path's. */
function ofKind(object: unknown, text: string, resource: ApiResource): KubeObject {
  const apiVersion = apiVersionOf(resource)
  const { kind, version } = resource
  if (!isObject(object)) {
    const what = Array.isArray(object) ? 'array' : typeof object
    const why = `couldn't get version/kind; json parse error: json: cannot unmarshal ${what} into Go value of type struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }`
    throw unrecognized(resource, why, text)
  }
  const given = { kind: object.kind || undefined, apiVersion: object.apiVersion || undefined }
  if (!resource.rules.isTyped) {
    if ((given.kind ?? kind) !== kind || (given.apiVersion ?? apiVersion) !== apiVersion)
      throw wrongKind(object, resource)
    return { ...object, kind, apiVersion }
  }
  if (given.kind === undefined) throw unrecognized(resource, `Object 'Kind' is missing in '${text}'`, text)
  if (given.apiVersion !== apiVersion)
    throw badRequest(
      `the API version in the data (${given.apiVersion ?? ''}) does not match the expected API version (${apiVersion})`,
    )
  if (given.kind !== kind) {
    const named = { ...resource, kind: String(given.kind) }
    const name = isObject(object.metadata) ? String(object.metadata.name ?? '') : ''
    throw invalid(named, name, [cause.invalid('kind', given.kind, `must be ${kind}`)])
  }
  return { ...object, kind, apiVersion: `${resource.group}/${version}` }
}

const builtIn = [namespaces, configMaps, secrets, { ...events, group: '' }, events, deployments, leases]

/** What the real server calls its own form of a group. */
const internalGroup = (group: string) => (group === '' ? 'core' : group.split('.')[0])

function wrongKind(object: Record<string, unknown>, resource: ApiResource) {
  const apiVersion = String(object.apiVersion || apiVersionOf(resource))
  const version = apiVersion.slice(apiVersion.indexOf('/') + 1)
  const kind = String(object.kind || resource.kind)
  const isKnown = builtIn.some((known) => known.kind === kind && apiVersionOf(known) === apiVersion)
  const why = isKnown
    ? `converting (${version}.${kind}) to (${internalGroup(resource.group)}.${resource.kind}): unknown conversion`
    : `no kind "${kind}" is registered for version "${apiVersion}" in scheme "pkg/runtime/scheme.go:111"`
  return badRequest(`${kind} in version "${version}" cannot be handled as a ${resource.kind}: ${why}`)
}
