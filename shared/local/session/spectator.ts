import type { Clock } from '../../clock.ts'
import { type MutantKind, type MutantStatus, mutantKinds, ownerLabel } from '../../kinds/mutants.ts'
import { controllerOf, deployments, isObject, type KubeObject } from '../../kinds/object.ts'
import type { KubeClient } from '../../kube/client.ts'
import { informer } from '../../kube/informer.ts'
import type { Logger } from '../../log.ts'

/** What can be seen of one of our objects. */
export interface MutantSight {
  uid: string
  resourceVersion: string
  namespace: string | undefined
  name: string
  kind: MutantKind['kind']
  generation: number
  summary: string | undefined
  message: string | undefined
  /** The condition Ready is true, for the newest generation. */
  isReady: boolean
  isDeleting: boolean
}

/** What can be seen of a child Deployment. */
export interface ChildSight {
  uid: string
  resourceVersion: string
  namespace: string | undefined
  name: string
  /** `Mutation storefront`. */
  owner: string
  replicas: number
  ready: number
}

/** A change. `isNew` is false for what was there at the start. */
export type Sight =
  | { of: 'object'; isNew: boolean; before?: MutantSight | undefined; after?: MutantSight | undefined }
  | { of: 'child'; isNew: boolean; before?: ChildSight | undefined; after?: ChildSight | undefined }

export interface SpectatorOptions {
  client: KubeClient
  clock: Clock
  log: Logger
  onSight(sight: Sight): void
}

export interface Spectator {
  /** Resolves when everything there was at the start has been seen. */
  synced: Promise<void>
  /** Our objects, as last seen. */
  objects(): MutantSight[]
  stop(): Promise<void>
}

/** Watches the objects and their children only to tell the user what happens; decides nothing. */
export function spectator(options: SpectatorOptions): Spectator {
  const stopping = new AbortController()
  const { client, clock, log, onSight } = options
  const common = { client, clock, log, wholeObjects: true }
  const objects = mutantKinds.map((kind) =>
    informer<MutantSight>({
      ...common,
      resource: kind,
      keep: (object) => mutantSight(kind, object),
      onChange: ({ how, before, after }) =>
        onSight({ of: 'object', isNew: how !== 'initial', before, after }),
    }),
  )
  const children = informer<ChildSight>({
    ...common,
    resource: deployments,
    labelSelector: ownerLabel,
    keep: childSight,
    onChange: ({ how, before, after }) => onSight({ of: 'child', isNew: how !== 'initial', before, after }),
  })
  const all = [...objects, children]
  const loops = all.map((one) => one.run(stopping.signal).catch(() => {}))
  return {
    synced: Promise.all(all.map((one) => one.synced)).then(() => {}),
    objects: () => objects.flatMap((one) => [...one.list()]),
    async stop() {
      stopping.abort(new Error('The spectator stops'))
      await Promise.all(loops)
    },
  }
}

function mutantSight(kind: MutantKind, object: KubeObject): MutantSight {
  const status = (object.status ?? {}) as MutantStatus
  const generation = object.metadata?.generation ?? 0
  const ready = status.conditions?.find(({ type }) => type === 'Ready')
  return {
    ...identityOf(object),
    kind: kind.kind,
    generation,
    summary: status.summary,
    message: status.message,
    isReady: ready?.status === 'True' && ready.observedGeneration === generation,
    isDeleting: object.metadata?.deletionTimestamp !== undefined,
  }
}

function childSight(object: KubeObject): ChildSight {
  const owner = controllerOf(object)
  return {
    ...identityOf(object),
    owner: owner ? `${owner.kind} ${owner.name}` : 'nobody',
    replicas: numberIn(object.spec, 'replicas'),
    ready: numberIn(object.status, 'readyReplicas'),
  }
}

function identityOf({ metadata }: KubeObject) {
  return {
    uid: metadata?.uid ?? '',
    resourceVersion: metadata?.resourceVersion ?? '',
    namespace: metadata?.namespace,
    name: metadata?.name ?? '',
  }
}

function numberIn(value: unknown, field: string): number {
  return isObject(value) && typeof value[field] === 'number' ? value[field] : 0
}
