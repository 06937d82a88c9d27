import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { mutantDeployments, mutantKinds, mutations } from '../../shared/kinds/mutants.ts'
import type { StoredObject } from '../../shared/kinds/object.ts'
import { childOf, desiredOf, mergedEnv } from '../../shared/reconcile/desired.ts'
import { needsWork } from '../../shared/reconcile/needs-work.ts'
import { base, mutation, type TestDeployment } from '../support/builders.ts'

const settings = { adoption: 'label', now: new Date(0) } as const

/** An object as an old CRD may have let it through. */
function odd(spec: unknown): StoredObject {
  return { ...mutation('shop').stored(), spec }
}

describe('mergedEnv', () => {
  const a = { name: 'A', value: '1' }
  const b = { name: 'B', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } }
  it.each([
    ['nothing over nothing is nothing', undefined, {}, undefined],
    ['an empty list stays one', [], {}, []],
    [
      'new names come sorted, in whatever order they are given',
      undefined,
      { Z: '1', A: '2' },
      [
        { name: 'A', value: '2' },
        { name: 'Z', value: '1' },
      ],
    ],
    ['a value is replaced at its place', [a, b], { A: '9' }, [{ name: 'A', value: '9' }, b]],
    ['a valueFrom is replaced at its place', [a, b], { B: '' }, [a, { name: 'B', value: '' }]],
    [
      'a name that stands twice is folded to the last',
      [a, b, { name: 'A', value: '2' }],
      {},
      [b, { name: 'A', value: '2' }],
    ],
    [
      'a folded name is replaced too',
      [a, b, { name: 'A', value: '2' }],
      { A: '3' },
      [b, { name: 'A', value: '3' }],
    ],
    [
      'what is no entry is left to the server',
      [a, 'x', {}],
      { A: '3' },
      [{ name: 'A', value: '3' }, 'x', {}],
    ],
    ['what is no list is left to the server', 'x', { A: '3' }, 'x'],
    [
      'names of every object are only names',
      [a],
      { constructor: '1' },
      [a, { name: 'constructor', value: '1' }],
    ],
  ])('%s', (_, entries, env, merged) => {
    expect(mergedEnv(entries, env as Record<string, string>)).toEqual(merged)
  })

  it('is the same for every order of the map, and again for its own result', () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(fc.tuple(fc.string({ minLength: 1, maxLength: 3 }), fc.string()), {
          selector: ([name]) => name,
        }),
        fc.array(fc.record({ name: fc.string({ minLength: 1, maxLength: 3 }), value: fc.string() })),
        (pairs, entries) => {
          const merged = mergedEnv(entries, Object.fromEntries(pairs)) as { name: string; value: string }[]
          expect(mergedEnv(entries, Object.fromEntries(pairs.toReversed()))).toEqual(merged)
          expect(mergedEnv(merged, Object.fromEntries(pairs))).toEqual(merged)
          expect(new Set(merged.map(({ name }) => name)).size).toBe(merged.length)
          const seen = Object.fromEntries(merged.map(({ name, value }) => [name, value]))
          expect(seen).toEqual({
            ...Object.fromEntries(entries.map(({ name, value }) => [name, value])),
            ...Object.fromEntries(pairs),
          })
        },
      ),
    )
  })
})

describe('the base', () => {
  const problem = (deployment: unknown) => desiredOf(mutations, odd({ deployment, variants: [] })).problem
  const changed = (change: (d: TestDeployment) => void) => {
    const deployment = base()
    change(deployment)
    return deployment
  }
  it.each([
    ['a good one', base(), undefined],
    [
      'one without apiVersion and kind',
      changed((d) => {
        delete d.apiVersion
        delete d.kind
      }),
      undefined,
    ],
    [
      'one without a name',
      changed((d) => {
        delete d.metadata.name
      }),
      undefined,
    ],
    ['none', undefined, 'is missing'],
    ['a text', 'x', 'is missing'],
    ['an empty map', {}, 'no spec.selector'],
    [
      'another kind',
      changed((d) => {
        d.kind = 'Job'
      }),
      '"Job"',
    ],
    [
      'an impossible name',
      changed((d) => {
        d.metadata.name = 'Not OK'
      }),
      '"Not OK"',
    ],
    [
      'a number for a name',
      changed((d) => {
        Object.assign(d.metadata, { name: 7 })
      }),
      'metadata.name 7',
    ],
    ['metadata that is no map', { ...base(), metadata: 'x' }, 'metadata'],
    [
      'labels that are no map',
      changed((d) => {
        Object.assign(d.metadata, { labels: ['x'] })
      }),
      'metadata.labels',
    ],
    [
      'a container without a name',
      changed((d) => {
        d.spec.template.spec.containers = [{ image: 'x' } as never]
      }),
      'number 1) without name',
    ],
    [
      'a selector that asks for more',
      changed((d) => {
        d.spec.selector.matchLabels.tier = 'x'
      }),
      'asks for tier: x',
    ],
    [
      'an expression that is not met',
      changed((d) => {
        d.spec.selector.matchExpressions = [{ key: 'tier', operator: 'Exists' }]
      }),
      'tier Exists',
    ],
    [
      'an expression that is met',
      changed((d) => {
        d.spec.selector.matchExpressions = [
          { key: 'app', operator: 'In', values: ['web', 'x'] },
          { key: 'tier', operator: 'DoesNotExist' },
          { key: 'app', operator: 'NotIn', values: ['y'] },
        ]
      }),
      undefined,
    ],
    [
      'one that is nested without end',
      changed((d) => {
        d.spec.x = JSON.parse('['.repeat(5000) + ']'.repeat(5000))
      }),
      'nested',
    ],
  ])('%s', (_, deployment, words) => {
    if (words === undefined) expect(problem(deployment)).toBeUndefined()
    else expect(problem(deployment)).toContain(words)
  })

  it('is a problem of the object, not of the variants, when their list is missing', () => {
    expect(desiredOf(mutantDeployments, odd({ deployment: base() })).problem).toBe(
      'spec.mutations is missing',
    )
    expect(desiredOf(mutations, odd({ deployment: base(), variants: null })).problem).toBe(
      'spec.variants is missing',
    )
  })
})

