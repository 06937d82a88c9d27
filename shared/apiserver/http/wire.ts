import { apiVersionOf, type KubeObject } from '../../kinds/object.ts'
import type { ApiResource } from '../resources.ts'

/** In which form the client wants its answer. */
export type Form = 'object' | 'metadata' | 'metadataList' | 'table'

export interface Shape {
  form: Form
  /** Of the rows of a table. */
  includeObject: 'Metadata' | 'Object' | 'None'
}

/** The object as this resource's version and group show it. */
export function wireObject(resource: ApiResource, stored: KubeObject): KubeObject {
  const apiVersion = apiVersionOf(resource)
  if (resource.view) return resource.view.toWire(stored)
  return stored.apiVersion === apiVersion ? stored : { ...stored, apiVersion }
}

export function metadataOnly(object: KubeObject): KubeObject {
  return { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata: object.metadata ?? {} }
}
