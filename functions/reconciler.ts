import type { Hono } from 'hono'
import { type Answer, notHandled, notNow, settled, settledWith } from '../shared/cloudevents/answers.ts'
import { objectTypes, reconciledEvent } from '../shared/cloudevents/envelope.ts'
import type { CloudEvent } from '../shared/cloudevents/event.ts'
import { receiver } from '../shared/cloudevents/receiver.ts'
import { targetOf } from '../shared/cloudevents/target.ts'
import { apiVersion, type MutantKind } from '../shared/kinds/mutants.ts'
import type { AdoptionSettings } from '../shared/reconcile/adoption.ts'
import type { ObjectEvent } from '../shared/reconcile/problems.ts'
import { type ReconcileResult, reconcile } from '../shared/reconcile/reconcile.ts'
import type { FunctionContext } from './context.ts'
import { observed } from './observed.ts'

export interface ReconcilerContext extends FunctionContext, AdoptionSettings {
  /** Whether a reconcile that wrote something replies with an event. */
  replies: boolean
  /** Records a Kubernetes Event on an object. */
  record(event: ObjectEvent): Promise<void>
}

/** When nobody says how long to wait: the broker's first wait is of this length too. */
const retryAfterSeconds = 10

/**
 * The function of one kind: an event names an object, the object is read and reconciled, and the broker is told whether
 * it is settled or shall come again. What is wrong with the object itself is settled: it stands in its status.
 */
export function reconcilerApp(kind: MutantKind, ctx: ReconcilerContext): Hono {
  return receiver({
    ...observed(ctx),
    work: async (event, { signal }) => {
      const target = targetOf(event, kind)
      if (target === 'nothing') return settled({ nothing: 'to do' })
      if (target === 'foreign') return notHandled(`Only events of a ${kind.kind} are taken here`)
      const startMs = ctx.clock.monotonicMs()
      const cause = event.type === objectTypes.resync ? 'resync' : 'change'
      const result = await reconcile(kind, target, { ...ctx, cause, signal })
      note(kind, result, ctx, (ctx.clock.monotonicMs() - startMs) / 1_000)
      return answerOf(event, { ...target, kind: kind.kind, apiVersion }, result, ctx)
    },
  })
}

function note(
  kind: MutantKind,
  result: ReconcileResult,
  { metrics }: ReconcilerContext,
  seconds: number,
): void {
  const labels = { kind: kind.kind }
  metrics.note('mutantops_reconciles_total', { ...labels, outcome: result.outcome })
  metrics.note('mutantops_reconcile_duration_seconds', labels, seconds)
  if (!result.ref && !result.error)
    metrics.note('mutantops_controller_errors_total', { error: 'object_not_found' })
  if (result.error) metrics.note('mutantops_reconcile_errors_total', { ...labels, error: result.error.label })
  for (const write of result.writes)
    metrics.note('mutantops_writes_total', { ...labels, verb: verbOf(write) })
}

function answerOf(
  event: CloudEvent,
  ref: { apiVersion: string; kind: string; namespace: string; name: string },
  result: ReconcileResult,
  ctx: ReconcilerContext,
): Answer {
  const { outcome, writes, error, summary } = result
  const fields = { outcome, writes, ...(error && { error }), ...(summary !== undefined && { summary }) }
  if (outcome === 'later')
    return notNow('The API server is in the way', result.retryAfterSeconds ?? retryAfterSeconds, fields)
  if (!ctx.replies || writes.length === 0) return settled(fields)
  const { cluster, name, clock } = ctx
  return settledWith(
    reconciledEvent({ cluster, functionName: name, ref, cause: event, time: clock.now() }),
    fields,
  )
}

/** `take over` of `take over Deployment shop/web-red`. */
function verbOf(write: string): string {
  return /^[a-z ]+(?= [A-Z])/.exec(write)?.[0] ?? 'other'
}
