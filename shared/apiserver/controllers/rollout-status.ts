import { createHash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { isObject, type KubeObject, type StoredObject } from '../../kinds/object.ts'
import { fieldAt } from '../resources.ts'

/** A pod template that was rolled out: what a ReplicaSet stands for. */
export interface Template {
  spec: unknown
  /** Counts the templates of a Deployment. */
  revision: number
  /** What the ReplicaSet would be called. */
  name: string
}

/** The one that a Deployment wants: `before` itself when nothing about it has changed. */
export function templateOf(deployment: StoredObject, before: Template | undefined): Template {
  const spec = fieldAt(deployment, ['spec', 'template'])
  if (before && isDeepStrictEqual(before.spec, spec)) return before
  const annotated = Number(deployment.metadata.annotations?.[revisionAnnotation] ?? 0)
  const hash = createHash('sha256').update(JSON.stringify(spec)).digest('hex').slice(0, 10)
  const revision = before ? before.revision + 1 : annotated + 1
  return { spec, revision, name: `${deployment.metadata.name}-${hash}` }
}

const revisionAnnotation = 'deployment.kubernetes.io/revision'

/** `updating`: a new template begins; `scaling`: only the number of pods changes; then `done` or `failed`. */
export type Phase = 'updating' | 'scaling' | 'done' | 'failed'

interface Condition {
  type: string
  status: string
  lastUpdateTime: string
  lastTransitionTime: string
  reason: string
  message: string
}

/** The Deployment with the status and the revision that its controller gives it. */
export function rolloutStatus(
  deployment: StoredObject,
  template: Template,
  phase: Phase,
  now: string,
): KubeObject {
  const wanted = Number(fieldAt(deployment, ['spec', 'replicas']) ?? 1)
  const annotations = { ...deployment.metadata.annotations, [revisionAnnotation]: String(template.revision) }
  const counts = countsOf(deployment, wanted, phase)
  const conditions = conditionsOf(deployment, template, phase, now, isAvailable(deployment, wanted, counts))
  const status = {
    observedGeneration: deployment.metadata.generation,
    ...withoutZeros(counts),
    terminatingReplicas: 0,
    conditions,
  }
  return { ...deployment, metadata: { ...deployment.metadata, annotations }, status }
}

/**
 * A paused Deployment is taken note of, and its rollout stands still: pods of a template that changed meanwhile
 * (`isNewTemplate`) there are none. Its number of pods still follows, if it ever had any; they get ready at once or,
 * unless `isReady`, not at all.
 */
export function pausedStatus(
  deployment: StoredObject,
  pods: { isNewTemplate: boolean; isReady: boolean },
  now: string,
): KubeObject {
  const before: Record<string, unknown> = isObject(deployment.status) ? deployment.status : {}
  const { replicas, updatedReplicas, readyReplicas, availableReplicas, unavailableReplicas, ...rest } = before
  const hasRun = deployment.metadata.annotations?.[revisionAnnotation] !== undefined
  const status = hasRun ? { ...rest, ...withoutZeros(pausedCounts(deployment, pods)) } : before
  const conditions = (Array.isArray(status.conditions) ? status.conditions : []) as Condition[]
  const others = conditions.filter(({ type }) => type !== 'Progressing')
  const paused: Condition = {
    type: 'Progressing',
    status: 'Unknown',
    lastUpdateTime: now,
    lastTransitionTime: now,
    reason: 'DeploymentPaused',
    message: 'Deployment is paused',
  }
  const observedGeneration = deployment.metadata.generation
  return { ...deployment, status: { ...status, observedGeneration, conditions: [...others, paused] } }
}

function pausedCounts(
  deployment: StoredObject,
  { isNewTemplate, isReady }: { isNewTemplate: boolean; isReady: boolean },
): Counts {
  const wanted = Number(fieldAt(deployment, ['spec', 'replicas']) ?? 1)
  const before = Number(fieldAt(deployment, ['status', 'availableReplicas']) ?? 0)
  const available = isReady ? wanted : Math.min(before, wanted)
  return {
    replicas: wanted,
    updatedReplicas: isNewTemplate ? 0 : wanted,
    readyReplicas: available,
    availableReplicas: available,
    unavailableReplicas: wanted - available,
  }
}

interface Counts {
  replicas: number
  updatedReplicas: number
  readyReplicas: number
  availableReplicas: number
  unavailableReplicas: number
}

/** What the pods would be: the old ones stay until the new ones are ready. */
function countsOf(deployment: StoredObject, wanted: number, phase: Phase): Counts {
  const before = (name: keyof Counts) => Number(fieldAt(deployment, ['status', name]) ?? 0)
  if (phase === 'done')
    return {
      replicas: wanted,
      updatedReplicas: wanted,
      readyReplicas: wanted,
      availableReplicas: wanted,
      unavailableReplicas: 0,
    }
  const available = Math.min(before('availableReplicas'), wanted)
  const isFirst = before('replicas') === 0
  const surge = phase === 'updating' && !isFirst && wanted > 0 ? 1 : 0
  const updated = { updating: isFirst ? wanted : surge, scaling: wanted, failed: before('updatedReplicas') }
  const replicas = phase === 'failed' ? before('replicas') : wanted + surge
  return {
    replicas,
    updatedReplicas: updated[phase],
    readyReplicas: available,
    availableReplicas: available,
    unavailableReplicas: Math.max(0, replicas - available),
  }
}

function withoutZeros(counts: Counts): Partial<Counts> {
  return Object.fromEntries(Object.entries(counts).filter(([, count]) => count !== 0))
}

/** At least all wanted but `maxUnavailable` (a number, or a share rounded down). */
function isAvailable(deployment: StoredObject, wanted: number, { availableReplicas }: Counts): boolean {
  const limit = fieldAt(deployment, ['spec', 'strategy', 'rollingUpdate', 'maxUnavailable']) ?? 0
  const isShare = typeof limit === 'string' && limit.endsWith('%')
  const missing = isShare ? Math.floor((wanted * Number(limit.slice(0, -1))) / 100) : Number(limit)
  return availableReplicas >= wanted - missing
}

function conditionsOf(
  deployment: StoredObject,
  template: Template,
  phase: Phase,
  now: string,
  available: boolean,
): Condition[] {
  const before = (fieldAt(deployment, ['status', 'conditions']) ?? []) as Condition[]
  const isFirst = !before.some(({ type }) => type === 'Progressing')
  const next = [
    available
      ? (['Available', 'True', 'MinimumReplicasAvailable', 'Deployment has minimum availability.'] as const)
      : ([
          'Available',
          'False',
          'MinimumReplicasUnavailable',
          'Deployment does not have minimum availability.',
        ] as const),
    ...(phase === 'scaling' && !isFirst ? [] : [progress(template, phase, isFirst)]),
  ]
  const changed = next.map(([type, status, reason, message]) => {
    const old = before.find((condition) => condition.type === type)
    if (old && old.status === status && old.reason === reason && old.message === message) return old
    const lastTransitionTime = old?.status === status ? old.lastTransitionTime : now
    return { type, status, lastUpdateTime: now, lastTransitionTime, reason, message }
  })
  const kept = before.filter(({ type }) => !changed.some((condition) => condition.type === type))
  return [...kept, ...changed]
}

function progress({ name }: Template, phase: Phase, isFirst: boolean) {
  const set = `ReplicaSet "${name}"`
  if (phase === 'done')
    return ['Progressing', 'True', 'NewReplicaSetAvailable', `${set} has successfully progressed.`] as const
  if (phase === 'failed')
    return ['Progressing', 'False', 'ProgressDeadlineExceeded', `${set} has timed out progressing.`] as const
  if (isFirst)
    return ['Progressing', 'True', 'NewReplicaSetCreated', `Created new replica set "${name}"`] as const
  return ['Progressing', 'True', 'ReplicaSetUpdated', `${set} is progressing.`] as const
}
