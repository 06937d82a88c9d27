import { randomUUID } from 'node:crypto'
import { Cron } from 'croner'
import type { Clock } from '../clock.ts'
import type { Post } from './events/dispatch.ts'
import { headersOf, type WireEvent } from './events/wire-event.ts'
import type { Ping } from './manifests/manifests.ts'

/** Fires PingSources, with the events and the few quick retries of Knative's own adapter (pkg/adapter/mtping). */

export interface CronOptions {
  pings: Ping[]
  post: Post
  clock: Clock
  report(report: CronReport): void
}

export type CronReport =
  | { kind: 'fired'; ping: string; status: number }
  | { kind: 'lost'; ping: string; reason: string }

export interface CronJobs {
  /** When each PingSource fires next. */
  next(): { ping: string; at: Date }[]
  stop(): Promise<void>
}

/** So that not all fire at the same instant, in ms. */
const spreadMs = 500
const retriesMax = 5
const firstRetryMs = 50
/** The wall clock may jump, so it is looked at again at least so often, in ms. */
const lookAgainMs = 30_000

/** Starts all PingSources. Throws, naming the PingSource, for a schedule or a timezone that is none. */
export function cronJobs(options: CronOptions): CronJobs {
  const stopping = new AbortController()
  const jobs = options.pings.map((ping) => ({ ping, cron: readSchedule(ping) }))
  const loops = jobs.map(({ ping, cron }) => run(ping, cron, options, stopping.signal).catch(() => {}))
  return {
    next: () =>
      jobs.flatMap(({ ping, cron }) => {
        const at = cron.nextRun(options.clock.now())
        return at ? [{ ping: ping.name, at }] : []
      }),
    async stop() {
      stopping.abort(new Error('The cron stops'))
      await Promise.all(loops)
    },
  }
}

function readSchedule({ name, schedule, timezone }: Ping): Cron {
  try {
    const cron = new Cron(schedule, { timezone, paused: true, mode: '5-part' })
    // A timezone is looked at only here.
    cron.nextRun()
    return cron
  } catch (error) {
    throw new Error(
      `PingSource ${name}: schedule "${schedule}" (${timezone}): ${error instanceof Error ? error.message : error}`,
      { cause: error },
    )
  }
}

async function run(ping: Ping, cron: Cron, options: CronOptions, signal: AbortSignal): Promise<void> {
  const { clock } = options
  let from = clock.now()
  for (;;) {
    const at = cron.nextRun(from)
    if (!at) return
    for (let leftMs = 1; leftMs > 0; ) {
      leftMs = at.getTime() - clock.now().getTime()
      if (leftMs > 0) await clock.sleep(Math.min(leftMs, lookAgainMs), signal)
    }
    from = new Date(Math.max(at.getTime(), clock.now().getTime()))
    fire(ping, options, signal).catch(() => {})
  }
}

async function fire(ping: Ping, options: CronOptions, signal: AbortSignal): Promise<void> {
  const { clock, report } = options
  await clock.sleep(clock.random() * spreadMs, signal)
  const event = pingEvent(ping, clock)
  for (let attempt = 0; ; attempt++) {
    const outcome = await once(event, ping, options, signal)
    if (typeof outcome === 'number' && outcome >= 200 && outcome < 300)
      return report({ kind: 'fired', ping: ping.name, status: outcome })
    if (attempt >= retriesMax) return report({ kind: 'lost', ping: ping.name, reason: `answer: ${outcome}` })
    await clock.sleep(firstRetryMs * 2 ** attempt, signal)
  }
}

async function once(event: WireEvent, { sinkUrl }: Ping, { post }: CronOptions, signal: AbortSignal) {
  try {
    const response = await post(sinkUrl, {
      method: 'POST',
      headers: headersOf(event),
      body: event.data.length === 0 ? null : event.data,
      signal,
    })
    await response.body?.cancel()
    return response.status
  } catch {
    signal.throwIfAborted()
    return 'none'
  }
}

function pingEvent(ping: Ping, clock: Clock): WireEvent {
  return {
    attributes: {
      specversion: '1.0',
      id: randomUUID(),
      type: 'dev.knative.sources.ping',
      source: `/apis/v1/namespaces/${ping.namespace}/pingsources/${ping.name}`,
      time: clock.now().toISOString(),
      ...(ping.contentType && { datacontenttype: ping.contentType }),
      ...ping.extensions,
    },
    data: new TextEncoder().encode(ping.data ?? ''),
  }
}
