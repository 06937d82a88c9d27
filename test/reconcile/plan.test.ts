import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { mutations, type VariantState } from '../../shared/kinds/mutants.ts'
import type { StoredObject } from '../../shared/kinds/object.ts'
import { claimOf, takenOver } from '../../shared/reconcile/adoption.ts'
import { childStateOf } from '../../shared/reconcile/child-state.ts'
import { desiredOf } from '../../shared/reconcile/desired.ts'
import { noteBytesMax, shortenedUtf8 } from '../../shared/reconcile/object-events.ts'
import { childrenToPrune } from '../../shared/reconcile/plan.ts'
import { eventsFor } from '../../shared/reconcile/problems.ts'
import { repairOf, repairsAtOnce } from '../../shared/reconcile/repair.ts'
import { statusOf, summaryOf } from '../../shared/reconcile/status.ts'
import { mutation } from '../support/builders.ts'

const parent = mutation('shop').with('red', 1).stored()
const desired = desiredOf(mutations, parent)
const { owner } = desired

function deployment(metadata: Partial<StoredObject['metadata']>): StoredObject {
  return { metadata: { name: 'web-red', namespace: 'shop', uid: 'c', resourceVersion: '5', ...metadata } }
}

const controlledBy = (uid: string, kind = 'Mutation', name = 'shop') => ({
  ownerReferences: [{ apiVersion: 'neiam.org/v1', kind, name, uid, controller: true }],
})

describe('claimOf', () => {
  const deletionTimestamp = '2026-01-01T00:00:00Z'
  const mutationLabel = { labels: { mutation: 'red' } }
  const byOlder = { managedFields: [{ manager: 'older', operation: 'Update', fieldsV1: {} }] }
  it.each([
    ['what we control is ours', controlledBy(owner.uid), 'label', 'ours'],
    ['what a former object of this name controls is not', controlledBy('dead'), 'always', 'foreign'],
    [
      'what a namesake of the other kind controls is not',
      controlledBy('x', 'MutantDeployment'),
      'always',
      'foreign',
    ],
    [
      'what we control and is being deleted is awaited',
      { ...controlledBy(owner.uid), deletionTimestamp },
      'label',
      'leaving',
    ],
    [
      'what a former object controls and is being deleted is awaited',
      { ...controlledBy('dead'), deletionTimestamp },
      'label',
      'leaving',
    ],
    [
      'what another controls and is being deleted is not',
      { ...controlledBy('x', 'Job', 'x'), deletionTimestamp },
      'label',
      'foreign',
    ],
    ['what nobody controls is not ours', {}, 'label', 'foreign'],
    ['… but with our owner label', { labels: { 'neiam.org/owner': 'shop' } }, 'label', 'ours'],
    ['… not with that of another', { labels: { 'neiam.org/owner': 'other' } }, 'label', 'foreign'],
    ['… but with the annotation', { annotations: { 'neiam.org/adopt': 'true' } }, 'label', 'ours'],
    ['… not with another value', { annotations: { 'neiam.org/adopt': 'yes' } }, 'label', 'foreign'],
    ['… but with "always"', {}, 'always', 'ours'],
    ['what the older operator left is not ours', { ...mutationLabel, ...byOlder }, 'label', 'foreign'],
    ['… but with "legacy"', { ...mutationLabel, ...byOlder }, 'legacy', 'ours'],
    ['… not without its managers', mutationLabel, 'legacy', 'foreign'],
    [
      '… not with the label of another variant',
      { labels: { mutation: 'blue' }, ...byOlder },
      'legacy',
      'foreign',
    ],
    [
      '… not with an owner label',
      { labels: { mutation: 'red', 'neiam.org/owner': 'x' }, ...byOlder },
      'legacy',
      'foreign',
    ],
    [
      '… not with an owner',
      {
        ...mutationLabel,
        ...byOlder,
        ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: 'x', uid: 'x' }],
      },
      'legacy',
      'foreign',
    ],
  ] as const)('%s', (_, metadata, adoption, is) => {
    const child = deployment(metadata as unknown as Partial<StoredObject['metadata']>)
    expect(claimOf(child, owner, 'red', { adoption, legacyManagers: ['older'] }).is).toBe(is)
  })
})

