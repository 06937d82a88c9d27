import type { Hono } from 'hono'
import { type Answer, settled } from '../shared/cloudevents/answers.ts'
import { type DeliveryError, deliveryErrorOf } from '../shared/cloudevents/delivery-error.ts'
import { type CloudEvent, UnreadableEvent } from '../shared/cloudevents/event.ts'
import { receiver } from '../shared/cloudevents/receiver.ts'
import { parseSubject, refOfSubject } from '../shared/cloudevents/subject.ts'
import { mutantKindOf } from '../shared/kinds/mutants.ts'
import type { Ref } from '../shared/kinds/object.ts'
import type { ObjectEvent } from '../shared/reconcile/problems.ts'
import type { FunctionContext } from './context.ts'
import { observed } from './observed.ts'

export interface DeadLetterContext extends FunctionContext {
  /** Records a Kubernetes Event on an object. */
  record(event: ObjectEvent, call: { signal: AbortSignal }): Promise<void>
}

/**
 * The last stop of an event that the broker gave up: a line in the log, a metric, and a Warning Kubernetes Event on the
 * object, if it still is there. Every event is answered 204: an error in here must never make a dead letter of its own.
 */
export function deadLetterApp(ctx: DeadLetterContext): Hono {
  return receiver({
    ...observed(ctx),
    work: (event, { signal }) => deadLetter(event, ctx, signal),
    unreadable: (answer) => unreadableLetter(answer, ctx),
  })
}

/**
 * What no function could read, nor can this one: the broker had taken it. Refused here too it would be lost without a
 * word, and Knative's channel would tell its sender to try again, for ever.
 */
function unreadableLetter(answer: Answer, ctx: DeadLetterContext): Answer {
  ctx.metrics.note('mutantops_dead_letters_total', { kind: 'none', answer: 'none' })
  const reason = 'message' in answer ? answer.message : undefined
  return settled({ deadLetter: true, reason, told: 'no object' })
}

async function deadLetter(event: CloudEvent, ctx: DeadLetterContext, signal: AbortSignal): Promise<Answer> {
  const last = deliveryErrorOf(event)
  const ref = refIn(event)
  ctx.metrics.note('mutantops_dead_letters_total', { kind: ref?.kind ?? 'none', answer: answerClass(last) })
  let told = 'no object'
  if (ref) told = await tell(ref, last, ctx, signal).catch((error) => notTold(error, event, ctx))
  return settled({ deadLetter: true, last, told })
}

/** The object of ours that the event is about, if any. */
function refIn(event: CloudEvent): (Ref & { namespace: string }) | undefined {
  try {
    return refOfSubject(parseSubject(event.subject))
  } catch (error) {
    if (error instanceof UnreadableEvent) return undefined
    throw error
  }
}

async function tell(
  ref: Ref & { namespace: string },
  last: DeliveryError,
  ctx: DeadLetterContext,
  signal: AbortSignal,
): Promise<string> {
  const kind = mutantKindOf(ref)
  const live = kind && (await ctx.client.getMetadata(kind, ref, { signal }))
  if (!live) return 'object is gone'
  // Without what varies from try to try: the same news is then one Event, with a count.
  const answer = last.code === undefined ? 'no answer' : `the answer ${last.code}`
  const note =
    `The event of a change was given up; its last try got ${answer}. ` +
    'The next periodic resync looks at the object again, and so does any change of it'
  const regarding = { ...ref, uid: live.metadata.uid }
  await ctx.record({ regarding, type: 'Warning', reason: 'EventGivenUp', note }, { signal })
  return 'a Kubernetes Event'
}

function notTold(error: unknown, event: CloudEvent, ctx: DeadLetterContext): string {
  ctx.log.warn({ err: error, event: event.id }, 'dead letter not told on its object')
  return 'nothing'
}

/** `none`, `2xx` … `5xx`. */
function answerClass({ code }: DeliveryError): string {
  return code === undefined ? 'none' : `${Math.floor(code / 100)}xx`
}
