import { isObject, type KubeObject, type Resource } from '../kinds/object.ts'
import type { Decoder } from './defaults/decode.ts'
import type { KindSchema } from './schema.ts'
import type { FieldReader, SelectableFields } from './selectors.ts'
import type { Cause } from './status.ts'

/** Where a scale subresource finds its numbers, as paths of field names. */
export interface ScalePaths {
  specReplicas: string[]
  statusReplicas: string[]
  /** The label selector as a string; absent for kinds whose selector is an object. */
  selector?: string[] | undefined
}

/** A column of `kubectl get`. A wide one has priority 1. */
export interface Column {
  name: string
  type: string
  format?: string
  description?: string
  priority?: number
  cell(object: KubeObject, now: Date): unknown
}

/** What is particular to a kind when its objects are written. */
export interface Rules {
  /** Whether `metadata.generation` counts the changes of everything but metadata and status. */
  hasGeneration: boolean
  /** Whether a PUT to a name that is not there creates. */
  createsOnUpdate: boolean
  /** Whether a PUT must name the resourceVersion that it is based on. */
  needsVersion: boolean
  /** Whether the API wants `kind` and `apiVersion` in the body (custom resources); else the path stands for them. */
  isTyped: boolean
  /** Why a name is none, in the API's words. */
  nameErrors(name: string): string[]
  /**
   * An object of a body (`json`), or one that a patch or an apply has put together, as the kind reads it: defaulted, and
   * without the fields that it does not know, whose paths are given too. Throws DecodeError for a value of a wrong type.
   */
  decode(object: KubeObject, decoder: Decoder): { object: KubeObject; unknown: string[] }
  /** What the server sets on a new object. */
  prepareCreate(object: KubeObject): KubeObject
  /** The same for an object that takes the place of `live`. */
  prepareUpdate(object: KubeObject, live: KubeObject): KubeObject
  /** What a write of the status subresource keeps from the live object. */
  prepareStatus(object: KubeObject, live: KubeObject): KubeObject
  validate(object: KubeObject, live: KubeObject | undefined): Cause[]
}

/** How another group shows the objects of a collection (core Events are stored as events.k8s.io ones). */
export interface View {
  toWire(object: KubeObject): KubeObject
  fromWire(object: KubeObject): KubeObject
}

/** A resource that is served, with all that the verbs need to know of it. */
export interface ApiResource extends Resource {
  singular: string
  listKind: string
  shortNames: readonly string[]
  categories: readonly string[]
  verbs: readonly string[]
  /** The store's collection. */
  storage: string
  hasStatus: boolean
  scale?: ScalePaths | undefined
  rules: Rules
  /** For apply, patches and managed fields. */
  schema: KindSchema
  fields: SelectableFields
  columns: readonly Column[]
  view?: View
  /** For custom resources: the structural schema. */
  customSchema?: Record<string, unknown> | undefined
  /** Whether the items of its lists carry kind and apiVersion (they do for custom resources alone). */
  itemsAreTyped: boolean
}

export const allVerbs = [
  'create',
  'delete',
  'deletecollection',
  'get',
  'list',
  'patch',
  'update',
  'watch',
] as const

/** The resources that are served now; those of CRDs come and go. */
export interface Registry {
  find(group: string, version: string, plural: string): ApiResource | undefined
  /** By kind, in whatever version is preferred: for owner references. */
  findKind(apiVersion: string, kind: string): ApiResource | undefined
  /** One for each collection. */
  findStorage(storage: string): ApiResource | undefined
  all(): readonly ApiResource[]
  hasGroup(group: string): boolean
  hasGroupVersion(group: string, version: string): boolean
  /** Whether everything in the group comes from CRDs. */
  isCustom(group: string): boolean
  /** Replaces all resources that `owner` (a CRD's name) defined before. */
  define(owner: string, resources: ApiResource[]): void
  undefine(owner: string): void
}

export function createRegistry(builtIn: readonly ApiResource[]): Registry {
  const custom = new Map<string, ApiResource[]>()
  let all: readonly ApiResource[] = builtIn
  let byPath = new Map<string, ApiResource>()
  function index(): void {
    all = [...builtIn, ...[...custom.values()].flat()]
    byPath = new Map(
      all.map((resource) => [pathKey(resource.group, resource.version, resource.plural), resource]),
    )
  }
  index()
  return {
    find: (group, version, plural) => byPath.get(pathKey(group, version, plural)),
    findKind: (apiVersion, kind) => {
      const group = apiVersion.includes('/') ? apiVersion.slice(0, apiVersion.indexOf('/')) : ''
      const version = apiVersion.slice(apiVersion.indexOf('/') + 1)
      const ofKind = all.filter((resource) => resource.group === group && resource.kind === kind)
      return ofKind.find((resource) => resource.version === version) ?? ofKind[0]
    },
    findStorage: (storage) => all.find((resource) => resource.storage === storage && !resource.view),
    all: () => all,
    hasGroup: (group) => all.some((resource) => resource.group === group),
    hasGroupVersion: (group, version) =>
      all.some((resource) => resource.group === group && resource.version === version),
    isCustom: (group) => !builtIn.some((resource) => resource.group === group),
    define(owner, resources) {
      custom.set(owner, resources)
      index()
    },
    undefine(owner) {
      custom.delete(owner)
      index()
    },
  }
}

const pathKey = (group: string, version: string, plural: string) => `${group}/${version}/${plural}`

/** The key of an object in its collection: keys of one namespace stand together. */
export function keyOf(resource: Pick<Resource, 'namespaced'>, namespace: string | undefined, name: string) {
  return resource.namespaced ? `${namespace}/${name}` : name
}

/** Reads a path of field names; undefined where one is absent. */
export function fieldAt(object: unknown, path: readonly string[]): unknown {
  let value = object
  for (const name of path) value = isObject(value) ? value[name] : undefined
  return value
}

/** The object with the value at the path; what stands on the way is copied, not changed. */
export function withFieldAt(object: KubeObject, path: readonly string[], value: unknown): KubeObject {
  const [first, ...rest] = path
  if (first === undefined) return object
  const inner = isObject(object[first]) ? (object[first] as KubeObject) : {}
  return { ...object, [first]: rest.length === 0 ? value : withFieldAt(inner, rest, value) }
}

const textOf = (value: unknown) => (value === undefined || value === null ? '' : String(value))

/** The fields by which a resource can be selected: name and namespace always, and these paths. */
export function selectable(
  options: { namespaced: boolean; namesKnown: boolean },
  paths: Record<string, string[] | FieldReader> = {},
): SelectableFields {
  const readers = new Map<string, FieldReader>([['metadata.name', (object) => textOf(object.metadata?.name)]])
  if (options.namespaced) readers.set('metadata.namespace', (object) => textOf(object.metadata?.namespace))
  for (const [name, path] of Object.entries(paths))
    readers.set(name, typeof path === 'function' ? path : (object) => textOf(fieldAt(object, path)))
  return { readers, namesKnown: options.namesKnown }
}
