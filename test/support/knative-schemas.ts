import { Broker } from '@kubernetes-models/knative/eventing.knative.dev/v1/Broker'
import { Trigger } from '@kubernetes-models/knative/eventing.knative.dev/v1/Trigger'
import { EventPolicy } from '@kubernetes-models/knative/eventing.knative.dev/v1alpha1/EventPolicy'
import { Service } from '@kubernetes-models/knative/serving.knative.dev/v1/Service'
import { PingSource } from '@kubernetes-models/knative/sources.knative.dev/v1/PingSource'
import { SinkBinding } from '@kubernetes-models/knative/sources.knative.dev/v1/SinkBinding'
import type { KubeObject } from '../../shared/kinds/object.ts'

/** Knative's types as a package has them, for machines that have neither Knative's CRDs nor Knative. */
export const models = [Broker, Trigger, EventPolicy, Service, PingSource, SinkBinding]

/** What the package asks for and Knative does not: a status is Knative's to write, and a probe's port its to fill in. */
const asksTooMuch =
  /^data must have required property status$|Probe\/httpGet must have required property port$/

/** What is wrong with an object, one problem each. */
export function problemsOf(object: KubeObject): string[] {
  const Model = models.find(
    ({ apiVersion, kind }) => apiVersion === object.apiVersion && kind === object.kind,
  )
  if (!Model) return [`there is no schema for ${object.apiVersion} ${object.kind}`]
  try {
    new Model(object as never).validate()
    return []
  } catch (error) {
    return (error as Error).message.split(', ').filter((problem) => !asksTooMuch.test(problem))
  }
}
