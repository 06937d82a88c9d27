import { describe, expect, it } from 'vitest'
import { jsonPatch, mergePatch } from '../../shared/apiserver/patches/patch.ts'
import { strategicMergePatch } from '../../shared/apiserver/patches/strategic-patch.ts'
import { type KindSchema, schemaFor } from '../../shared/apiserver/schema.ts'
import type { ApiError } from '../../shared/apiserver/status.ts'
import { deployments, type KubeObject } from '../../shared/kinds/object.ts'

const { root } = schemaFor(deployments) as KindSchema

function codeOf(act: () => unknown): number | undefined {
  try {
    act()
  } catch (error) {
    return (error as ApiError).status.code
  }
  return undefined
}

describe('mergePatch', () => {
  it('null removes, objects merge, lists are replaced, and the object given stays as it was', () => {
    const object: KubeObject = { spec: { a: 1, b: { c: 1, d: 2 }, l: [1, 2] } }
    const copy = structuredClone(object)
    expect(mergePatch(object, { spec: { a: null, b: { c: 9 }, l: [3], n: { x: null } } })).toEqual({
      spec: { b: { c: 9, d: 2 }, l: [3], n: {} },
    })
    expect(object).toEqual(copy)
  })

  it.each([[[]], [5], [null]])('%j is no merge patch', (patch) => {
    expect(codeOf(() => mergePatch({}, patch))).toBe(400)
  })
})

describe('jsonPatch', () => {
  const object: KubeObject = { data: { a: '1', 'x/y': '2' }, list: ['p', 'q'] }
  const patched = (...operations: object[]) => jsonPatch(object, operations)

  it.each([
    ['adds', { op: 'add', path: '/data/b', value: '3' }, { data: { a: '1', b: '3', 'x/y': '2' } }],
    ['finds escaped names', { op: 'remove', path: '/data/x~1y' }, { data: { a: '1' } }],
    ['puts into a list', { op: 'add', path: '/list/1', value: 'n' }, { list: ['p', 'n', 'q'] }],
    ['appends', { op: 'add', path: '/list/-', value: 'n' }, { list: ['p', 'q', 'n'] }],
    ['counts from the end', { op: 'remove', path: '/list/-1' }, { list: ['p'] }],
    ['moves', { op: 'move', from: '/data/a', path: '/data/b' }, { data: { b: '1', 'x/y': '2' } }],
    ['takes null for absent in a test', { op: 'test', path: '/data/n', value: null }, {}],
    [
      'replaces what is not there',
      { op: 'replace', path: '/data/n', value: '1' },
      { data: { a: '1', n: '1', 'x/y': '2' } },
    ],
  ])('%s', (_, operation, changed) => {
    expect(patched(operation)).toEqual({ ...object, ...changed })
  })

  it.each([
    { op: 'remove', path: '/data/n' },
    { op: 'add', path: '/n/m', value: 1 },
    { op: 'add', path: '/list/9', value: 1 },
    { op: 'add', path: '', value: 1 },
    { op: 'test', path: '/data/a', value: '2' },
    { op: 'move', from: '/data/n', path: '/data/b' },
    { op: 'frobnicate', path: '/data/a' },
  ])('%j does not apply', (operation) => {
    expect(codeOf(() => patched(operation))).toBe(422)
  })

  it('must be a list of not too many operations', () => {
    expect(codeOf(() => jsonPatch(object, { op: 'add' }))).toBe(400)
    expect(
      codeOf(() => jsonPatch(object, Array(10_001).fill({ op: 'test', path: '/data/n', value: null }))),
    ).toBe(413)
  })
})

describe('strategicMergePatch', () => {
  const live: KubeObject = {
    metadata: { finalizers: ['x/a', 'x/b'] },
    spec: {
      strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1 } },
      template: {
        spec: {
          containers: [
            {
              name: 'web',
              image: 'web:1',
              env: [
                { name: 'A', value: '1' },
                { name: 'B', value: '2' },
              ],
            },
            { name: 'side', image: 'side:1' },
          ],
          tolerations: [{ key: 'a' }],
        },
      },
    },
  }
  const patched = (patch: object) => strategicMergePatch(live, patch, root)
  const pod = (spec: object) => ({ spec: { template: { spec } } })
  const containers = ['spec', 'template', 'spec', 'containers']

  it('merges list entries by their merge key', () => {
    const object = patched(
      pod({ containers: [{ name: 'web', env: [{ name: 'B', value: '9' }, { name: 'C' }] }] }),
    )
    expect(object).toHaveProperty(
      [...containers, 0, 'env'],
      [{ name: 'A', value: '1' }, { name: 'B', value: '9' }, { name: 'C' }],
    )
    expect(object).toHaveProperty([...containers, 1, 'name'], 'side')
  })

  it('deletes the entries that it says to delete, and replaces lists that do not merge', () => {
    const object = patched(
      pod({ containers: [{ name: 'side', $patch: 'delete' }], tolerations: [{ key: 'b' }] }),
    )
    expect(object).toHaveProperty('spec.template.spec.containers.length', 1)
    expect(object).toHaveProperty('spec.template.spec.tolerations', [{ key: 'b' }])
  })

  it('puts a list into the order that kubectl states, new entries included', () => {
    const order = [{ name: 'new' }, { name: 'side' }, { name: 'web' }]
    const object = patched(pod({ containers: [{ name: 'new' }], '$setElementOrder/containers': order }))
    const names = (object as unknown as { spec: { template: { spec: { containers: { name: string }[] } } } })
      .spec.template.spec.containers
    expect(names.map((one) => one.name)).toEqual(['new', 'side', 'web'])
  })

  it('merges sets, and takes members out of them', () => {
    expect(patched({ metadata: { finalizers: ['x/c'] } })).toHaveProperty('metadata.finalizers', [
      'x/c',
      'x/a',
      'x/b',
    ])
    expect(patched({ metadata: { '$deleteFromPrimitiveList/finalizers': ['x/a'] } })).toHaveProperty(
      'metadata.finalizers',
      ['x/b'],
    )
  })

  it('keeps only the keys that it retains', () => {
    const object = patched({ spec: { strategy: { $retainKeys: ['type'], type: 'Recreate' } } })
    expect(object).toHaveProperty('spec.strategy', { type: 'Recreate' })
  })

  it.each([
    [{ spec: { strategy: { $retainKeys: ['type'], rollingUpdate: {} } } }, 400],
    [pod({ containers: [{ image: 'x' }] }), 500],
    [{ metadata: { finalizers: ['x/q'], '$setElementOrder/finalizers': ['x/a'] } }, 500],
    [[], 400],
  ])('%j cannot be followed', (patch, code) => {
    expect(codeOf(() => patched(patch))).toBe(code)
  })
})
