import type { KubeObject } from '../../kinds/object.ts'
import { type Cause, cause } from '../status.ts'
import { causesOf, type Fields, immutableCauses } from './fields.ts'
import { qualifiedNameErrors } from './names.ts'

const noteMaxBytes = 1024
const shortMaxBytes = 128

/**
 * What is wrong with an Event of events.k8s.io. The causes name fields as core Events do (`message` for `note`), as the
 * server's do.
 */
export function eventCauses(event: KubeObject, live: KubeObject | undefined): Cause[] {
  const { namespace } = (event.regarding ?? {}) as Fields
  if (!event.eventTime) return [...olderCauses(event), cause.required('eventTime')]
  return [
    // What a cluster-wide object does is told in one of these namespaces.
    ...(namespace ? [] : placeCauses(event, ['default', 'kube-system'])),
    ...typeCauses(event),
    ...reporterCauses(event),
    ...(live ? [] : deprecatedCauses(event)),
    ...seriesCauses(event.series as Fields | undefined),
    ...(live ? changeCauses(event, live) : []),
  ]
}

/** A core Event is held to the newer rules only as far as it gives the newer time. */
export function coreEventCauses(event: KubeObject, live: KubeObject | undefined): Cause[] {
  if (!event.eventTime) return olderCauses(event)
  const { namespace } = (event.regarding ?? {}) as Fields
  const reporter = reporterCauses(event).map((one) =>
    one.field === 'reportingController' ? { ...one, field: 'reportingComponent' } : one,
  )
  return [
    ...(namespace ? [] : placeCauses(event, ['default'])),
    ...reporter,
    ...(live ? changeCauses(event, live) : []),
  ]
}

/** An Event without the newer time stands in the namespace of what it is about. */
function olderCauses(event: KubeObject): Cause[] {
  const { namespace = '' } = (event.regarding ?? {}) as Record<string, string>
  return placeCauses(event, [namespace === '' ? 'default' : namespace])
}

/** The Event must stand in one of these namespaces. */
function placeCauses(event: KubeObject, namespaces: string[]): Cause[] {
  if (namespaces.includes(event.metadata?.namespace ?? '')) return []
  const { namespace = '' } = (event.regarding ?? {}) as Record<string, string>
  return [cause.invalid('involvedObject.namespace', namespace, 'does not match event.namespace')]
}

function typeCauses({ type = '' }: KubeObject): Cause[] {
  if (type === 'Normal' || type === 'Warning') return []
  return [cause.invalid('type', '', `has invalid value: ${type}`)]
}

function reporterCauses(event: KubeObject): Cause[] {
  const controller = String(event.reportingController ?? '')
  const limited = { reportingInstance: shortMaxBytes, action: shortMaxBytes, reason: shortMaxBytes }
  return [
    ...(controller === '' ? [cause.required('reportingController')] : []),
    ...causesOf('reportingController', controller, qualifiedNameErrors(controller)),
    ...Object.entries(limited).flatMap(([field, max]) =>
      event[field] ? longCauses(field, event[field], max) : [cause.required(field)],
    ),
    ...longCauses('message', event.note, noteMaxBytes),
  ]
}

function longCauses(field: string, value: unknown, max: number): Cause[] {
  if (Buffer.byteLength(String(value ?? '')) <= max) return []
  return [cause.invalid(field, '', `can have at most ${max} characters`)]
}

function deprecatedCauses(event: KubeObject): Cause[] {
  const old: Record<string, unknown> = {
    firstTimestamp: event.deprecatedFirstTimestamp,
    lastTimestamp: event.deprecatedLastTimestamp,
    count: event.deprecatedCount,
    source: Object.keys((event.deprecatedSource ?? {}) as Fields).length > 0,
  }
  return Object.entries(old).flatMap(([field, isSet]) =>
    isSet ? [cause.invalid(field, '', 'needs to be unset')] : [],
  )
}

function seriesCauses(series: Fields | undefined): Cause[] {
  if (!series) return []
  return [
    ...(Number(series.count ?? 0) >= 2 ? [] : [cause.invalid('series.count', '', 'should be at least 2')]),
    ...(series.lastObservedTime ? [] : [cause.required('series.lastObservedTime')]),
  ]
}

/** Only the series may change. */
const constant: [field: string, coreName: string][] = [
  ['reason', 'reason'],
  ['note', 'message'],
  ['deprecatedFirstTimestamp', 'firstTimestamp'],
  ['deprecatedLastTimestamp', 'lastTimestamp'],
  ['deprecatedCount', 'count'],
  ['type', 'type'],
  ['eventTime', 'eventTime'],
  ['action', 'action'],
  ['reportingController', 'reportingController'],
  ['reportingInstance', 'reportingInstance'],
]

function changeCauses(event: KubeObject, live: KubeObject): Cause[] {
  return [
    ...referenceCauses('involvedObject', event.regarding, live.regarding),
    ...constant.flatMap(([field, coreName]) => immutableCauses(coreName, event[field], live[field])),
    ...referenceCauses('related', event.related, live.related),
  ]
}

/** A reference is shown as the server's own type spells it. */
function referenceCauses(field: string, after: unknown, before: unknown): Cause[] {
  const shown = (reference: unknown) => {
    const { kind, namespace, name, uid, apiVersion, resourceVersion, fieldPath } = (reference ??
      {}) as Record<string, string>
    const all = { Kind: kind, Namespace: namespace, Name: name, UID: uid, APIVersion: apiVersion }
    const rest = { ResourceVersion: resourceVersion, FieldPath: fieldPath }
    return Object.fromEntries(Object.entries({ ...all, ...rest }).map(([key, value]) => [key, value ?? '']))
  }
  return immutableCauses(
    field,
    after === undefined ? undefined : shown(after),
    before === undefined ? undefined : shown(before),
  )
}
