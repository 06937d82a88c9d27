import type { MutantStatus, VariantState } from '../kinds/mutants.ts'
import type { Ref } from '../kinds/object.ts'
import { isContestMessage } from './repair.ts'

/** What a person must see of a status: the Kubernetes Events that it is worth. Pure. */

/** A Kubernetes Event to record on an object. */
export interface ObjectEvent {
  /** With its uid. */
  regarding: Ref
  type: 'Normal' | 'Warning'
  /** CamelCase, from a closed set. */
  reason: string
  /** Tells apart equal reasons on one object. */
  variant?: string
  /** For people; cut where Kubernetes allows no more. */
  note: string
  /** Not to be told again when it was told before: so at a resync, which would repeat it for ever. */
  once?: true
}

/** So many variants are named, each in a Kubernetes Event of its own; of more only one Event tells, by reason. */
const eventsMax = 10

const reasons: Partial<Record<VariantState, string>> = {
  Invalid: 'VariantInvalid',
  Conflict: 'VariantConflict',
  Failed: 'VariantFailed',
  Degraded: 'VariantDegraded',
}

/** The Kubernetes Events for what `after` says and `before` did not. */
export function eventsFor(
  regarding: Ref,
  before: MutantStatus | undefined,
  after: MutantStatus,
): ObjectEvent[] {
  const known = new Set(problemsIn(before).map(idOf))
  const news = problemsIn(after).filter((problem) => !known.has(idOf(problem)))
  const warning = { regarding, type: 'Warning' as const }
  const aboutAll = news.filter(({ variant }) => variant === undefined)
  const aboutVariants = news.filter(({ variant }) => variant !== undefined)
  const folded = aboutVariants.length <= eventsMax ? aboutVariants : foldedByReason(aboutVariants)
  return [...aboutAll, ...folded].map((problem) => ({ ...warning, ...problem }))
}

type Problem = Omit<ObjectEvent, 'regarding' | 'type'>

function problemsIn(status: MutantStatus | undefined): Problem[] {
  const stalled = status?.conditions?.find(({ type, status }) => type === 'Stalled' && status === 'True')
  const whole =
    stalled && (stalled.reason === 'BaseInvalid' || stalled.reason === 'SecretUnusable')
      ? [{ reason: stalled.reason, note: stalled.message }]
      : []
  const variants = (status?.variants ?? []).flatMap(({ label, state, message }) => {
    const reason =
      reasons[state] ?? (message !== undefined && isContestMessage(message) ? 'VariantContested' : undefined)
    return reason === undefined
      ? []
      : [{ reason, variant: label, note: `Variant ${JSON.stringify(label)}: ${message ?? state}` }]
  })
  return [...whole, ...variants]
}

const idOf = ({ reason, variant, note }: Problem) => JSON.stringify([reason, variant, note])

function foldedByReason(problems: Problem[]): Problem[] {
  const byReason = Map.groupBy(problems, ({ reason }) => reason)
  return [...byReason].map(([reason, all]) => {
    const told = all.slice(0, eventsMax).map(({ note }) => note.slice(0, 80))
    const more = all.length > told.length ? [`and ${all.length - told.length} more`] : []
    return { reason, note: `${all.length} variants: ${[...told, ...more].join('; ')}` }
  })
}