describe('a child', () => {
  const child = (parent: StoredObject, live?: StoredObject) => {
    const desired = desiredOf(mutations, parent)
    const [variant] = desired.variants
    if (!variant) throw new Error('There is no variant')
    return childOf(desired, variant, live)
  }

  it('tells unset instances from 0, and both from null', () => {
    const spec = (instances: unknown) =>
      child(odd({ deployment: base(), variants: [{ label: 'a', instances }] })).object.spec as {
        replicas?: number
      }
    expect(spec(0).replicas).toBe(0)
    expect('replicas' in spec(undefined)).toBe(false)
    expect('replicas' in spec(null)).toBe(false)
  })

  it('has the same hash whatever the order of keys, and another for any other wish', () => {
    const one = mutation('shop').with('red', 1, { A: '1', B: '2' })
    const other = mutation('shop').with('red', 1, { B: '2', A: '1' })
    expect(child(one.stored()).hash).toBe(child(other.stored()).hash)
    const { spec, metadata, ...rest } = base()
    const turned = { ...rest, spec: Object.fromEntries(Object.entries(spec).toReversed()), metadata }
    expect(child(one.on(turned).stored()).hash).toBe(child(one.stored()).hash)
    expect(child(mutation('shop').with('red', 1, { A: '1', B: '3' }).stored()).hash).not.toBe(
      child(one.stored()).hash,
    )
    expect(child(one.stored({ uid: 'another' })).hash).not.toBe(child(one.stored()).hash)
  })

  it('keeps keys that mean something to JavaScript', () => {
    const deployment = JSON.parse(
      JSON.stringify(base()).replace('"labels":{"app"', '"labels":{"__proto__":"x","app"'),
    )
    const { object } = child(odd({ deployment, variants: [{ label: 'red' }] }))
    expect(JSON.stringify(object.metadata?.labels)).toContain('"__proto__":"x"')
  })
})

describe('any object at all', () => {
  const anything = fc.jsonValue()
  const deploymentLike = fc.oneof(
    anything,
    fc.record({ metadata: anything, spec: anything }),
    fc.record(
      {
        apiVersion: fc.constantFrom('apps/v1', 'v1'),
        metadata: fc.record({
          name: fc.constantFrom('web', 'X', ''),
          labels: anything,
          annotations: anything,
        }),
        spec: fc.record({
          selector: fc.oneof(anything, fc.constant({ matchLabels: { app: 'web' } })),
          template: fc.record({
            metadata: fc.oneof(anything, fc.constant({ labels: { app: 'web' } })),
            spec: fc.record({
              containers: fc.array(
                fc.oneof(anything, fc.record({ name: fc.string(), image: fc.string(), env: anything })),
              ),
            }),
          }),
        }),
      },
      { requiredKeys: [] },
    ),
  )
  const variantLike = fc.oneof(
    anything,
    fc.record(
      {
        label: fc.oneof(anything, fc.constantFrom('red', 'blue', 'Red')),
        env: anything,
        instances: anything,
      },
      { requiredKeys: [] },
    ),
  )
  const specLike = fc.oneof(
    anything,
    fc.record(
      {
        deployment: deploymentLike,
        variants: fc.oneof(anything, fc.array(variantLike)),
        mutations: fc.array(variantLike),
      },
      { requiredKeys: [] },
    ),
  )
  const status = fc.option(
    fc.record({ secret: fc.string(), observedGeneration: fc.integer() }, { requiredKeys: [] }),
    { nil: undefined },
  )

  it('is planned and reported without a throw, and the same each time', () => {
    fc.assert(
      fc.property(specLike, status, fc.constantFrom(...mutantKinds), (spec, before, kind) => {
        const parent = { ...odd(spec), ...(before && { status: before }) }
        const one = desiredOf(kind, parent)
        expect(desiredOf(kind, structuredClone(parent))).toEqual(one)
        needsWork(kind, parent, [], settings)
        for (const variant of one.variants) expect(childOf(one, variant)).toEqual(childOf(one, variant))
      }),
      { numRuns: 300 },
    )
  })
})
