import type { ChildFacts, OwnerFacts } from './facts.ts'
import { nobody } from './facts.ts'

/**
 * Which changes are worth an event: pure, and level-triggered like everything that follows. Telling too much costs a
 * reconcile that finds nothing to do; telling too little leaves an object wrong until the next resync. So what is left
 * out is only what certainly tells nothing new: a status write of an owner, and a child's change that our own apply made.
 */

interface Pair<T> {
  before?: T
  after?: T
}

/** What an owner's change tells: that it is gone, or that it deserves a look. */
export function ownerVerb({ before, after }: Pair<OwnerFacts>): 'applied' | 'deleted' | undefined {
  if (!after) return before && 'deleted'
  return before?.state === after.state ? undefined : 'applied'
}

/** The owners that a child's change tells of: the one that it has and the one that it had. */
export function ownersToldBy(change: Pair<ChildFacts>): string[] {
  const { before, after } = change
  if (isOwnWrite(change)) return []
  const owners = [before?.owner, after?.owner].filter((owner) => owner !== undefined)
  return [...new Set(owners)]
}

/**
 * Whether the change is our own apply and nothing else: our managed fields have changed, and neither anybody else's (a
 * status write changes those of its writer) nor the controller nor the deletion. It tells nothing new, because the pass
 * that applied proves at its end that its object had not changed meanwhile.
 */
function isOwnWrite({ before, after }: Pair<ChildFacts>): boolean {
  if (!after || after.isTerminating || after.ours === nobody) return false
  if (!before) return after.others === nobody
  return before.ours !== after.ours && before.others === after.others && before.owner === after.owner
}
