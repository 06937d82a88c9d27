import { Broker } from '@kubernetes-models/knative/eventing.knative.dev/v1/Broker'
import { Trigger } from '@kubernetes-models/knative/eventing.knative.dev/v1/Trigger'
import { EventPolicy } from '@kubernetes-models/knative/eventing.knative.dev/v1alpha1/EventPolicy'
import { Service } from '@kubernetes-models/knative/serving.knative.dev/v1/Service'
import { PingSource } from '@kubernetes-models/knative/sources.knative.dev/v1/PingSource'
import { SinkBinding } from '@kubernetes-models/knative/sources.knative.dev/v1/SinkBinding'
import { describe, expect, it } from 'vitest'
import { kustomizations } from '../../knative/render.ts'
import type { KubeObject } from '../../shared/kinds/object.ts'

/**
 * Knative's types as a package has them, for machines that have neither Knative's CRDs nor the real API server. What the
 * overlays patch is checked there.
 */

const models = [Broker, Trigger, EventPolicy, Service, PingSource, SinkBinding]
const objects = Object.values(kustomizations)
  .flatMap(({ files = {} }) => Object.values(files))
  .flatMap((make) => make())
const ofKnative = objects.filter(({ apiVersion }) => apiVersion?.includes('knative.dev'))

/** What the package asks for and Knative does not: a status is Knative's to write, and a probe's port its to fill in. */
const asksTooMuch =
  /^data must have required property status$|Probe\/httpGet must have required property port$/

/** What is wrong with an object, one problem each. */
function problemsOf(object: KubeObject): string[] {
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

describe("Knative's schemas", () => {
  it.each(ofKnative.map((object) => [object.kind, object.metadata?.name, object]))(
    'take %s %s',
    (...[, , object]) => {
      expect(problemsOf(object)).toEqual([])
    },
  )

  it('take each kind of Knative that is used', () => {
    expect(new Set(ofKnative.map(({ kind }) => kind))).toEqual(new Set(models.map(({ kind }) => kind)))
  })

  it.each([
    ['a retry in words', (text: string) => text.replace('"retry":8', '"retry":"often"'), 'Trigger', /retry/],
    [
      'a port in words',
      (text: string) => text.replace('"containerPort":8080', '"containerPort":"http"'),
      'Service',
      /containerPort/,
    ],
    ['no subscriber', (text: string) => text.replace('"subscriber"', '"subscribr"'), 'Trigger', /subscriber/],
  ])('refuse %s', (_, broken, kind, problem) => {
    const sound = JSON.stringify(ofKnative.find((object) => object.kind === kind))
    expect(problemsOf(JSON.parse(broken(sound)))).toEqual([expect.stringMatching(problem)])
  })
})
