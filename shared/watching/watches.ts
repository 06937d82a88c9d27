import type { Clock } from '../clock.ts'
import { type MutantKind, mutantKinds, ownerLabel } from '../kinds/mutants.ts'
import { deployments } from '../kinds/object.ts'
import type { KubeClient } from '../kube/client.ts'
import {
  type Change,
  type Informer,
  type InformerCount,
  type InformerLimits,
  informer,
  type Kept,
} from '../kube/informer.ts'
import type { Lane } from '../kube/workqueue.ts'
import type { Logger } from '../log.ts'
import { type ChildFacts, childFacts, type OwnerFacts, ownerFacts } from './facts.ts'
import type { ObjectHint } from './hint.ts'
import { ownersToldBy, ownerVerb } from './worth.ts'

export interface WatchesOptions {
  client: KubeClient
  clock: Clock
  log: Logger
  /** Undefined means all of them, by one watch per kind. */
  namespaces: string[] | undefined
  onCount?: ((kind: string, what: InformerCount) => void) | undefined
  limits?: Partial<InformerLimits> | undefined
  onHint(hint: ObjectHint, lane: Lane): void
}

export interface Watch {
  kind: string
  namespace: string | undefined
  informer: Pick<Informer<Kept>, 'run' | 'state'>
  /** Resolves when the first list has been read, or was denied. */
  settled: Promise<void>
}

/**
 * The watches of the operator: both kinds, and the Deployments that carry the owner label, in all namespaces or in each of
 * those named. What the first list finds is told only where it had been denied before (for the rest a resync is asked).
 */
export function watchesOf(options: WatchesOptions): Watch[] {
  return (options.namespaces ?? [undefined]).flatMap((namespace) => {
    const owners = mutantKinds.map((kind) => ownerWatch(kind, namespace, options))
    return [...owners, childWatch(namespace, owners, options)]
  })
}

type OwnerWatch = Watch & { informer: Informer<OwnerFacts> }

function ownerWatch(kind: MutantKind, namespace: string | undefined, options: WatchesOptions): OwnerWatch {
  const denial = Promise.withResolvers<void>()
  let wasDenied = false
  const one = informer<OwnerFacts>({
    ...options,
    resource: kind,
    namespace,
    keep: ownerFacts,
    onCount: (what) => {
      options.onCount?.(kind.kind, what)
      if (what !== 'denied') return
      wasDenied ||= !one.state().isSynced
      denial.resolve()
    },
    onChange: (change) => {
      const verb = ownerVerb(change)
      const { before, after } = change
      const known = after ?? before
      if (!verb || !known || (change.how === 'initial' && !wasDenied)) return
      const owner = { kind: kind.kind, namespace: change.namespace ?? '', name: change.name, uid: known.uid }
      options.onHint(
        { verb, owner, changed: changedBy(change, known), time: options.clock.now() },
        laneOf(change),
      )
    },
  })
  return { kind: kind.kind, namespace, informer: one, settled: Promise.race([one.synced, denial.promise]) }
}

function childWatch(namespace: string | undefined, owners: OwnerWatch[], options: WatchesOptions): Watch {
  const denial = Promise.withResolvers<void>()
  const { kind } = deployments
  const one = informer<ChildFacts>({
    ...options,
    resource: deployments,
    namespace,
    labelSelector: ownerLabel,
    keep: childFacts,
    onCount: (what) => {
      options.onCount?.(kind, what)
      if (what === 'denied') denial.resolve()
    },
    onChange: (change) => {
      const known = change.after ?? change.before
      if (change.how === 'initial' || !known) return
      for (const told of ownersToldBy(change)) {
        const owner = livingOwner(told, change.namespace, owners)
        const changed = changedBy(change, known)
        if (owner)
          options.onHint({ verb: 'applied', owner, changed, time: options.clock.now() }, laneOf(change))
      }
    },
  })
  return { kind, namespace, informer: one, settled: Promise.race([one.synced, denial.promise]) }
}

/**
 * The object that has the name that a child's controller reference gives, whatever its uid: when an object was made anew,
 * it is the new one that waits for the end of the old one's children. One that is not known is gone, or will be told of
 * by its own watch.
 */
function livingOwner(told: string, namespace = '', owners: OwnerWatch[]): ObjectHint['owner'] | undefined {
  const [kind = '', name = ''] = told.split('/')
  const facts = owners.find((watch) => watch.kind === kind)?.informer.get({ namespace, name })
  return facts && { kind, namespace, name, uid: facts.uid }
}

/** What a list lacks has no version of its own; the mark keeps the event from being taken for an earlier one. */
function changedBy(change: Change<Kept>, known: Kept): ObjectHint['changed'] {
  const { uid } = known
  if (change.after) return { uid, resourceVersion: change.after.resourceVersion }
  return { uid, resourceVersion: change.object?.metadata.resourceVersion ?? `${known.resourceVersion}-gone` }
}

function laneOf({ how }: Change<Kept>): Lane {
  return how === 'watch' ? 'fresh' : 'start'
}
