import { apiVersionOf, type KubeObject, type StoredObject } from '../../kinds/object.ts'
import { type Table, tableOf } from '../printing/table.ts'
import type { ApiResource } from '../resources.ts'
import { badRequest, failure } from '../status.ts'
import { type Form, metadataOnly, type Shape, wireObject } from './wire.ts'

const representations = ['application/json', 'application/yaml', 'application/vnd.kubernetes.protobuf']

/**
 * What the Accept header asks for; the first of its entries that is served counts. Throws 406 when none is. YAML and protobuf
 * are not served.
 */
export function shapeOf(request: Request, url: URL): Shape {
  const includeObject = includeObjectOf(url.searchParams.get('includeObject'))
  const accepted = (request.headers.get('accept') || '*/*').split(',').map((entry) => entry.trim())
  let isNearMiss = false
  for (const entry of accepted) {
    const [type = '', ...parameters] = entry.split(';').map((part) => part.trim())
    if (type !== 'application/json' && type !== '*/*' && type !== 'application/*') continue
    const as = parameters.find((part) => part.startsWith('as='))?.slice(3)
    const form = as === undefined ? 'object' : forms[as]
    if (form) return { form, includeObject }
    isNearMiss = true
  }
  throw isNearMiss
    ? failure(
        406,
        'NotAcceptable',
        `only the following media types are accepted: ${representations.join(', ')}`,
      )
    : failure(
        406,
        'NotAcceptable',
        `406: Not Acceptable\n\nAvailable representations: ${representations.join(', ')}`,
        {},
      )
}

const forms: Record<string, Form> = {
  PartialObjectMetadata: 'metadata',
  PartialObjectMetadataList: 'metadataList',
  Table: 'table',
}

function includeObjectOf(value: string | null): Shape['includeObject'] {
  if (value === null || value === '') return 'Metadata'
  if (value === 'Metadata' || value === 'Object' || value === 'None') return value
  throw badRequest(
    `Unable to convert to Table as requested: includeObject: Invalid value: ${JSON.stringify(value)}: must be 'Metadata', 'Object', 'None', or empty`,
  )
}

/** One object in the form asked for. */
export function shapedObject(
  resource: ApiResource,
  stored: StoredObject,
  shape: Shape,
  now: Date,
): KubeObject | Table {
  switch (shape.form) {
    case 'object':
      return wireObject(resource, stored)
    case 'metadata':
      return metadataOnly(stored)
    case 'table':
      return tableOf(resource, [stored], { resourceVersion: stored.metadata.resourceVersion }, shape, now)
    case 'metadataList':
      throw failure(500, '', 'content is not a list')
  }
}

export interface ListMeta {
  resourceVersion: string
  continue?: string
  remainingItemCount?: number
}

/** A list in the form asked for. */
export function shapedList(
  resource: ApiResource,
  items: StoredObject[],
  metadata: ListMeta,
  shape: Shape,
  now: Date,
): KubeObject | Table {
  switch (shape.form) {
    case 'object':
      return {
        kind: resource.listKind,
        apiVersion: apiVersionOf(resource),
        // Lists of custom resources say that there is no further page.
        metadata: { ...(resource.itemsAreTyped && { continue: '' }), ...metadata },
        items: items.map((item) => listItem(resource, item)),
      }
    case 'metadataList':
      return {
        kind: 'PartialObjectMetadataList',
        apiVersion: 'meta.k8s.io/v1',
        metadata: metadata as KubeObject['metadata'] & object,
        items: items.map(metadataOnly),
      }
    case 'table':
      return tableOf(resource, items, metadata, shape, now)
    case 'metadata':
      throw failure(
        406,
        'NotAcceptable',
        `you requested PartialObjectMetadata, but the requested object is a list (*${listType(resource)})`,
      )
  }
}

function listType(resource: ApiResource): string {
  if (resource.itemsAreTyped) return 'unstructured.UnstructuredList'
  const group = resource.group === '' ? 'core' : resource.group.split('.')[0]
  return `${group}.${resource.listKind}`
}

function listItem(resource: ApiResource, stored: StoredObject): KubeObject {
  const object = wireObject(resource, stored)
  if (resource.itemsAreTyped) return object
  const { kind: _kind, apiVersion: _apiVersion, ...rest } = object
  return rest
}
