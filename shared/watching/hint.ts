import type { ResyncMode } from '../cloudevents/envelope.ts'
import { objectEvent, resyncRequest } from '../cloudevents/envelope.ts'
import type { CloudEvent } from '../cloudevents/event.ts'
import { apiVersion } from '../kinds/mutants.ts'

/** What waits in the queue: the ingredients of one event, smaller than the event. */
export type Hint = ObjectHint | ResyncHint

export interface ObjectHint {
  verb: 'applied' | 'deleted'
  /** The object that deserves a look; never a child. */
  owner: { kind: string; namespace: string; name: string; uid: string }
  /** What changed: the owner or a child of it. */
  changed: { uid: string; resourceVersion: string }
  time: Date
}

/** Asks for one look at everything. */
export interface ResyncHint {
  verb: 'resync'
  mode: ResyncMode
  tick: string
  time: Date
}

/** The queue's key: one entry per object, and one for each mode of the resync. */
export function keyOf(hint: Hint): string {
  if (hint.verb === 'resync') return `resync/${hint.mode}`
  const { kind, namespace, name } = hint.owner
  return `${kind}/${namespace}/${name}`
}

/** The same hint makes the same event, however often it is sent. */
export function eventOf(hint: Hint, cluster: string): CloudEvent {
  const { time } = hint
  if (hint.verb === 'resync')
    return resyncRequest({ cluster, from: 'watcher', mode: hint.mode, tick: hint.tick, cause: 'start', time })
  const { verb, changed } = hint
  const owner = { apiVersion, ...hint.owner }
  return objectEvent({
    cluster,
    verb,
    owner,
    changed,
    cause: changed.uid === owner.uid ? 'object' : 'child',
    time,
  })
}
