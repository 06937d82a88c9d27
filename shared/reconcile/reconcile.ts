import { TimeoutError } from '../clock.ts'
import type { MutantKind } from '../kinds/mutants.ts'
import type { Ref } from '../kinds/object.ts'
import { type ErrorLabel, errorLabel, isKubeError } from '../kube/errors.ts'
import { type PassContext, runPass } from './pass.ts'

/** Everything that a reconcile may touch. */
export interface ReconcileContext extends Omit<PassContext, 'cause'> {
  /** Default: `change`. */
  cause?: 'change' | 'resync'
}

export interface ReconcileResult {
  /** `settled`: done, or it cannot be done and the status says so. `later`: the API server was in the way. */
  outcome: 'settled' | 'later'
  error?: { label: ErrorLabel; message: string }
  /** When the API server asked for it. */
  retryAfterSeconds?: number
  /** What was written, a line each: `apply Deployment shop/web-red`. */
  writes: string[]
  /** Undefined when the object is gone or being deleted. */
  ref: Ref | undefined
  summary?: string
}

/** How often a pass is done anew because the object changed meanwhile. */
const redoMax = 3

/**
 * Makes the world agree with one object.
 *
 * Flow: list its children, read it (quorum reads), plan, apply what differs, delete what nobody wants, write the
 * status. Guarantees: an in-sync object is only read (2 requests, 3 with a Secret); a second copy at work on an older
 * version does it anew, so that the end is that of the newest spec; one child's failure stops no other; it answers
 * when `signal` is aborted. Never throws for trouble with the API or with the object. Assumes that a `later` is
 * delivered again.
 */
export async function reconcile(
  kind: MutantKind,
  target: { namespace: string; name: string },
  context: ReconcileContext,
): Promise<ReconcileResult> {
  const writes: string[] = []
  const result: ReconcileResult = { outcome: 'settled', writes, ref: undefined }
  if (!target.namespace || !target.name)
    return { ...result, error: { label: 'invalid', message: 'The object has no namespace or no name' } }
  const passContext: PassContext = { ...context, cause: context.cause ?? 'change' }
  try {
    for (let redone = 0; redone <= redoMax; redone++) {
      const pass = await runPass(kind, target, passContext, (line) => writes.push(line))
      if (pass.end === 'raced') continue
      const { ref, summary, problem, troubles } = pass
      const found = { ...result, ref, ...(summary !== undefined && { summary }) }
      if (troubles.length > 0) return { ...found, ...laterFor(troubles) }
      return problem === undefined ? found : { ...found, error: { label: 'invalid', message: problem } }
    }
    return { ...result, outcome: 'later', error: { label: 'api', message: 'The object kept changing' } }
  } catch (error) {
    if (context.signal.aborted) return { ...result, ...calledOff }
    if (!isKubeError(error) && !(error instanceof TimeoutError)) throw error
    return { ...result, ...laterFor([error]) }
  }
}

const calledOff = {
  outcome: 'later',
  error: { label: 'client', message: 'Called off before its end' },
} as const

/** The answer for trouble with the API server: the first error, and the longest wait that was asked for. */
function laterFor(
  troubles: readonly Error[],
): Pick<ReconcileResult, 'outcome' | 'error' | 'retryAfterSeconds'> {
  const [first] = troubles
  const waits = troubles.map((error) => (isKubeError(error) ? (error.retryAfterSeconds ?? 0) : 0))
  const wait = Math.max(0, ...waits)
  return {
    outcome: 'later',
    error: { label: errorLabel(first), message: first?.message ?? '' },
    ...(wait > 0 && { retryAfterSeconds: wait }),
  }
}
