import { objectTypes, pingType, resyncRequestType } from '../shared/cloudevents/envelope.ts'
import { mutantDeployments, mutations } from '../shared/kinds/mutants.ts'
import type { KubeObject } from '../shared/kinds/object.ts'
import { brokerName, type FunctionName, head } from './names.ts'

/** Broker, Triggers, cron and the binding of the two senders to the Broker. */

/**
 * At once, then 10, 20 … 70 s apart: 280 s of waiting and at most 9 timeouts, within the quarter of an hour after which
 * Knative's in-memory channel gives a delivery up. (Exponential has no cap in Knative.)
 */
export const delivery = {
  retry: 8,
  backoffPolicy: 'linear',
  backoffDelay: 'PT10S',
  timeout: 'PT30S',
  deadLetterSink: { ref: functionRef('dead-letter') },
}

const workTypes = [objectTypes.applied, objectTypes.deleted, objectTypes.resync]

export function eventing(): KubeObject[] {
  return [
    head('eventing.knative.dev/v1', 'Broker', brokerName),
    // By type as well as kind: the outcome of a reconcile (a reply) must never come back as work.
    trigger('mutation', [{ exact: { kind: mutations.kind } }, anyType(workTypes)]),
    trigger('mutant-deployment', [{ exact: { kind: mutantDeployments.kind } }, anyType(workTypes)]),
    trigger('resync', [anyType([pingType, resyncRequestType])]),
    pingSource('resync', '*/5 * * * *', 'needed'),
    // Not at a minute when the other fires too.
    pingSource('resync-full', '7 * * * *', 'full'),
    sinkBinding('watcher', { apiVersion: 'apps/v1', kind: 'Deployment', name: 'watcher' }),
    sinkBinding('resync', functionRef('resync')),
  ]
}

function functionRef(name: FunctionName) {
  return { apiVersion: 'serving.knative.dev/v1', kind: 'Service', name }
}

function brokerRef() {
  return { ref: { apiVersion: 'eventing.knative.dev/v1', kind: 'Broker', name: brokerName } }
}

function anyType(types: string[]) {
  return { any: types.map((type) => ({ exact: { type } })) }
}

function trigger(name: FunctionName, filters: object[]): KubeObject {
  return {
    ...head('eventing.knative.dev/v1', 'Trigger', name, name),
    spec: { broker: brokerName, filters, subscriber: { ref: functionRef(name) }, delivery },
  }
}

/** Sends to the Broker, so that the delivery of the Trigger holds for the cron too. */
function pingSource(name: string, schedule: string, mode: 'needed' | 'full'): KubeObject {
  return {
    ...head('sources.knative.dev/v1', 'PingSource', name, 'resync'),
    spec: { schedule, contentType: 'application/json', data: JSON.stringify({ mode }), sink: brokerRef() },
  }
}

function sinkBinding(
  name: 'watcher' | 'resync',
  subject: { apiVersion: string; kind: string; name: string },
): KubeObject {
  return {
    ...head('sources.knative.dev/v1', 'SinkBinding', name, name),
    spec: { subject, sink: brokerRef() },
  }
}
