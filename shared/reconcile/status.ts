import type { MutantStatus, VariantState, VariantStatus } from '../kinds/mutants.ts'
import type { Condition, StoredObject } from '../kinds/object.ts'
import { childStateOf, messageLengthMax } from './child-state.ts'
import type { Desired } from './desired.ts'
import type { VariantPlan } from './plan.ts'
import { isSame, shortened } from './values.ts'

/** What to report on the object. Pure. */

export interface Findings {
  parent: StoredObject
  desired: Desired
  variants: VariantStatus[]
  /** The name of the token Secret that is surely ours. */
  secret?: string | undefined
  /** What is wrong with the Secret, and whether it mends itself. */
  secretProblem?: string | undefined
  isSecretLeaving?: boolean | undefined
  now: Date
}

/** A variant's state: what keeps it from being as wanted, else how its Deployment fares. */
export function variantStatusOf({ variant, child, verdict, note }: VariantPlan): VariantStatus {
  const live = child && childStateOf(child)
  const instances = variant.instances ?? live?.wanted
  const message = verdict?.message ?? note ?? live?.message
  return {
    label: variant.label,
    name: variant.name,
    state: verdict?.state ?? live?.state ?? 'Progressing',
    ...(instances !== undefined && { instances }),
    ready: live?.ready ?? 0,
    ...(message && { message: shortened(message, messageLengthMax) }),
  }
}

/**
 * The whole status. Conditions as kstatus reads them: `Ready` always; `Reconciling` while something is under way, and
 * `Stalled` when nothing is and something needs a person, only while they are true.
 */
export function statusOf(findings: Findings): MutantStatus {
  const { parent, desired, variants, secret, secretProblem } = findings
  const message = [
    ...(desired.paused ? ['Paused: nothing is written but this status'] : []),
    ...[desired.problem, secretProblem].filter((problem) => problem !== undefined),
    ...desired.notes,
  ].join('. ')
  return {
    observedGeneration: parent.metadata.generation ?? 0,
    ...(secret !== undefined && { secret }),
    ...(message !== '' && { message: shortened(message, 2 * messageLengthMax) }),
    variants,
    summary: summaryOf(variants),
    conditions: conditionsOf(findings),
  }
}

const statesToTell = ['Progressing', 'Degraded', 'Invalid', 'Conflict', 'Failed'] as const

/** `2/3 variants ready, 1 invalid`. */
export function summaryOf(variants: readonly VariantStatus[]): string {
  const count = (state: VariantState) => variants.filter((variant) => variant.state === state).length
  const others = statesToTell.filter((state) => count(state) > 0)
  return [
    `${count('Ready')}/${variants.length} variants ready`,
    ...others.map((state) => `${count(state)} ${state.toLowerCase()}`),
  ].join(', ')
}

interface Verdict {
  reason: string
  message: string
  also?: 'Reconciling' | 'Stalled'
}

/** Worst first: what a person must mend before what may mend itself. */
const badStates = [
  ['Invalid', 'VariantsInvalid'],
  ['Failed', 'VariantsFailed'],
  ['Conflict', 'VariantsInConflict'],
  ['Degraded', 'VariantsDegraded'],
] as const

/** Why the object is not ready, or undefined when it is. */
function verdictOf({ desired, variants, secretProblem, isSecretLeaving }: Findings): Verdict | undefined {
  if (desired.problem !== undefined)
    return { reason: 'BaseInvalid', message: desired.problem, also: 'Stalled' }
  const summary = summaryOf(variants)
  const isProgressing = variants.some(({ state }) => state === 'Progressing')
  // A paused object is neither under way nor in need of help.
  if (desired.paused && isProgressing) return { reason: 'Paused', message: `Paused with ${summary}` }
  if (isProgressing) return { reason: 'VariantsProgressing', message: summary, also: 'Reconciling' }
  const bad = badStates.find(([state]) => variants.some((variant) => variant.state === state))
  if (bad) return { reason: bad[1], message: summary, also: 'Stalled' }
  if (secretProblem !== undefined)
    return isSecretLeaving
      ? { reason: 'SecretLeaving', message: secretProblem, also: 'Reconciling' }
      : { reason: 'SecretUnusable', message: secretProblem, also: 'Stalled' }
  return undefined
}

function conditionsOf(findings: Findings): Condition[] {
  const { parent, variants, now } = findings
  const verdict = verdictOf(findings)
  const before = conditionsBefore(parent)
  const condition = (
    type: string,
    status: Condition['status'],
    reason: string,
    message: string,
  ): Condition => {
    const last = before.find((other) => other.type === type)
    return {
      type,
      status,
      reason,
      message: shortened(message, messageLengthMax),
      lastTransitionTime: last?.status === status ? last.lastTransitionTime : secondsOf(now),
      observedGeneration: parent.metadata.generation ?? 0,
    }
  }
  if (!verdict) return [condition('Ready', 'True', 'AllVariantsReady', summaryOf(variants))]
  const { reason, message, also } = verdict
  const ready = condition('Ready', 'False', reason, message)
  return also ? [ready, condition(also, 'True', reason, message)] : [ready]
}

function conditionsBefore(parent: StoredObject): Condition[] {
  const conditions = (parent.status as MutantStatus | undefined)?.conditions
  return Array.isArray(conditions) ? conditions : []
}

/** RFC 3339 in whole seconds, as Kubernetes writes times in conditions. */
function secondsOf(time: Date): string {
  return `${time.toISOString().slice(0, 19)}Z`
}

/** Whether a status says what another says; only one that does not is written. */
export function isSameStatus(one: MutantStatus | undefined, other: MutantStatus): boolean {
  return one !== undefined && isSame(one, other)
}

/** Of a label that stands twice, the first state: that is the one whose Deployment runs. */
export function statesByLabel(variants: readonly VariantStatus[]): Map<string, VariantState> {
  return new Map(variants.map(({ label, state }) => [label, state] as const).toReversed())
}
