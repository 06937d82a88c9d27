import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { schemaFromCrd } from '../../shared/apiserver/custom/crd-schema.ts'
import { difference, isEmptySet, pathsOf } from '../../shared/apiserver/ownership/field-set.ts'
import { compared, equal, fieldSetOf, merged, withoutItems } from '../../shared/apiserver/ownership/typed.ts'
import { anything, type SchemaNode } from '../../shared/apiserver/schema.ts'
import { gadgetSpec } from '../differential/bodies.ts'
import { gadgetCrd } from '../differential/gadgets.ts'

const { root } = schemaFromCrd(schemaOf(gadgetCrd), { statusSubresource: true })
const specNode = root.fields?.get('spec')?.node ?? anything
const set: SchemaNode = { type: 'list', as: 'set', items: { type: 'string' } }

function schemaOf(crd: unknown) {
  const { spec } = crd as { spec: { versions: { schema: { openAPIV3Schema: object } }[] } }
  return spec.versions[0]?.schema.openAPIV3Schema as Parameters<typeof schemaFromCrd>[0]
}

const isSame = (before: unknown, after: unknown) =>
  Object.values(compared(before, after, specNode)).every((part) => isEmptySet(part))

describe('values by their schema', () => {
  it('a value does not differ from itself, and differs from another by what only one of them states', () => {
    fc.assert(
      fc.property(gadgetSpec, gadgetSpec, (a, b) => {
        expect(isSame(a, a)).toBe(true)
        const there = compared(a, b, specNode)
        const back = compared(b, a, specNode)
        expect(pathsOf(there.added)).toEqual(pathsOf(back.removed))
        expect(pathsOf(there.modified)).toEqual(pathsOf(back.modified))
      }),
    )
  })

  it('what was merged in is all there, and merging it again changes nothing', () => {
    fc.assert(
      fc.property(gadgetSpec, gadgetSpec, (live, applied) => {
        const once = merged(live, applied, specNode)
        expect(equal(merged(once, applied, specNode), once)).toBe(true)
        const lost = difference(fieldSetOf(applied, specNode), fieldSetOf(once, specNode))
        // A map or list stated as empty leaves what is in it, so only those may be missing.
        for (const path of pathsOf(lost)) expect(sizeAt(applied, path)).toBe(0)
      }),
    )
  })

  it('taking out everything that a value states leaves nothing of it', () => {
    fc.assert(
      fc.property(gadgetSpec, (value) => {
        const rest = withoutItems(value, specNode, fieldSetOf(value, specNode))
        const left = fieldSetOf(rest ?? {}, specNode)
        // What is left is emptied objects, which are null.
        for (const path of pathsOf(left)) expect(path.length).toBeGreaterThan(0)
        expect(JSON.stringify(rest) ?? '').not.toMatch(/"[123]"/)
      }),
    )
  })

  it.each([
    [['a', 'b', 'c'], ['b'], ['a', 'b', 'c']],
    [
      ['a', 'b', 'c'],
      ['c', 'a'],
      ['b', 'c', 'a'],
    ],
    [
      ['a', 'b'],
      ['n', 'b'],
      ['a', 'n', 'b'],
    ],
    [['a', 'b'], ['n'], ['a', 'b', 'n']],
    [[], ['b', 'a'], ['b', 'a']],
    [
      ['a', 'x', 'b', 'y'],
      ['b', 'n', 'a'],
      ['x', 'b', 'y', 'n', 'a'],
    ],
  ])('%j with %j applied is %j', (live, applied, wanted) => {
    expect(merged(live, applied, set)).toEqual(wanted)
  })
})

function sizeAt(value: unknown, path: readonly string[]): number {
  const at = path.reduce<unknown>((inner, step) => (inner as Record<string, unknown>)?.[step.slice(2)], value)
  return at === null || at === undefined ? 0 : Object.keys(at).length
}
