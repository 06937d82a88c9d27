import { isObject, type Ref } from '../kinds/object.ts'
import type { CloudEvent } from './event.ts'
import { parseSubject, refOfSubject, subjectOf } from './subject.ts'

/** The event contract: which events there are, and what stands in them (see the README). */

export const objectTypes = {
  /** An object, or a child of it, was added or changed. The two cannot be told apart after a relist. */
  applied: 'org.neiam.object.applied',
  deleted: 'org.neiam.object.deleted',
  /** The periodic look found that the object needs work. */
  resync: 'org.neiam.object.resync',
  /** The outcome, as a reply: something was written. Never work for anybody. */
  reconciled: 'org.neiam.object.reconciled',
} as const

export type ObjectVerb = 'applied' | 'deleted' | 'resync'

/** Asks the resync function for a look at everything, or for its next page. */
export const resyncRequestType = 'org.neiam.resync.requested'
/** What Knative's PingSource sends. */
export const pingType = 'dev.knative.sources.ping'
/** Knative's ApiServerSource; then `.ref.` or `.resource.`, then `add`, `update` or `delete`. */
export const apiServerSourceType = /^dev\.knative\.apiserver\.(ref|resource)\.(add|update|delete)$/

/** Why an event was sent; for people and metrics only. */
export type Cause = 'object' | 'child' | 'start' | 'resync'

/** One of our objects, a particular incarnation. */
export type OwnerRef = Ref & { namespace: string; uid: string }

export interface ObjectEventOptions {
  /** The cluster's name, for `source`. */
  cluster: string
  verb: ObjectVerb
  /** The object that shall be reconciled (never a child). */
  owner: OwnerRef
  /** What changed, the owner itself or a child of it; not for a resync. */
  changed?: { uid: string; resourceVersion: string }
  /** For a resync: which one, the same for a run and its repetition. */
  tick?: string
  cause: Cause
  time?: Date
  traceparent?: string | undefined
}

/**
 * The event that says "look at this object". Its id is made of the owner's uid, the verb, and the uid and
 * resourceVersion of what changed (or the resync's tick), so that a resend is the same event and no two distinct
 * events of a source share an id. The data is a reference, never the object.
 */
export function objectEvent(options: ObjectEventOptions): CloudEvent {
  const { cluster, verb, owner, changed, cause } = options
  const isResync = verb === 'resync'
  const rest = isResync ? [options.tick ?? ''] : [changed?.uid ?? '', changed?.resourceVersion ?? '']
  if (rest.includes(''))
    throw new TypeError(
      `An event ${verb} needs ${isResync ? 'a tick' : 'the uid and version of what changed'}`,
    )
  const subject = subjectOf(owner)
  return {
    specversion: '1.0',
    id: [owner.uid, verb, ...rest].join('.'),
    source: `/clusters/${cluster}/${isResync ? 'resync' : 'watcher'}`,
    type: objectTypes[verb],
    subject,
    ...(options.time && { time: options.time.toISOString() }),
    datacontenttype: 'application/json',
    extensions: {
      partitionkey: subject,
      ...objectExtensions(owner),
      cause,
      ...(options.traceparent && { traceparent: options.traceparent }),
    },
    data: {
      apiVersion: owner.apiVersion,
      kind: owner.kind,
      namespace: owner.namespace,
      name: owner.name,
      uid: owner.uid,
      ...(changed?.uid === owner.uid && { resourceVersion: changed.resourceVersion }),
    },
  }
}

/** The names under which Knative's own ApiServerSource tells what an event is about; Triggers filter on them. */
function objectExtensions(ref: Ref): Record<string, string> {
  return {
    apiversion: ref.apiVersion,
    kind: ref.kind,
    name: ref.name,
    ...(ref.namespace && { namespace: ref.namespace }),
  }
}

/** The outcome of a reconcile that wrote something, as the reply to the event `cause`. */
export function reconciledEvent(options: {
  cluster: string
  functionName: string
  ref: Ref & { namespace: string }
  /** The event that was worked on. */
  cause: CloudEvent
  time?: Date
}): CloudEvent {
  const { ref, cause } = options
  const subject = subjectOf(ref)
  return {
    specversion: '1.0',
    id: `${cause.id}.reconciled`,
    source: `/clusters/${options.cluster}/functions/${options.functionName}`,
    type: objectTypes.reconciled,
    subject,
    ...(options.time && { time: options.time.toISOString() }),
    datacontenttype: 'application/json',
    extensions: {
      partitionkey: subject,
      ...objectExtensions(ref),
      ...(cause.extensions.traceparent && { traceparent: cause.extensions.traceparent }),
    },
    data: { apiVersion: ref.apiVersion, kind: ref.kind, namespace: ref.namespace, name: ref.name },
  }
}

/** `needed` looks and sends only what needs work; `full` sends every object. */
export type ResyncMode = 'needed' | 'full'

/** Asks for a resync. `page` is where a run that ran out of time goes on; its form is the resync function's own. */
export function resyncRequest(options: {
  cluster: string
  /** Who asks: a part of `source`. */
  from: 'watcher' | 'resync'
  mode: ResyncMode
  /** Names the run; the same request sent twice has the same. */
  tick: string
  page?: { number: number; position: unknown }
  cause?: Cause
  time?: Date
}): CloudEvent {
  const { mode, tick, page } = options
  return {
    specversion: '1.0',
    id: `resync.${mode}.${tick}.${page?.number ?? 0}`,
    source: `/clusters/${options.cluster}/${options.from}`,
    type: resyncRequestType,
    ...(options.time && { time: options.time.toISOString() }),
    datacontenttype: 'application/json',
    extensions: { cause: options.cause ?? 'resync' },
    data: { mode, tick, ...(page && { page }) },
  }
}

/**
 * The object that an event's subject names, with the uid that its data tells, if it does. Throws an
 * `UnreadableEvent` for a subject that is malformed, and gives undefined for a kind that is not ours.
 */
export function refOf(event: CloudEvent): (Ref & { namespace: string }) | undefined {
  const ref = refOfSubject(parseSubject(event.subject))
  const uid = isObject(event.data) ? event.data.uid : undefined
  return ref && typeof uid === 'string' ? { ...ref, uid } : ref
}
