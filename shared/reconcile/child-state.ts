import type { VariantState } from '../kinds/mutants.ts'
import type { KubeObject } from '../kinds/object.ts'
import { mapIn, shortened } from './values.ts'

/** How a Deployment fares, read from its status. Pure. */

export interface ChildState {
  state: Extract<VariantState, 'Ready' | 'Progressing' | 'Degraded'>
  /** How many pods it is asked to run. */
  wanted: number
  ready: number
  message?: string
}

/** Longest message taken over from elsewhere, in characters. */
export const messageLengthMax = 512

/**
 * What `kubectl rollout status` would say: ready when the controller has seen this generation and all wanted pods are
 * updated and available, with none of an older template left. The answer of an apply still carries the old status,
 * so the generation comes first. Who wants no pods is ready.
 */
export function childStateOf(deployment: KubeObject): ChildState {
  const wanted = numberIn(deployment, 'spec', 'replicas') ?? 1
  const count = (field: string) => numberIn(deployment, 'status', field) ?? 0
  const counts = { wanted, ready: count('readyReplicas') }
  if (wanted === 0) return { state: 'Ready', ...counts }
  if (count('observedGeneration') < (deployment.metadata?.generation ?? 0))
    return { state: 'Progressing', ...counts }
  const failure = failureOf(deployment)
  if (failure !== undefined) return { state: 'Degraded', ...counts, message: failure }
  const isRolledOut =
    count('updatedReplicas') === wanted &&
    count('replicas') === wanted &&
    count('availableReplicas') === wanted
  return { state: isRolledOut ? 'Ready' : 'Progressing', ...counts }
}

/** The message of its Progressing condition when that has failed: the rollout's deadline has passed. */
function failureOf(deployment: KubeObject): string | undefined {
  const { conditions } = mapIn(deployment, 'status')
  if (!Array.isArray(conditions)) return undefined
  const failed = conditions.find(
    (condition) => condition?.type === 'Progressing' && condition?.status === 'False',
  )
  return (
    failed && shortened(String(failed.message ?? failed.reason ?? 'The rollout failed'), messageLengthMax)
  )
}

function numberIn(object: KubeObject, field: string, inner: string): number | undefined {
  const value = mapIn(object, field)[inner]
  return typeof value === 'number' ? value : undefined
}
