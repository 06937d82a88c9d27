import { createHash } from 'node:crypto'
import type { Clock } from '../clock.ts'
import { events, type KubeObject, type Ref } from '../kinds/object.ts'
import { cutToBytes } from '../kinds/text.ts'
import type { CallOptions, KubeClient } from '../kube/client.ts'
import { isConflict } from '../kube/errors.ts'
import type { Logger } from '../log.ts'
import { microTime } from './lease.ts'

/** Something that a person who looks at an object should see there. */
export interface EventNote {
  /** The object; with its uid, or `kubectl describe` does not find the event. */
  regarding: Ref
  type: 'Normal' | 'Warning'
  /** In CamelCase, constant. */
  reason: string
  /** What was done or tried, as a word. */
  action: string
  note: string
  /**
   * Makes events that are alike one event, told again as a series. Default: the note, so that the same trouble is
   * one event; give something unique where each occurrence is news.
   */
  sameness?: string | undefined
}

export interface EventMetrics {
  published(): void
  failed(): void
}

export interface RecorderOptions {
  client: KubeClient
  clock: Clock
  log: Logger
  /** Who reports, such as `neiam.org/mutantops`. */
  controller: string
  /** Which process of it. */
  instance: string
  metrics?: EventMetrics | undefined
}

export type Recorded = 'written' | 'repeated' | 'skipped' | 'failed'

export interface Recorder {
  /** Writes one Kubernetes Event. Never throws but for `signal`: a failed write is counted and logged. */
  record(event: EventNote, options?: CallOptions): Promise<Recorded>
}

/** The API takes no longer note. */
const noteBytesMax = 1_024
/** The API takes no longer reason, action or instance. */
const wordBytesMax = 128
const nameLengthMax = 253
/** An event that happens again is counted at most so often, in ms. */
const repeatPeriodMs = 10 * 60_000

interface KubeEvent extends KubeObject {
  eventTime?: string | null
  series?: { count?: number; lastObservedTime?: string } | null
}

/** Makes a recorder of Kubernetes Events (`events.k8s.io/v1`). */
export function recorder(options: RecorderOptions): Recorder {
  const { client, clock, log, metrics } = options

  async function write(event: EventNote, call: CallOptions): Promise<Recorded> {
    const object = eventObject(event, options)
    try {
      await client.create(events, object, call)
      return 'written'
    } catch (error) {
      if (!isConflict(error)) throw error
    }
    return repeat(object, call)
  }

  /** The event exists: it has happened again. */
  async function repeat(object: KubeEvent, call: CallOptions): Promise<Recorded> {
    const { namespace, name = '' } = object.metadata ?? {}
    const live = await client.get<KubeEvent>(events, { namespace, name }, call)
    if (!live) return 'skipped'
    const last = Date.parse(live.series?.lastObservedTime ?? live.eventTime ?? '')
    if (clock.now().getTime() - last < repeatPeriodMs) return 'skipped'
    const count = Math.max(2, (live.series?.count ?? 1) + 1)
    const series = { count, lastObservedTime: microTime(clock.now()) }
    await client.replace(events, { ...live, series }, call)
    return 'repeated'
  }

  return {
    async record(event, call = {}) {
      try {
        const outcome = await write(event, call)
        if (outcome !== 'skipped') metrics?.published()
        return outcome
      } catch (error) {
        // Another process counted the same repeat.
        if (isConflict(error)) return 'skipped'
        metrics?.failed()
        log.warn({ reason: event.reason, err: error }, 'Kubernetes Event not written')
        return 'failed'
      }
    },
  }
}

/** The object to create for a note; its name is the same for what is the same event. */
export function eventObject(
  event: EventNote,
  { clock, controller, instance }: Omit<RecorderOptions, 'client' | 'log'>,
) {
  const { regarding, type, reason, action } = event
  const note = cutToBytes(event.note, noteBytesMax)
  const sameness = event.sameness ?? event.note
  const hash = createHash('sha256')
    .update(JSON.stringify([regarding.uid, regarding.kind, reason, sameness]))
    .digest('hex')
    .slice(0, 16)
  const base = regarding.name.slice(0, nameLengthMax - hash.length - 1).replace(/[-.]+$/, '')
  return {
    apiVersion: 'events.k8s.io/v1',
    kind: 'Event',
    metadata: { name: `${base}.${hash}`, namespace: regarding.namespace || 'default' },
    eventTime: microTime(clock.now()),
    type,
    reason: cutToBytes(reason, wordBytesMax),
    action: cutToBytes(action, wordBytesMax),
    note,
    regarding,
    reportingController: controller,
    reportingInstance: cutToBytes(instance, wordBytesMax),
  }
}
