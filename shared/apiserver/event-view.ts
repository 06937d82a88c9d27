import { isObject, type KubeObject } from '../kinds/object.ts'
import type { View } from './resources.ts'

/** The old name of each field of an Event, by its name in events.k8s.io. */
const oldNames: Record<string, string> = {
  regarding: 'involvedObject',
  note: 'message',
  reportingController: 'reportingComponent',
  deprecatedSource: 'source',
  deprecatedFirstTimestamp: 'firstTimestamp',
  deprecatedLastTimestamp: 'lastTimestamp',
  deprecatedCount: 'count',
}
const newNames = Object.fromEntries(Object.entries(oldNames).map(([name, old]) => [old, name]))

function renamed(object: KubeObject, names: Record<string, string>, apiVersion: string): KubeObject {
  const entries = Object.entries(object).map(([name, value]) => [names[name] ?? name, value])
  return { ...Object.fromEntries(entries), apiVersion }
}

/** Core `v1` Events: the same objects as those of events.k8s.io/v1, under older names. */
export const coreEventView: View = {
  toWire(object) {
    const event = renamed(object, oldNames, 'v1')
    // The API always gives these, empty or not.
    return {
      ...event,
      source: isObject(event.source) ? event.source : {},
      firstTimestamp: event.firstTimestamp ?? null,
      lastTimestamp: event.lastTimestamp ?? null,
      reportingComponent: event.reportingComponent ?? '',
      reportingInstance: event.reportingInstance ?? '',
    }
  },
  fromWire: (object) => renamed(object, newNames, 'events.k8s.io/v1'),
}
