import { Hono } from 'hono'
import { type Clock, TimeoutError, withTimeout } from '../clock.ts'
import type { Logger } from '../log.ts'
import { type Answer, bug, isAnswer, notNow, responseOf, settled, unreadable } from './answers.ts'
import { bodyOf, CutOff, TooLarge } from './body.ts'
import { type CloudEvent, UnreadableEvent } from './event.ts'
import { looksLikeEvent, readEvent } from './wire.ts'

export interface ReceiverOptions {
  clock: Clock
  log: Logger
  /**
   * Works on one event. What it answers is answered; nothing (undefined) means settled. When `signal` is aborted the
   * time is up: it must stop. Throwing is a bug and is answered so.
   */
  work(event: CloudEvent, call: { signal: AbortSignal }): Promise<Answer | undefined>
  /** How long the work may take, in ms. Default 20 s: the broker gives up after 30 s, in which a cold start falls too. */
  deadlineMs?: number
  /** Aborted when the process drains: what comes then is answered 503. */
  draining?: AbortSignal
  /** Judges a request's `Authorization` before its body is read: what it answers is answered. */
  authenticate?(authorization: string | null): Promise<Answer | undefined>
  /** Makes an event of a plain JSON request, for a function that people may call too. */
  plain?(value: unknown): CloudEvent | undefined
  /** What is answered, in place of `answer`, to what cannot be read as an event. */
  unreadable?(answer: Answer): Answer
  /** Runs the work on an event, for what wants to be around it. */
  around?(event: CloudEvent, work: () => Promise<Answer>): Promise<Answer>
  /** Told of each event that could be read, before the work on it. */
  onEvent?(event: CloudEvent): void
  /** Told of each answer to an event, for metrics. */
  onAnswer?(answer: { status: number; durationMs: number }): void
  /** The text of `GET /metrics`, and its content type. */
  metrics?(): Promise<{ text: string; contentType: string }>
}

const defaultDeadlineMs = 20_000
/** How long work that was told to stop may take to do so, in ms. */
export const stopGraceMs = 2_000
const drainRetryAfterSeconds = 1
const lateRetryAfterSeconds = 5

/**
 * A Hono app that takes CloudEvents by `POST /` and answers each as the contract has it. Every 2xx has no body or is
 * a CloudEvent, whatever the work returns (but `/metrics`, which no broker asks for). `/livez` says that the process
 * runs, `/readyz` that it takes events.
 */
export function receiver(options: ReceiverOptions): Hono {
  const { log, metrics } = options
  const app = new Hono()
  app.get('/livez', () => responseOf(settled()))
  app.get('/readyz', () => responseOf(options.draining?.aborted ? draining() : settled()))
  if (metrics) {
    app.get('/metrics', async () => {
      const { text, contentType } = await metrics()
      return new Response(text, { headers: { 'content-type': contentType } })
    })
  }
  app.post('/', async (c) => responseOf(await receive(c.req.raw, options)))
  app.all('/', () => new Response('Only POST is taken here\n', { status: 405, headers: { allow: 'POST' } }))
  // A broker would deliver again after a 404; a wrong path in a Trigger does not get better by that.
  app.post('*', () => responseOf(unreadable('Events are taken at / only')))
  app.notFound(() => new Response('Nothing here\n', { status: 404 }))
  app.onError((error) => {
    log.error({ err: error }, 'request failed')
    return responseOf(bug())
  })
  return app
}

async function receive(request: Request, options: ReceiverOptions): Promise<Answer> {
  if (options.draining?.aborted) return draining()
  const startMs = options.clock.monotonicMs()
  let event: CloudEvent | undefined
  let answer: Answer
  try {
    const refusal = await options.authenticate?.(request.headers.get('authorization'))
    if (refusal) answer = refusal
    else {
      event = await eventOf(request, options)
      options.onEvent?.(event)
      answer = await answered(event, options)
    }
  } catch (error) {
    answer = answerTo(error, options)
  }
  const durationMs = Math.round(options.clock.monotonicMs() - startMs)
  options.onAnswer?.({ status: answer.status, durationMs })
  report(options.log, event, answer, durationMs)
  return answer
}

async function answered(event: CloudEvent, options: ReceiverOptions): Promise<Answer> {
  const { around = (_, work) => work() } = options
  return around(event, async () => {
    const result: unknown = await worked(event, options)
    return isAnswer(result) ? result : settled()
  })
}

async function eventOf(request: Request, options: ReceiverOptions): Promise<CloudEvent> {
  const body = await bodyOf(request, options.draining)
  const headers = [...request.headers]
  if (options.plain && !looksLikeEvent(headers)) {
    const event = options.plain(jsonOf(body))
    if (event) return event
  }
  return readEvent({ headers, body })
}

function jsonOf(body: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body))
  } catch {
    return undefined
  }
}

/** Runs the work until it ends or its time is up; then waits until it has stopped. */
async function worked(event: CloudEvent, options: ReceiverOptions): Promise<Answer | undefined> {
  const { clock, log, deadlineMs = defaultDeadlineMs } = options
  let work: Promise<Answer | undefined> | undefined
  try {
    return await withTimeout(clock, deadlineMs, 'The work on an event', (signal) => {
      work = options.work(event, { signal })
      return work
    })
  } catch (error) {
    if (!(error instanceof TimeoutError) || !work) throw error
    const stopped = await withTimeout(clock, stopGraceMs, 'Stopping', () =>
      (work ?? Promise.resolve()).then(
        () => true,
        () => true,
      ),
    ).catch(() => false)
    if (!stopped) log.error({ event: event.id }, 'work did not stop when its time was up')
    return notNow('The time was up', lateRetryAfterSeconds)
  }
}

/** The answer that an error deserves; one that nobody foresaw is a bug. */
function answerTo(error: unknown, options: ReceiverOptions): Answer {
  if (error instanceof CutOff && error.isDraining) return draining()
  const refusal = refusalOf(error)
  if (!refusal) return bug({ err: error })
  return options.unreadable?.(refusal) ?? refusal
}

function refusalOf(error: unknown): Answer | undefined {
  if (error instanceof UnreadableEvent)
    return { ...unreadable(error.message, error.status), fields: { attribute: error.attribute } }
  if (error instanceof TooLarge) return unreadable('The body is too large', 413)
  return error instanceof CutOff ? unreadable('The body was cut off') : undefined
}

function draining(): Answer {
  return notNow('Shutting down', drainRetryAfterSeconds)
}

/** One line for each event: which object, which event, what came of it, how long it took. */
function report(log: Logger, event: CloudEvent | undefined, answer: Answer, durationMs: number): void {
  const fields = {
    ...(event && {
      event: event.id,
      type: event.type,
      source: event.source,
      ...(event.subject !== undefined && { object: event.subject }),
      ...(event.extensions.traceparent !== undefined && { traceparent: event.extensions.traceparent }),
    }),
    status: answer.status,
    ...('message' in answer && { reason: answer.message }),
    durationMs,
    ...answer.fields,
  }
  if (answer.status === 500) log.error(fields, 'work on an event failed')
  else if (answer.status < 300) log.info(fields, 'event worked on')
  else log.warn(fields, answer.status === 503 ? 'event put off' : 'event refused')
}
