import { expect, it } from 'vitest'
import { mutations } from '../../shared/kinds/mutants.ts'
import type { StoredObject } from '../../shared/kinds/object.ts'
import { desiredOf } from '../../shared/reconcile/desired.ts'
import { planAll } from '../../shared/reconcile/plan.ts'
import { mutation } from '../support/builders.ts'

/** With a broken base nothing is applied and nothing goes; the plan tells what runs, and what cannot be made. */

const object = mutation('shop')
  .on({ metadata: { name: 'web' }, spec: {} })
  .with('red', 1)
  .with('blue', 1)
  .with('green', 1)
  .with('Not OK', 1)

function childOf(name: string, uid: string, label?: string): StoredObject {
  const controller = { apiVersion: 'neiam.org/v1', kind: 'Mutation', name: 'shop', uid, controller: true }
  const labels = { ...(label !== undefined && { mutation: label }) }
  return {
    metadata: {
      name,
      namespace: 'shop',
      uid: name,
      resourceVersion: '1',
      labels,
      ownerReferences: [controller],
    },
  }
}

const settings = { adoption: 'label', now: new Date(0), generation: 1, isResync: false } as const
const planOf = (stored: StoredObject, children: StoredObject[]) =>
  planAll(desiredOf(mutations, stored), children, undefined, settings)

const told = (stored: StoredObject, children: StoredObject[]) =>
  planOf(stored, children).map(({ variant, child, step, verdict }) => [
    variant.label,
    variant.name,
    child?.metadata.name,
    step,
    verdict?.state,
  ])

it('each variant is told as it runs: by its name, else by its label under an older name; what does not run is Invalid', () => {
  const stored = object.stored()
  const { uid } = stored.metadata
  const children = [
    childOf('old-red', uid, 'red'),
    childOf('web-red', uid, 'red'),
    childOf('old-blue', uid, 'blue'),
    childOf('web-green', 'somebody else', 'green'),
  ]
  expect(told(stored, children)).toEqual([
    ['red', 'web-red', 'web-red', undefined, undefined],
    ['blue', 'old-blue', 'old-blue', undefined, undefined],
    ['green', 'web-green', undefined, undefined, 'Invalid'],
    ['Not OK', 'web-Not OK', undefined, undefined, 'Invalid'],
  ])
})

it('what cannot be made says that the base must be mended first', () => {
  const plans = planOf(object.stored(), [])
  const messages = plans.map(({ verdict }) => verdict?.message)
  expect(messages.slice(0, 3)).toEqual(Array(3).fill('Cannot be made before spec.deployment is mended'))
  expect(messages[3]).toContain('Not OK')
})

it('without variants, whatever runs is told by its label', () => {
  const stored = { ...object.stored(), spec: { deployment: { spec: {} }, variants: null } } as StoredObject
  const { uid } = stored.metadata
  const children = [
    childOf('web-red', uid, 'red'),
    childOf('odd', uid),
    childOf('other', 'somebody else', 'red'),
  ]
  expect(told(stored, children)).toEqual([
    ['red', 'web-red', 'web-red', undefined, undefined],
    ['', 'odd', 'odd', undefined, undefined],
  ])
})
