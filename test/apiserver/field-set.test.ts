import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  difference,
  type FieldSet,
  fieldSetFrom,
  fieldsV1Of,
  intersection,
  keyStep,
  pathsOf,
  recursiveDifference,
  sameSet,
  setOfPaths,
  spelled,
  union,
  valueStep,
} from '../../shared/apiserver/ownership/field-set.ts'

const step = fc.oneof(
  fc.constantFrom('f:a', 'f:b', 'i:0'),
  fc.constantFrom('x', 'y').map((name) => keyStep({ name })),
  fc.constantFrom(80, 443).map((port) => keyStep({ protocol: 'TCP', port })),
  fc.constantFrom('p', 'q').map(valueStep),
)
const paths = fc.array(fc.array(step, { minLength: 1, maxLength: 3 }), { maxLength: 8 })
const lines = (set: FieldSet) => new Set(pathsOf(set).map((path) => path.join(' ')))
const linesOf = (set: FieldSet, keep: (line: string) => boolean) => new Set([...lines(set)].filter(keep))
const both = (check: (a: FieldSet, b: FieldSet) => void) =>
  fc.assert(
    fc.property(paths, paths, (a, b) => {
      check(setOfPaths(a), setOfPaths(b))
    }),
  )

describe('field sets', () => {
  it('are sets of paths: union, intersection and difference are those of the paths', () => {
    both((a, b) => {
      expect(lines(union(a, b))).toEqual(new Set([...lines(a), ...lines(b)]))
      expect(lines(intersection(a, b))).toEqual(linesOf(a, (line) => lines(b).has(line)))
      expect(lines(difference(a, b))).toEqual(linesOf(a, (line) => !lines(b).has(line)))
    })
  })

  it('without what lies in or below the paths of another', () => {
    both((a, b) => {
      const isBelow = (line: string) =>
        [...lines(b)].some((other) => line === other || line.startsWith(`${other} `))
      expect(lines(recursiveDifference(a, b))).toEqual(linesOf(a, (line) => !isBelow(line)))
    })
  })

  it('are the same when their paths are, whatever the order of making them', () => {
    fc.assert(fc.property(paths, (list) => sameSet(setOfPaths(list), setOfPaths(list.toReversed()))))
  })

  it('come back from fieldsV1 as they were', () => {
    both((a) => expect(lines(fieldSetFrom(fieldsV1Of(a)))).toEqual(lines(a)))
  })

  it('list fields before keys, keys before values, numbers by size', () => {
    const set = setOfPaths([
      [valueStep('v')],
      [keyStep({ port: 443 })],
      ['f:z'],
      [keyStep({ port: 80 })],
      ['f:a', 'f:b'],
      ['f:a'],
    ])
    expect(Object.keys(fieldsV1Of(set))).toEqual(['f:a', 'f:z', 'k:{"port":80}', 'k:{"port":443}', 'v:"v"'])
    expect(fieldsV1Of(set)).toMatchObject({ 'f:a': { '.': {}, 'f:b': {} } })
  })

  it('spell a path as messages do', () => {
    const path = ['f:spec', 'f:containers', keyStep({ name: 'web' }), 'f:args', 'i:0']
    expect(spelled(path)).toBe('.spec.containers[name="web"].args[0]')
    expect(spelled(['f:metadata', 'f:finalizers', valueStep('x/y')])).toBe('.metadata.finalizers[="x/y"]')
    expect(spelled(['f:ports', keyStep({ protocol: 'TCP', containerPort: 80 })])).toBe(
      '.ports[containerPort=80,protocol="TCP"]',
    )
  })

  it.each(['name', 'x:y', 'k:{', 'v:'])('refuse %s as a step', (wrong) => {
    expect(() => fieldSetFrom({ [wrong]: {} })).toThrow()
  })
})