describe('takenOver', () => {
  const applied = { metadata: { labels: { app: 'web' } }, spec: { paused: true } }
  const settings = { adoption: 'label', legacyManagers: ['older'] } as const
  const ours = {
    manager: 'mutantops-operator',
    operation: 'Apply',
    apiVersion: 'apps/v1',
    fieldsType: 'FieldsV1',
  }
  const theirs = { 'f:metadata': { 'f:labels': { '.': {}, 'f:app': {}, 'f:x': {} } } }

  it('moves nothing once we have applied and nobody of old is left', () => {
    const entries = [
      { ...ours, fieldsV1: {} },
      { manager: 'kubectl-edit', operation: 'Update', fieldsV1: theirs },
    ]
    expect(takenOver(deployment({ managedFields: entries }), applied, settings)).toBeUndefined()
  })

  it('moves all of what the older operator wrote', () => {
    const entries = [
      { ...ours, fieldsV1: { 'f:spec': { 'f:paused': {} } } },
      { manager: 'older', operation: 'Update', fieldsV1: theirs },
    ]
    expect(takenOver(deployment({ managedFields: entries }), applied, settings)).toEqual([
      {
        ...ours,
        fieldsV1: { 'f:spec': { 'f:paused': {} }, 'f:metadata': { 'f:labels': { 'f:app': {}, 'f:x': {} } } },
      },
    ])
  })

  it('leaves to those of old what they write after we have applied', () => {
    const managedFields = [
      { ...ours, fieldsV1: {} },
      { manager: 'older', operation: 'Update', fieldsV1: theirs },
    ]
    const annotations = { 'neiam.org/applied': 'h' }
    expect(takenOver(deployment({ managedFields, annotations }), applied, settings)).toBeUndefined()
  })

  it('moves of what others wrote only what we apply, and nothing of status, scale and the controllers', () => {
    const status = {
      manager: 'kube-controller-manager',
      operation: 'Update',
      subresource: 'status',
      fieldsV1: { 'f:status': {} },
    }
    const revision = {
      manager: 'kube-controller-manager',
      operation: 'Update',
      fieldsV1: { 'f:metadata': { 'f:annotations': { 'f:r': {} } } },
    }
    const scale = {
      manager: 'autoscaler',
      operation: 'Update',
      subresource: 'scale',
      fieldsV1: { 'f:spec': { 'f:paused': {} } },
    }
    const entries = [{ manager: 'kubectl', operation: 'Update', fieldsV1: theirs }, status, revision, scale]
    expect(takenOver(deployment({ managedFields: entries }), applied, settings)).toEqual([
      {
        manager: 'kubectl',
        operation: 'Update',
        fieldsV1: { 'f:metadata': { 'f:labels': { '.': {}, 'f:x': {} } } },
      },
      status,
      revision,
      scale,
      { ...ours, fieldsV1: { 'f:metadata': { 'f:labels': { 'f:app': {} } } } },
    ])
  })

  it('is done after once: its own result has nothing left to move', () => {
    const entries = [
      { manager: 'older', operation: 'Update', fieldsV1: theirs },
      { manager: 'before-first-apply', operation: 'Update', fieldsV1: theirs },
    ]
    const moved = takenOver(deployment({ managedFields: entries }), applied, settings)
    expect(takenOver(deployment({ managedFields: moved ?? [] }), applied, settings)).toBeUndefined()
  })
})

describe('childrenToPrune', () => {
  const child = (name: string, label: string, uid = owner.uid) =>
    deployment({ name, labels: { mutation: label }, ...controlledBy(uid) })
  const pruned = (children: StoredObject[], states: [string, VariantState][]) =>
    childrenToPrune(desired, children, new Map(states)).map(({ metadata }) => metadata.name)

  it.each([
    ['what a variant wants stays', child('web-red', 'red'), [], []],
    ['what none wants goes', child('web-blue', 'blue'), [], ['web-blue']],
    ['what another object owns stays', child('web-blue', 'blue', 'other'), [], []],
    ['what nobody controls stays', deployment({ name: 'web-blue', labels: { mutation: 'blue' } }), [], []],
    [
      'the old name of a variant goes once it is ready',
      child('old-red', 'red'),
      [['red', 'Ready']],
      ['old-red'],
    ],
    ...(['Progressing', 'Degraded', 'Invalid', 'Conflict', 'Failed'] as const).map(
      (state) =>
        [
          `the old name of a variant stays while it is ${state}`,
          child('old-red', 'red'),
          [['red', state]],
          [],
        ] as const,
    ),
  ] as [string, StoredObject, [string, VariantState][], string[]][])('%s', (_, one, states, names) => {
    expect(pruned([one], states)).toEqual(names)
  })

  it('leaves what is being deleted already', () => {
    expect(
      pruned(
        [
          {
            ...child('web-blue', 'blue'),
            metadata: { ...child('web-blue', 'blue').metadata, deletionTimestamp: 'x' },
          },
        ],
        [],
      ),
    ).toEqual([])
  })
})

