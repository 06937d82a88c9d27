import { isObject, type KubeObject } from '../../kinds/object.ts'
import { type Column, fieldAt } from '../resources.ts'

/** What `kubectl get` shows of the kinds that need no CRD. */

/** A length of time as kubectl shows it, coarser the longer it is: `42s`, `3m7s`, `95m`, `7h12m`, `3d4h`, `2y`. */
export function humanDuration(ms: number): string {
  const seconds = Math.floor(ms / 1000)
  if (seconds < -1) return '<invalid>'
  if (seconds < 0) return '0s'
  if (seconds < 120) return `${seconds}s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 10) return two(minutes, 'm', seconds % 60, 's')
  const hours = Math.floor(minutes / 60)
  if (hours < 3) return `${minutes}m`
  if (hours < 8) return two(hours, 'h', minutes % 60, 'm')
  const days = Math.floor(hours / 24)
  if (hours < 48) return `${hours}h`
  if (days < 8) return two(days, 'd', hours % 24, 'h')
  const years = Math.floor(days / 365)
  if (years < 2) return `${days}d`
  return years < 8 ? two(years, 'y', days % 365, 'd') : `${years}y`
}

function two(first: number, unit: string, second: number, smaller: string): string {
  return second === 0 ? `${first}${unit}` : `${first}${unit}${second}${smaller}`
}

/** How long ago a stamp was, or `<unknown>` without one. */
export function age(stamp: unknown, now: Date): string {
  const ms = typeof stamp === 'string' ? Date.parse(stamp) : Number.NaN
  return Number.isNaN(ms) ? '<unknown>' : humanDuration(now.getTime() - ms)
}

const text = (path: string[]) => (object: KubeObject) => String(fieldAt(object, path) ?? '')
const count = (path: string[]) => (object: KubeObject) => Number(fieldAt(object, path) ?? 0)

export const nameColumn: Column = {
  name: 'Name',
  type: 'string',
  format: 'name',
  description: 'The name, unique among the objects of its kind in a namespace.',
  cell: text(['metadata', 'name']),
}

const ageColumn: Column = {
  name: 'Age',
  type: 'string',
  description: 'How long ago the object was created.',
  cell: (object, now) => age(object.metadata?.creationTimestamp, now),
}

const string = (name: string, description: string, cell: Column['cell'], priority = 0): Column => ({
  name,
  type: 'string',
  description,
  cell,
  priority,
})

const sizeOf = (value: unknown) => (isObject(value) ? Object.keys(value).length : 0)

export const namespaceColumns: Column[] = [
  nameColumn,
  string('Status', 'Active, or Terminating while it is being deleted.', text(['status', 'phase'])),
  ageColumn,
]

export const configMapColumns: Column[] = [
  nameColumn,
  string('Data', 'How many keys it has.', (object) => sizeOf(object.data) + sizeOf(object.binaryData)),
  ageColumn,
]

export const secretColumns: Column[] = [
  nameColumn,
  string('Type', 'What sort of Secret it is.', text(['type'])),
  string('Data', 'How many keys it has.', (object) => sizeOf(object.data)),
  ageColumn,
]

export const leaseColumns: Column[] = [
  nameColumn,
  string('Holder', 'Who holds the lease.', text(['spec', 'holderIdentity'])),
  ageColumn,
]

export const crdColumns: Column[] = [
  nameColumn,
  {
    name: 'Created At',
    type: 'date',
    description: 'When the object was created.',
    cell: (object) => object.metadata?.creationTimestamp ?? '<unknown>',
  },
]

function containersOf(object: KubeObject): { name: string; image: string }[] {
  const containers = fieldAt(object, ['spec', 'template', 'spec', 'containers'])
  return Array.isArray(containers) ? containers : []
}

/** A label selector as text: `a=b,c in (d,e)`. */
export function selectorText(selector: unknown): string {
  if (!isObject(selector)) return '<none>'
  const labels = Object.entries((selector.matchLabels ?? {}) as Record<string, string>).map(
    ([key, value]) => `${key}=${value}`,
  )
  const expressions = (Array.isArray(selector.matchExpressions) ? selector.matchExpressions : []).map(
    ({ key, operator, values = [] }: { key: string; operator: string; values?: string[] }) => {
      if (operator === 'Exists') return key
      if (operator === 'DoesNotExist') return `!${key}`
      return `${key} ${operator.toLowerCase()} (${values.toSorted().join(',')})`
    },
  )
  const parts = [...labels, ...expressions]
  return parts.length === 0 ? '<none>' : parts.sort().join(',')
}

export const deploymentColumns: Column[] = [
  nameColumn,
  string('Ready', 'Pods that are ready, of those wanted.', (object) => {
    const ready = count(['status', 'readyReplicas'])(object)
    return `${ready}/${count(['spec', 'replicas'])(object)}`
  }),
  string('Up-to-date', 'Pods of the newest template.', count(['status', 'updatedReplicas'])),
  string('Available', 'Pods that have been ready for long enough.', count(['status', 'availableReplicas'])),
  ageColumn,
  string(
    'Containers',
    'The names of the containers.',
    (o) =>
      containersOf(o)
        .map((c) => c.name)
        .join(','),
    1,
  ),
  string(
    'Images',
    'The images of the containers.',
    (o) =>
      containersOf(o)
        .map((c) => c.image)
        .join(','),
    1,
  ),
  string('Selector', 'Which pods are its own.', (o) => selectorText(fieldAt(o, ['spec', 'selector'])), 1),
]

/** A count and the time since the first, as kubectl shows a repeated event: `5m (x3 over 20m)`. */
function lastSeen(event: KubeObject, now: Date): string {
  const last =
    fieldAt(event, ['series', 'lastObservedTime']) ?? event.deprecatedLastTimestamp ?? event.eventTime
  const first = event.deprecatedFirstTimestamp ?? event.eventTime
  const times = Number(fieldAt(event, ['series', 'count']) ?? event.deprecatedCount ?? 1)
  const since = age(last, now)
  return times > 1 ? `${since} (x${times} over ${age(first, now)})` : since
}

function sourceOf(event: KubeObject): string {
  const component = event.reportingController || fieldAt(event, ['deprecatedSource', 'component']) || ''
  const host = event.reportingInstance || fieldAt(event, ['deprecatedSource', 'host']) || ''
  return [component, host].filter((part) => part !== '').join(', ')
}

/** Of Events as they are stored (events.k8s.io). */
export const eventColumns: Column[] = [
  string('Last Seen', 'How long ago it was seen last.', lastSeen),
  string('Type', 'Normal or Warning.', text(['type'])),
  string('Reason', 'A short word for why.', text(['reason'])),
  string('Object', 'What it is about.', (event) => {
    const kind = text(['regarding', 'kind'])(event).toLowerCase()
    return `${kind}/${text(['regarding', 'name'])(event)}`
  }),
  string('Subobject', 'Which part of the object it is about.', text(['regarding', 'fieldPath']), 1),
  string('Source', 'Who reported it.', sourceOf, 1),
  string('Message', 'What happened, for people.', (event) => text(['note'])(event).trim()),
  string(
    'First Seen',
    'How long ago it was seen first.',
    (event, now) => age(event.deprecatedFirstTimestamp ?? event.eventTime, now),
    1,
  ),
  string(
    'Count',
    'How often it was seen.',
    (event) => Number(fieldAt(event, ['series', 'count']) ?? event.deprecatedCount ?? 1),
    1,
  ),
  { ...nameColumn, priority: 1 },
]
