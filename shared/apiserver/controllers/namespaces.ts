import type { StoredObject } from '../../kinds/object.ts'
import type { ServerContext } from '../context.ts'
import { deleteObject } from '../deletion.ts'
import { updateObject } from '../operations.ts'
import { ApiError } from '../status.ts'
import { workFor } from './work.ts'

const manager = 'kube-controller-manager'

/**
 * Empties a namespace that is being deleted, waits for what has finalizers, then lets the namespace go. Gives what ends it.
 */
export function emptyNamespaces(ctx: ServerContext, options: { delayMs: number }): () => void {
  const work = workFor(ctx.clock, { delayMs: options.delayMs, act: (name) => empty(ctx, name) })
  for (const namespace of ctx.store.list('namespaces', ''))
    if (isTerminating(namespace)) work.add(namespace.metadata.name)
  const end = ctx.store.subscribe('*', ({ type, storage, object }) => {
    if (storage === 'namespaces' && type !== 'DELETED' && object.metadata.deletionTimestamp)
      work.add(object.metadata.name)
    const { namespace } = object.metadata
    if (type === 'DELETED' && namespace && isTerminating(ctx.store.get('namespaces', namespace)))
      work.add(namespace)
  })
  return () => {
    end()
    work.stop()
  }
}

const isTerminating = (namespace: StoredObject | undefined) =>
  namespace?.metadata.deletionTimestamp !== undefined

function empty(ctx: ServerContext, name: string): void {
  if (!isTerminating(ctx.store.get('namespaces', name))) return
  let left = 0
  for (const storage of ctx.store.storages()) {
    const resource = ctx.registry.findStorage(storage)
    if (!resource?.namespaced) continue
    for (const { metadata } of ctx.store.list(storage, `${name}/`)) {
      try {
        if (!metadata.deletionTimestamp) deleteObject(ctx, resource, metadata, { propagation: 'Background' })
      } catch (error) {
        if (!(error instanceof ApiError)) throw error
      }
    }
    left += ctx.store.list(storage, `${name}/`).length
  }
  const resource = ctx.registry.findStorage('namespaces')
  if (left > 0 || !resource) return
  updateObject(ctx, resource, { name }, (live) => ({ ...live, spec: { finalizers: [] } }), {
    manager,
    subresource: 'finalize',
  })
}
