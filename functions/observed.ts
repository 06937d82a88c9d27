import type { ReceiverOptions } from '../shared/cloudevents/receiver.ts'
import type { FunctionContext } from './context.ts'

/** What every function's receiver is given out of its context. */
export function observed(ctx: FunctionContext): Omit<ReceiverOptions, 'work'> {
  return {
    clock: ctx.clock,
    log: ctx.log,
    deadlineMs: ctx.deadlineMs,
    draining: ctx.draining,
    ...(ctx.authenticate && { authenticate: ctx.authenticate }),
    ...(ctx.tape && { onEvent: ctx.tape }),
    onAnswer: ({ status }) => ctx.metrics.note('mutantops_events_total', { status: String(status) }),
    metrics: () => ctx.metrics.text(),
  }
}
