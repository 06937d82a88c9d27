import type { MutantKind, MutantStatus } from '../kinds/mutants.ts'
import type { StoredObject } from '../kinds/object.ts'
import { desiredOf } from './desired.ts'
import { childrenToPrune, type PlanSettings, planAll } from './plan.ts'
import { isSameStatus, statesByLabel, statusOf, variantStatusOf } from './status.ts'

/**
 * Whether a reconcile of `parent` would write anything, or try to: what the resync asks of every object. Who was
 * refused, or found the name taken by somebody whom the list does not show, is planned as if for the first time. Pure,
 * and by the planner that reconciles. `children` are the Deployments in its namespace with its owner label. The Secret
 * is not read here: `status.secret` is believed.
 */
export function needsWork(
  kind: MutantKind,
  parent: StoredObject,
  children: readonly StoredObject[],
  settings: PlanSettings,
): boolean {
  if (parent.metadata.deletionTimestamp) return false
  const status = parent.status as MutantStatus | undefined
  const desired = desiredOf(kind, parent)
  if (kind.hasSecret && status?.secret === undefined && !desired.paused) return true
  const generation = parent.metadata.generation ?? 0
  const plans = planAll(desired, children, status, { ...settings, generation, isResync: true })
  if (plans.some(({ step }) => step)) return true
  const variants = plans.map(variantStatusOf)
  const isHeld = desired.paused || desired.problem !== undefined
  if (!isHeld && childrenToPrune(desired, children, statesByLabel(variants)).length > 0) return true
  const { secret } = status ?? {}
  return !isSameStatus(status, statusOf({ parent, desired, variants, secret, now: settings.now }))
}