describe('repairOf', () => {
  const object = { metadata: { labels: { app: 'web' } } }
  const lost = (count: string, time: string) =>
    deployment({
      annotations: { 'neiam.org/applied': count },
      managedFields: [{ manager: 'mutantops-operator', operation: 'Apply', time, fieldsV1: {} }],
    })
  const at = (count: string, secondsAgo: number) => {
    const now = new Date('2026-01-01T00:00:00Z')
    return repairOf(object, 'h', lost(count, new Date(now.getTime() - secondsAgo * 1000).toISOString()), now)
  }
  it.each([
    ['another hash is due at once', 'g.9', 0, { is: 'due', applied: 'h' }],
    ['the first repair is due at once', 'h', 0, { is: 'due', applied: 'h.1' }],
    ['so are the next ones', `h.${repairsAtOnce - 1}`, 0, { is: 'due', applied: `h.${repairsAtOnce}` }],
    ['then it waits', `h.${repairsAtOnce}`, 9, { is: 'waiting', message: expect.any(String) }],
    ['until its time has come', `h.${repairsAtOnce}`, 10, { is: 'due', applied: `h.${repairsAtOnce + 1}` }],
    ['longer each time', 'h.7', 39, { is: 'waiting', message: expect.any(String) }],
    ['but never longer than to the next resync', 'h.99', 240, { is: 'due', applied: 'h.100' }],
    ['after a quiet time it begins anew', 'h.99', 601, { is: 'due', applied: 'h.1' }],
    ['a clock that is far ahead holds nothing up', 'h.99', -3600, { is: 'due', applied: 'h.100' }],
    ['what is no count is none', 'h.x', 0, { is: 'due', applied: 'h.1' }],
  ])('%s', (_, count, secondsAgo, repair) => {
    expect(at(count, secondsAgo)).toEqual(repair)
  })
})

describe('childStateOf', () => {
  it('is ready with no wanted pods, whatever the status says', () => {
    expect(childStateOf({ metadata: { generation: 3 }, spec: { replicas: 0 } })).toEqual({
      state: 'Ready',
      wanted: 0,
      ready: 0,
    })
  })

  it('is not degraded by a failure of an older generation', () => {
    const conditions = [{ type: 'Progressing', status: 'False', message: 'x' }]
    expect(
      childStateOf({ metadata: { generation: 3 }, spec: {}, status: { observedGeneration: 2, conditions } })
        .state,
    ).toBe('Progressing')
  })

  it('never throws', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), (spec, status) => {
        childStateOf({ spec, status: { conditions: status, ...(status as object) } })
      }),
    )
  })
})

describe('the status', () => {
  const variant = (label: string, state: VariantState) => ({ label, name: `web-${label}`, state, ready: 0 })

  it('sums up in a line', () => {
    expect(summaryOf([])).toBe('0/0 variants ready')
    expect(summaryOf([variant('a', 'Ready'), variant('b', 'Ready'), variant('c', 'Invalid')])).toBe(
      '2/3 variants ready, 1 invalid',
    )
    expect(summaryOf([variant('a', 'Failed'), variant('b', 'Progressing')])).toBe(
      '0/2 variants ready, 1 progressing, 1 failed',
    )
  })

  it('has never both Reconciling and Stalled, and keeps the time of what stays', () => {
    const states = fc.constantFrom<VariantState>(
      'Ready',
      'Progressing',
      'Degraded',
      'Invalid',
      'Conflict',
      'Failed',
    )
    fc.assert(
      fc.property(fc.array(states, { maxLength: 4 }), fc.array(states, { maxLength: 4 }), (first, second) => {
        const report = (all: VariantState[], before: unknown, now: string) =>
          statusOf({
            parent: { ...parent, status: before },
            desired,
            variants: all.map((state, n) => variant(String(n), state)),
            now: new Date(now),
          })
        const one = report(first, undefined, '2026-01-01T00:00:00Z')
        const two = report(second, one, '2026-01-02T00:00:00Z')
        expect(report(second, two, '2026-01-03T00:00:00Z')).toEqual(two)
        const types = two.conditions?.map(({ type }) => type) ?? []
        expect(new Set(types).size).toBe(types.length)
        expect(types.includes('Reconciling') && types.includes('Stalled')).toBe(false)
        expect(two.conditions?.[0]?.status).toBe(
          second.every((state) => state === 'Ready') ? 'True' : 'False',
        )
      }),
    )
  })
})

describe('the Kubernetes Events', () => {
  const regarding = {
    apiVersion: 'neiam.org/v1',
    kind: 'Mutation',
    name: 'shop',
    namespace: 'shop',
    uid: 'u',
  }
  const status = (count: number) => ({
    variants: Array.from({ length: count }, (_, n) => ({
      label: `v${n}`,
      name: `web-v${n}`,
      state: 'Failed' as const,
      ready: 0,
      message: `no ${n}`,
    })),
  })

  it('tell only what is new', () => {
    expect(eventsFor(regarding, status(2), status(3)).map(({ variant }) => variant)).toEqual(['v2'])
    expect(eventsFor(regarding, status(3), status(3))).toEqual([])
  })

  it('are at most ten, and more are told in one', () => {
    expect(eventsFor(regarding, undefined, status(10))).toHaveLength(10)
    const folded = eventsFor(regarding, undefined, status(11))
    expect(folded).toMatchObject([{ reason: 'VariantFailed', note: expect.stringContaining('and 1 more') }])
  })

  it('have notes of at most 1,024 bytes that are valid UTF-8', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 2000 }), (text) => {
        const note = shortenedUtf8(text, noteBytesMax)
        expect(Buffer.byteLength(note)).toBeLessThanOrEqual(noteBytesMax)
        expect(note.isWellFormed()).toBe(true)
      }),
    )
  })
})
