import type { Clock } from '../clock.ts'
import { events, type KubeObject, type StoredObject } from '../kinds/object.ts'
import type { CallOptions, KubeClient } from '../kube/client.ts'
import { isConflict } from '../kube/errors.ts'
import type { ObjectEvent } from './problems.ts'
import { hashOf } from './values.ts'

/** Kubernetes Events (events.k8s.io/v1) on objects: what they look like, and how repeats become a series. */

/** Of the note, in bytes of UTF-8 (the API refuses more). */
export const noteBytesMax = 1024
/** Leaves room for the hash in a name of at most 253 characters. */
const nameStartMax = 200
/** A repeat within this time is not written. */
const repeatMs = 600_000

export interface Reporter {
  /** Who reports, as a qualified name: `neiam.org/mutation`. */
  controller: string
  /** Which process of it. */
  instance: string
}

/**
 * The Kubernetes Event for what happened. Its name comes from the object's uid, the reason, the variant and the note
 * (which cannot change after it was written), so that the same news has the same name wherever it is told.
 */
export function eventObject(event: ObjectEvent, now: Date, reporter: Reporter): KubeObject {
  const { regarding, type, reason, variant = '' } = event
  const note = shortenedUtf8(event.note, noteBytesMax)
  const start = regarding.name.slice(0, nameStartMax).replace(/[^a-z0-9]+$/, '')
  const { apiVersion, kind, namespace, name, uid } = regarding
  return {
    apiVersion: 'events.k8s.io/v1',
    kind: 'Event',
    metadata: {
      name: `${start}.${hashOf([uid ?? '', reason, variant, note])}`,
      ...(namespace !== undefined && { namespace }),
    },
    eventTime: microTime(now),
    reportingController: reporter.controller,
    reportingInstance: reporter.instance.slice(0, 128),
    action: 'Reconcile',
    reason,
    regarding: { apiVersion, kind, name, ...(namespace && { namespace }), ...(uid && { uid }) },
    note,
    type,
  }
}

/** What to write over an Event that is told again, or undefined when it was told lately. */
export function repeatedEvent(live: StoredObject, now: Date): KubeObject | undefined {
  const series = live.series as { count?: number; lastObservedTime?: string } | undefined
  const lastMs = Date.parse(series?.lastObservedTime ?? String(live.eventTime))
  if (now.getTime() - lastMs < repeatMs) return undefined
  return { ...live, series: { count: (series?.count ?? 1) + 1, lastObservedTime: microTime(now) } }
}

/** A time with six fraction digits: the API refuses three in a MicroTime. */
export function microTime(time: Date): string {
  return time.toISOString().replace('Z', '000Z')
}

/** At most `bytes` bytes of a text, cut between characters, with a mark where it was cut. */
export function shortenedUtf8(text: string, bytes: number): string {
  const wellFormed = text.toWellFormed()
  if (Buffer.byteLength(wellFormed) <= bytes) return wellFormed
  const room = bytes - Buffer.byteLength('…')
  const { written } = new TextEncoder().encodeInto(wellFormed, new Uint8Array(room))
  return `${Buffer.from(wellFormed).subarray(0, written).toString()}…`
}

/**
 * Records Kubernetes Events through a client: one request for news, three when it was told before and long enough ago.
 * Throws what the client throws; whether a lost Event matters is for the caller to say.
 */
export function objectEventRecorder(options: {
  client: KubeClient
  clock: Clock
  reporter: Reporter
}): (event: ObjectEvent, call?: CallOptions) => Promise<void> {
  const { client, clock, reporter } = options
  return async (event, call = {}) => {
    const object = eventObject(event, clock.now(), reporter)
    try {
      await client.create(events, object, call)
    } catch (error) {
      if (!isConflict(error)) throw error
      if (event.once) return
      const target = { namespace: object.metadata?.namespace, name: object.metadata?.name ?? '' }
      const live = await client.get(events, target, call)
      const again = live && repeatedEvent(live, clock.now())
      if (again) await client.replace(events, again, call)
    }
  }
}
