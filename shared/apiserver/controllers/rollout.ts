import type { KubeObject, StoredObject } from '../../kinds/object.ts'
import { type ServerContext, stampOf } from '../context.ts'
import { updateObject } from '../operations.ts'
import { fieldAt, keyOf } from '../resources.ts'
import { ApiError } from '../status.ts'
import { type Phase, pausedStatus, rolloutStatus, type Template, templateOf } from './rollout-status.ts'

export interface RolloutOptions {
  /** From a change of a Deployment to the readiness of its pods, in ms. Default 0: before anybody's next request. */
  delayMs?: number
  /** Whether the pods of a Deployment get ready at all. Default: always. */
  becomesReady?(deployment: KubeObject): boolean
}

const manager = 'kube-controller-manager'
const storage = 'deployments.apps'
const defaultDeadlineSeconds = 600

/**
 * Stands in for the Deployment controller, the kubelet and all between them: takes note of each new generation at once, and
 * reports its pods as ready `delayMs` later, or its rollout as failed after its `progressDeadlineSeconds`. There are no
 * ReplicaSets and no pods. Gives what ends it.
 */
export function rollOut(ctx: ServerContext, options: RolloutOptions): () => void {
  const stopped = new AbortController()
  /** The template that each Deployment last rolled out, by uid: the ReplicaSet that there would be. */
  const templates = new Map<string, Template>()
  const resume = (deployment: StoredObject) => {
    // In a turn of its own, so that the writer has its answer first, as it would.
    Promise.resolve()
      .then(() => roll(ctx, deployment, { templates, options, signal: stopped.signal }))
      .catch(() => {})
  }
  for (const deployment of ctx.store.list(storage, '')) if (isNew(deployment)) resume(deployment)
  const end = ctx.store.subscribe(storage, ({ type, object }) => {
    if (type === 'DELETED') templates.delete(object.metadata.uid)
    else if (isNew(object)) resume(object)
  })
  return () => {
    end()
    stopped.abort()
  }
}

function isNew(deployment: StoredObject): boolean {
  const observed = Number(fieldAt(deployment, ['status', 'observedGeneration']) ?? 0)
  return observed < (deployment.metadata.generation ?? 0) && !deployment.metadata.deletionTimestamp
}

interface Rollout {
  templates: Map<string, Template>
  options: RolloutOptions
  signal: AbortSignal
}

async function roll(ctx: ServerContext, deployment: StoredObject, rollout: Rollout): Promise<void> {
  const { options, signal, templates } = rollout
  if (signal.aborted) return
  const { uid } = deployment.metadata
  const before = templates.get(uid)
  const template = templateOf(deployment, before)
  const isReady = options.becomesReady?.(deployment) ?? true
  if (fieldAt(deployment, ['spec', 'paused']) === true) {
    const isNewTemplate = before !== undefined && template !== before
    return report(ctx, deployment, (current, now) => pausedStatus(current, { isNewTemplate, isReady }, now))
  }
  templates.set(uid, template)
  const reach = (phase: Phase) =>
    report(ctx, deployment, (current, now) => rolloutStatus(current, template, phase, now))
  reach(template === before ? 'scaling' : 'updating')
  const deadlineSeconds = Number(
    fieldAt(deployment, ['spec', 'progressDeadlineSeconds']) ?? defaultDeadlineSeconds,
  )
  const waitMs = isReady ? (options.delayMs ?? 0) : deadlineSeconds * 1000
  if (waitMs > 0) await ctx.clock.sleep(waitMs, signal)
  reach(isReady ? 'done' : 'failed')
}

/** Writes the status, unless the Deployment has gone on to another generation, whose rollout reports for itself. */
function report(
  ctx: ServerContext,
  deployment: StoredObject,
  change: (current: StoredObject, now: string) => KubeObject,
): void {
  const { namespace, name, uid, generation } = deployment.metadata
  const resource = ctx.registry.findStorage(storage)
  const live = resource && ctx.store.get(storage, keyOf(resource, namespace, name))
  if (!live || live.metadata.uid !== uid || live.metadata.generation !== generation) return
  const now = stampOf(ctx.clock.now())
  try {
    updateObject(ctx, resource, { namespace, name }, (current) => change(current, now), {
      manager,
      subresource: 'status',
    })
  } catch (error) {
    // Removed meanwhile.
    if (!(error instanceof ApiError)) throw error
  }
}
