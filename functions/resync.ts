import type { Hono } from 'hono'
import { type Answer, notHandled, notNow, settled } from '../shared/cloudevents/answers.ts'
import { objectEvent, pingType, resyncRequest, resyncRequestType } from '../shared/cloudevents/envelope.ts'
import { type CloudEvent, UnreadableEvent } from '../shared/cloudevents/event.ts'
import { receiver } from '../shared/cloudevents/receiver.ts'
import type { Sink } from '../shared/cloudevents/sink.ts'
import { mutantKinds } from '../shared/kinds/mutants.ts'
import { isObject } from '../shared/kinds/object.ts'
import { isKubeError } from '../shared/kube/errors.ts'
import { type Forwarder, forwarder, SinkTrouble } from '../shared/resync/forward.ts'
import { type ResyncRequest, readRequest } from '../shared/resync/request.ts'
import { type Family, type WalkPosition, walk } from '../shared/resync/walk.ts'
import type { FunctionContext } from './context.ts'
import { observed } from './observed.ts'

export interface ResyncContext extends FunctionContext {
  /** Takes one event for each object that needs work, and the next page. */
  sink: Sink
  /** Undefined means all of them. */
  namespaces: string[] | undefined
  /** The planner: whether a reconcile would write something. */
  needsWork(family: Family): boolean
}

/** So long one page may look; what is left is the next page's, in ms. */
const pageBudgetMs = 15_000
/** A run of more pages than this does not end by itself: something is wrong. */
const pagesMax = 1_000
const retryAfterSeconds = 10

/**
 * The periodic look at everything: asked for by a cron event, by the watcher when it starts, or by a person's POST of
 * `{"mode": "full"}`. Sends one event for each object that needs work (in mode `full`, for each object). When its time
 * is short it sends itself an event with the place to go on at. It reads no Secret and writes nothing.
 */
export function resyncApp(ctx: ResyncContext): Hono {
  return receiver({
    ...observed(ctx),
    work: async (event, { signal }) => {
      if (event.type !== pingType && event.type !== resyncRequestType)
        return notHandled('Only a request for a resync is taken here')
      return resync(readRequest(event), ctx, signal)
    },
    plain: (value) => plainRequest(value, ctx),
  })
}

/** What a person may post without knowing of events. */
function plainRequest(value: unknown, ctx: ResyncContext): CloudEvent | undefined {
  if (!isObject(value)) return undefined
  const { mode } = value
  if (mode !== 'full' && mode !== 'needed')
    throw new UnreadableEvent(
      'The body is neither a CloudEvent nor of the form {"mode": "full"} or {"mode": "needed"}',
    )
  const time = ctx.clock.now()
  return resyncRequest({ cluster: ctx.cluster, from: 'resync', mode, tick: time.toISOString(), time })
}

interface Tally {
  lookedAt: number
  outOfSync: number
  next: WalkPosition | undefined
}

async function resync(request: ResyncRequest, ctx: ResyncContext, signal: AbortSignal): Promise<Answer> {
  const sends = forwarder({
    ...ctx,
    signal,
    onResult: (result) => ctx.metrics.note('mutantops_resync_events_total', { result }),
  })
  const tally: Tally = { lookedAt: 0, outOfSync: 0, next: undefined }
  try {
    await lookAtPage(request, ctx, signal, sends, tally)
    if (tally.next) await sends.send(nextPage(request, tally.next, ctx))
    await sends.quick()
  } catch (error) {
    if (!isKubeError(error) && !(error instanceof SinkTrouble)) throw error
    return notNow(error.message, retryAfterSeconds, fieldsOf(request, tally, sends))
  } finally {
    // What a broker holds goes on after the answer.
    ctx.background(sends.all())
  }
  const fields = fieldsOf(request, tally, sends)
  return sends.counts().failed > 0
    ? notNow('Some events were not sent', retryAfterSeconds, fields)
    : settled(fields)
}

async function lookAtPage(
  request: ResyncRequest,
  ctx: ResyncContext,
  signal: AbortSignal,
  sends: Forwarder,
  tally: Tally,
): Promise<void> {
  const endMs = ctx.clock.monotonicMs() + pageBudgetMs
  const families = walk({
    client: ctx.client,
    kinds: mutantKinds,
    namespaces: ctx.namespaces,
    from: request.position,
    signal,
    onRestart: () => ctx.metrics.note('mutantops_resync_restarts_total'),
    onForbidden: (namespace, error) =>
      ctx.log.warn({ namespace, reason: error.reason }, 'namespace left out'),
  })
  for await (const family of families) {
    const { kind } = family.kind
    tally.lookedAt++
    ctx.metrics.note('mutantops_resync_objects_total', { kind })
    const isOutOfSync = ctx.needsWork(family)
    if (isOutOfSync) {
      tally.outOfSync++
      ctx.metrics.note('mutantops_resync_out_of_sync_total', { kind })
    }
    if (isOutOfSync || request.mode === 'full') await sends.send(eventFor(family, request.tick, ctx))
    if (ctx.clock.monotonicMs() < endMs || request.page >= pagesMax) continue
    tally.next = family.position
    return
  }
}

function eventFor({ kind, parent }: Family, tick: string, ctx: ResyncContext): CloudEvent {
  const { namespace = '', name, uid } = parent.metadata
  const owner = { apiVersion: `${kind.group}/${kind.version}`, kind: kind.kind, namespace, name, uid }
  return objectEvent({
    cluster: ctx.cluster,
    verb: 'resync',
    owner,
    tick,
    cause: 'resync',
    time: ctx.clock.now(),
  })
}

function nextPage(
  { mode, tick, page }: ResyncRequest,
  position: WalkPosition,
  ctx: ResyncContext,
): CloudEvent {
  return resyncRequest({
    cluster: ctx.cluster,
    from: 'resync',
    mode,
    tick,
    page: { number: page + 1, position },
    time: ctx.clock.now(),
  })
}

function fieldsOf(request: ResyncRequest, tally: Tally, sends: Forwarder) {
  const { mode, page } = request
  return {
    mode,
    page,
    lookedAt: tally.lookedAt,
    outOfSync: tally.outOfSync,
    events: sends.counts(),
    isLast: tally.next === undefined,
  }
}
