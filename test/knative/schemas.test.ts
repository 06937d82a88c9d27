import { describe, expect, it } from 'vitest'
import { kustomizations } from '../../knative/render.ts'
import { models, problemsOf } from '../support/knative-schemas.ts'

/** Each file by Knative's schemas; what the overlays patch is looked at where kubectl can build them. */

const objects = Object.values(kustomizations)
  .flatMap(({ files = {} }) => Object.values(files))
  .flatMap((make) => make())
const ofKnative = objects.filter(({ apiVersion }) => apiVersion?.includes('knative.dev'))

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
