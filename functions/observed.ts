import type { ReceiverOptions } from '../shared/cloudevents/receiver.ts'
import type { Telemetry } from '../shared/telemetry/telemetry.ts'
import { eventAttributes } from '../shared/telemetry/traced.ts'
import type { FunctionContext } from './context.ts'

/** What every function's receiver is given out of its context. */
export function observed(ctx: FunctionContext): Omit<ReceiverOptions, 'work'> {
  return {
    clock: ctx.clock,
    log: ctx.log,
    deadlineMs: ctx.deadlineMs,
    draining: ctx.draining,
    ...(ctx.authenticate && { authenticate: ctx.authenticate }),
    ...(ctx.telemetry && { around: traced(ctx.telemetry, ctx.name) }),
    ...(ctx.tape && { onEvent: ctx.tape }),
    onAnswer({ status }) {
      ctx.metrics.note('mutantops_events_total', { status: String(status) })
      if (status === 500) ctx.metrics.note('mutantops_controller_errors_total', { error: 'runner' })
    },
    metrics: () => ctx.metrics.text(),
  }
}

/** The work on an event is a span, caused by what sent the event. */
function traced(telemetry: Telemetry, name: string): NonNullable<ReceiverOptions['around']> {
  return (event, work) =>
    telemetry.span(
      `process ${name}`,
      { kind: 'consumer', parent: event.extensions.traceparent, attributes: eventAttributes(event) },
      async (span) => {
        const answer = await work()
        span.set({ 'http.response.status_code': answer.status })
        if (answer.status >= 400) span.fail(String(answer.status))
        return answer
      },
    )
}
