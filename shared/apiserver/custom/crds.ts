import type { KubeObject, StoredObject } from '../../kinds/object.ts'
import type { ServerContext } from '../context.ts'
import { stampOf } from '../context.ts'
import { cleanupFinalizer, deleteObject } from '../deletion.ts'
import { updateObject } from '../operations.ts'
import { readJsonPath } from '../printing/json-path.ts'
import { columnsOfCrd } from '../printing/table.ts'
import { type ApiResource, allVerbs, selectable } from '../resources.ts'
import { type CrdSpec, type CrdVersion, specOf } from './crd-rules.ts'
import { schemaFromCrd } from './crd-schema.ts'
import { customRules } from './custom-rules.ts'
import type { Structural } from './structural.ts'

export const crdStorage = 'customresourcedefinitions.apiextensions.k8s.io'
const controllerManager = 'kube-apiserver'

/** The order in which the API lists the verbs of custom resources. */
const customVerbs = ['delete', 'deletecollection', 'get', 'list', 'patch', 'create', 'update', 'watch']

/** Serves what CRDs define as soon as they are stored, and no longer once they are gone. Gives what ends it. */
export function serveCrds(ctx: ServerContext): () => void {
  for (const crd of ctx.store.list(crdStorage, '')) serve(ctx, crd)
  return ctx.store.subscribe(crdStorage, ({ type, object }) => {
    if (type === 'DELETED') return ctx.registry.undefine(object.metadata.name)
    serve(ctx, object)
    if (object.metadata.deletionTimestamp) removeObjects(ctx, object)
    else if (!isEstablished(object)) establish(ctx, object)
  })
}

function serve({ registry }: ServerContext, crd: StoredObject): void {
  const spec = specOf(crd)
  const resources = spec.versions
    .filter((version) => version.served)
    .map((version) => resourceOf(spec, version))
  registry.define(crd.metadata.name, resources)
}

const pathOf = (path: string | undefined) => path?.split('.').filter((part) => part !== '')

function resourceOf(spec: CrdSpec, version: CrdVersion): ApiResource {
  const { names, group } = spec
  const schema = version.schema?.openAPIV3Schema ?? {}
  const hasStatus = version.subresources?.status !== undefined
  const scale = version.subresources?.scale
  const namespaced = spec.scope === 'Namespaced'
  return {
    group,
    version: version.name,
    kind: names.kind,
    plural: names.plural,
    namespaced,
    singular: names.singular ?? names.kind.toLowerCase(),
    listKind: names.listKind ?? `${names.kind}List`,
    shortNames: names.shortNames ?? [],
    categories: names.categories ?? [],
    verbs: customVerbs.filter((verb) => (allVerbs as readonly string[]).includes(verb)),
    storage: `${names.plural}.${group}`,
    hasStatus,
    scale: scale && {
      specReplicas: pathOf(scale.specReplicasPath) ?? [],
      statusReplicas: pathOf(scale.statusReplicasPath) ?? [],
      selector: pathOf(scale.labelSelectorPath) ?? [],
    },
    rules: customRules(schema as Structural, { hasStatus, replicas: pathOf(scale?.specReplicasPath) }),
    schema: schemaFromCrd(schema, { statusSubresource: hasStatus }),
    fields: selectable({ namespaced, namesKnown: false }, selectableFields(version)),
    columns: columnsOfCrd(version.additionalPrinterColumns),
    customSchema: schema,
    itemsAreTyped: true,
  }
}

function selectableFields({ selectableFields: fields = [] }: CrdVersion) {
  return Object.fromEntries(
    fields.map(({ jsonPath }) => {
      const read = readJsonPath(jsonPath)
      return [jsonPath.replace(/^\./, ''), (object: KubeObject) => String(read(object)[0] ?? '')]
    }),
  )
}

/** A CRD that is deleted takes its objects with it; it goes when the last of them has gone. */
function removeObjects(ctx: ServerContext, crd: StoredObject): void {
  const spec = specOf(crd)
  const storage = `${spec.names.plural}.${spec.group}`
  const custom = ctx.registry.findStorage(storage)
  const own = ctx.registry.findStorage(crdStorage)
  if (!own) return
  const finish = () =>
    updateObject(
      ctx,
      own,
      { name: crd.metadata.name },
      (live) => ({
        ...live,
        metadata: {
          ...live.metadata,
          finalizers: (live.metadata.finalizers ?? []).filter((name) => name !== cleanupFinalizer),
        },
      }),
      { manager: controllerManager },
    )
  if (!custom || !crd.metadata.finalizers?.includes(cleanupFinalizer)) return
  for (const { metadata } of ctx.store.list(storage, '')) deleteObject(ctx, custom, metadata, {})
  if (ctx.store.list(storage, '').length === 0) return void finish()
  const end = ctx.store.subscribe(storage, () => {
    if (ctx.store.list(storage, '').length > 0) return
    end()
    finish()
  })
}

function isEstablished(crd: KubeObject): boolean {
  const { conditions } = (crd.status ?? {}) as { conditions?: { type: string }[] | null }
  return conditions?.some(({ type }) => type === 'Established') ?? false
}

/** Two names can hardly clash here, so the names are accepted and the CRD is established in one step. */
function establish(ctx: ServerContext, crd: StoredObject): void {
  const lastTransitionTime = stampOf(ctx.clock.now())
  const conditions = [
    {
      type: 'NamesAccepted',
      status: 'True',
      lastTransitionTime,
      reason: 'NoConflicts',
      message: 'no conflicts found',
    },
    {
      type: 'Established',
      status: 'True',
      lastTransitionTime,
      reason: 'InitialNamesAccepted',
      message: 'the initial names have been accepted',
    },
  ]
  const resource = ctx.registry.findStorage(crdStorage)
  if (!resource) return
  updateObject(
    ctx,
    resource,
    { name: crd.metadata.name },
    (live) => ({
      ...live,
      status: { ...(live.status as object), conditions, acceptedNames: specOf(live).names },
    }),
    { manager: controllerManager, subresource: 'status' },
  )
}
