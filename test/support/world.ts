import { type Clock, systemClock } from '../../shared/clock.ts'
import type { MutantKind, MutantStatus, VariantStatus } from '../../shared/kinds/mutants.ts'
import { deployments, type KubeObject, type StoredObject } from '../../shared/kinds/object.ts'
import { type KubeClient, kubeClient, type Transport } from '../../shared/kube/client.ts'
import { createLog } from '../../shared/log.ts'
import type { ObjectEvent } from '../../shared/reconcile/problems.ts'
import { type ReconcileContext, type ReconcileResult, reconcile } from '../../shared/reconcile/reconcile.ts'
import type { MutantBuilder } from './builders.ts'
import { installCrds } from './crds.ts'

/** An API to test on: the real control plane, or the embedded one. */
export interface TestApi {
  transport(): Transport
  newNamespace(): Promise<string>
}

/** A request that the reconciler made. */
export interface SeenRequest {
  method: string
  /** With the query. */
  path: string
  code: number
}

/**
 * A namespace of its own on an API, with all that a reconcile needs: server, client and context in one call. What the
 * reconciler sends is counted; what the test does by `admin` is not.
 */
export interface World {
  namespace: string
  /** The test's own hand. */
  admin: KubeClient
  context: ReconcileContext
  /** What the reconciler has sent since the last {@link World.forget}. */
  requests: SeenRequest[]
  /** The Kubernetes Events that were recorded. */
  events: ObjectEvent[]
  forget(): void
  create(object: MutantBuilder): Promise<StoredObject>
  /** Replaces the spec (and the annotations) by another one's. */
  change(object: MutantBuilder): Promise<StoredObject>
  reconcile(
    object: Pick<MutantBuilder, 'kind' | 'name'>,
    context?: Partial<ReconcileContext>,
  ): Promise<ReconcileResult>
  get(object: Pick<MutantBuilder, 'kind' | 'name'>): Promise<StoredObject>
  status(object: Pick<MutantBuilder, 'kind' | 'name'>): Promise<MutantStatus>
  variant(object: Pick<MutantBuilder, 'kind' | 'name'>, label: string): Promise<VariantStatus>
  child(name: string): Promise<TestChild | undefined>
  /** The names of the Deployments that are there, in order. */
  children(): Promise<string[]>
  /** Acts as the Deployment controller: says that all wanted pods run. */
  makeReady(name: string): Promise<void>
  setChildStatus(name: string, status: Record<string, unknown>): Promise<void>
  /** Changes a Deployment as a person with `kubectl edit` would. */
  edit(name: string, change: (child: TestChild) => void, manager?: string): Promise<TestChild>
}

/** A Deployment as tests look at it. */
export interface TestChild extends StoredObject {
  spec: {
    replicas: number
    selector: { matchLabels: Record<string, string> }
    template: {
      metadata: { labels: Record<string, string> }
      spec: { containers: { name: string; image: string; env?: { name: string; value?: string }[] }[] }
    }
    [field: string]: unknown
  }
}

/** Methods that change something. */
export const isWrite = ({ method }: SeenRequest) => method !== 'GET'

/** Which APIs have our CRDs already. */
const prepared = new WeakMap<TestApi, Promise<void>>()

export async function world(api: TestApi, options: { clock?: Clock } = {}): Promise<World> {
  const clock = options.clock ?? systemClock
  const admin = kubeClient({ transport: api.transport(), clock: systemClock, userAgent: 'test' })
  const ready = prepared.get(api) ?? installCrds(admin)
  prepared.set(api, ready)
  await ready
  const namespace = await api.newNamespace()
  const requests: SeenRequest[] = []
  const events: ObjectEvent[] = []
  const client = kubeClient({
    transport: counted(api.transport(), requests),
    clock,
    userAgent: 'mutantops-reconcile',
  })
  const context: ReconcileContext = {
    client,
    clock,
    log: createLog({ name: 'test', level: 'silent' }),
    adoption: 'label',
    signal: new AbortController().signal,
    record: async (event) => {
      events.push(event)
    },
  }
  const child = (name: string) => admin.get<TestChild>(deployments, { namespace, name })
  const existing = async (name: string): Promise<TestChild> => {
    const found = await child(name)
    if (!found) throw new Error(`There is no Deployment ${name}`)
    return found
  }
  const get: World['get'] = async ({ kind, name }) => {
    const found = await admin.get(kind, { namespace, name })
    if (!found) throw new Error(`There is no ${kind.kind} ${name}`)
    return found
  }
  const status: World['status'] = async (object) => (await get(object)).status as MutantStatus
  const setChildStatus: World['setChildStatus'] = async (name, fields) => {
    const live = await existing(name)
    await admin.replace(deployments, { ...live, status: fields }, { subresource: 'status' })
  }
  return {
    namespace,
    admin,
    context,
    requests,
    events,
    forget: () => {
      requests.length = 0
      events.length = 0
    },
    create: (object) => admin.create(object.kind, object.in(namespace).object()),
    change: async (object) => {
      const live = await get(object)
      const { spec, metadata } = object.object()
      const next: KubeObject = {
        ...live,
        spec,
        metadata: { ...live.metadata, annotations: metadata?.annotations ?? {} },
      }
      return admin.replace(object.kind, next)
    },
    reconcile: ({ kind, name }, changed) => reconcile(kind, { namespace, name }, { ...context, ...changed }),
    get,
    status,
    variant: async (object, label) => {
      const found = (await status(object)).variants?.find((variant) => variant.label === label)
      if (!found) throw new Error(`No variant ${label} in the status of ${object.name}`)
      return found
    },
    child,
    children: async () => {
      const { items } = await admin.list(deployments, { namespace })
      return items.map(({ metadata }) => metadata.name).sort()
    },
    makeReady: async (name) => {
      const live = await existing(name)
      const count = live.spec.replicas
      await setChildStatus(name, {
        observedGeneration: live.metadata.generation,
        replicas: count,
        updatedReplicas: count,
        readyReplicas: count,
        availableReplicas: count,
      })
    },
    setChildStatus,
    edit: async (name, change, manager = 'kubectl-edit') => {
      const live = await existing(name)
      change(live)
      return admin.replace(deployments, live, { fieldManager: manager })
    },
  }
}

function counted(transport: Transport, requests: SeenRequest[]): Transport {
  return {
    baseUrl: transport.baseUrl,
    fetch: async (url, init) => {
      const request = { method: init.method ?? 'GET', path: url.slice(transport.baseUrl.length), code: 0 }
      requests.push(request)
      const response = await transport.fetch(url, init)
      request.code = response.status
      return response
    },
  }
}

/** The embedded kinds of request in short, for counting: `GET`, `LIST`, `META`, `APPLY`, `POST`, `PUT`, … */
export function kindsOf(kind: MutantKind, requests: readonly SeenRequest[]): string[] {
  return requests.map(({ method, path }) => {
    if (method === 'PATCH')
      return path.includes('fieldManager') && !path.includes('force') ? 'PATCH' : 'APPLY'
    if (method !== 'GET') return method
    if (path.includes('labelSelector')) return 'LIST'
    return path.includes(`/${kind.plural}/`) ? 'GET' : 'LOOK'
  })
}
