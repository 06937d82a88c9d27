import { appliedAnnotation } from '../kinds/mutants.ts'
import type { KubeObject, StoredObject } from '../kinds/object.ts'
import { isOwnApply, ownFields } from './adoption.ts'
import { coverageOf, holdersOf } from './coverage.ts'

/**
 * Whether a child must be applied again. Pure.
 *
 * What somebody else changed is set back at once. When it keeps being changed (another controller wants the same field)
 * the repairs slow down, or both would write as fast as they can for ever. The count of repairs in a row stands behind
 * the hash on the child itself, because a function keeps nothing: `<hash>.<count>`; the time of the last one is that of
 * our entry in its managedFields.
 */
export type Repair =
  | { is: 'none' }
  /** `applied` is the annotation's new value. */
  | { is: 'due'; applied: string }
  | { is: 'waiting'; message: string }

/** So many repairs in a row are made at once. */
export const repairsAtOnce = 5
const firstWaitMs = 10_000
/** Below the period of the resync, so that each resync finds the wait over: at most 15 repairs an hour. */
const waitMaxMs = 240_000
/** A repair after so long a quiet begins a new row. */
const quietMs = 600_000
/** The server's clock may be ahead of ours by so much; if more, the wait is not kept. */
const skewMaxMs = 60_000

/** Compares what should be applied with what was, and with what of it is still ours. */
export function repairOf(object: KubeObject, hash: string, child: StoredObject, now: Date): Repair {
  const [lastHash, count = '0'] = (child.metadata.annotations?.[appliedAnnotation] ?? '').split('.')
  if (lastHash !== hash) return { is: 'due', applied: hash }
  const { missing } = coverageOf(object, ownFields(child))
  if (missing.length === 0) return { is: 'none' }
  const repairs = /^[0-9]{1,6}$/.test(count) ? Number(count) : 0
  const sinceMs = now.getTime() - Date.parse(child.metadata.managedFields?.find(isOwnApply)?.time ?? '')
  if (!(sinceMs <= quietMs)) return { is: 'due', applied: `${hash}.1` }
  const waitMs =
    repairs < repairsAtOnce ? 0 : Math.min(firstWaitMs * 2 ** (repairs - repairsAtOnce), waitMaxMs)
  if (sinceMs >= waitMs || sinceMs < -skewMaxMs) return { is: 'due', applied: `${hash}.${repairs + 1}` }
  return { is: 'waiting', message: contestOf(object, missing, child) }
}

function contestOf(object: KubeObject, [path = '', ...more]: string[], child: StoredObject): string {
  const managers = holdersOf(
    object,
    path,
    (child.metadata.managedFields ?? []).filter((entry) => !isOwnApply(entry)),
  )
  const who = managers.length === 0 ? 'Somebody' : managers.map((manager) => `"${manager}"`).join(', ')
  const others = more.length === 0 ? '' : ` and ${more.length} more`
  return `${who} ${contestMark} ${path}${others}: it is set back, ever less often`
}

const contestMark = 'keeps changing'

/** Whether a variant's message is about such a contest; the status has no state for it, because the pods may be well. */
export function isContestMessage(message: string): boolean {
  return message.includes(` ${contestMark} .`)
}
