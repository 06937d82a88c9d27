import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { mutantKinds } from '../../shared/kinds/mutants.ts'
import type { StoredObject } from '../../shared/kinds/object.ts'
import { type Family, type WalkOptions, walk } from '../../shared/resync/walk.ts'
import { type Lists, lists } from '../support/lists.ts'

const object = (kind: string, namespace: string, name: string, owner?: string): StoredObject => ({
  apiVersion: kind === 'Deployment' ? 'apps/v1' : 'neiam.org/v1',
  kind,
  metadata: {
    namespace,
    name,
    uid: `${kind}/${namespace}/${name}`,
    resourceVersion: '1',
    ...(owner !== undefined && { labels: { 'neiam.org/owner': owner } }),
  },
})

const tell = ({ kind, parent, children }: Family) =>
  `${kind.kind} ${parent.metadata.namespace}/${parent.metadata.name}: ${children.map(({ metadata }) => metadata.name).join(' ')}`

/** What a walk must give, worked out the simple way. */
function families(objects: StoredObject[]): string[] {
  return objects
    .filter(({ kind }) => kind !== 'Deployment')
    .map((parent) => {
      const children = objects
        .filter(
          ({ kind, metadata }) =>
            kind === 'Deployment' &&
            metadata.namespace === parent.metadata.namespace &&
            metadata.labels?.['neiam.org/owner'] === parent.metadata.name,
        )
        .map(({ metadata }) => metadata.name)
      return `${parent.kind} ${parent.metadata.namespace}/${parent.metadata.name}: ${children.sort().join(' ')}`
    })
    .sort()
}

async function walked(there: Lists, options: Partial<WalkOptions> = {}): Promise<Family[]> {
  const found: Family[] = []
  const signal = new AbortController().signal
  for await (const family of walk({
    client: there.client,
    kinds: mutantKinds,
    namespaces: undefined,
    signal,
    ...options,
  }))
    found.push(family)
  return found
}

/** Namespaces whose order by key is not that by name (a hyphen is less than a slash). */
const namespaceNames = ['a', 'a-b', 'a0', 'b']
const world = fc
  .uniqueArray(
    fc.record({
      kind: fc.constantFrom('Mutation', 'MutantDeployment', 'Deployment', 'Deployment'),
      namespace: fc.constantFrom(...namespaceNames),
      name: fc.constantFrom('x', 'y', 'y-z', 'z', 'z.a'),
      owner: fc.constantFrom('x', 'y', 'y-z', 'z', 'gone'),
    }),
    {
      selector: ({ kind, namespace, name, owner }) =>
        [kind, namespace, name, kind === 'Deployment' && owner].join(),
      maxLength: 40,
    },
  )
  .map((rows) =>
    rows.map(({ kind, namespace, name, owner }) =>
      kind === 'Deployment'
        ? object(kind, namespace, `${owner}-${name}`, owner)
        : object(kind, namespace, name),
    ),
  )

describe('a walk through all objects', () => {
  test('gives each once, with exactly its children, whatever the pages', async () => {
    await fc.assert(
      fc.asyncProperty(
        world,
        fc.integer({ min: 1, max: 7 }),
        fc.integer({ min: 0, max: 6 }),
        async (objects, length, held) => {
          const found = await walked(lists(objects, length), { childrenHeldMax: held })
          expect(found.map(tell).sort()).toEqual(families(objects))
        },
      ),
    )
  })

  test('goes on where it was left, without a gap and without a repeat', async () => {
    await fc.assert(
      fc.asyncProperty(world, fc.integer({ min: 1, max: 5 }), fc.nat(30), async (objects, length, at) => {
        const all = await walked(lists(objects, length))
        fc.pre(all.length > 0)
        const left = at % all.length
        const from = JSON.parse(JSON.stringify(all[left]?.position))
        const rest = await walked(lists(objects, length), { from })
        expect(rest.map(tell)).toEqual(all.slice(left + 1).map(tell))
      }),
    )
  })

  test.each([
    ['with a token to go on with', true],
    ['without one', false],
  ])(
    'case 6: a continue token that expires, %s, loses nothing and repeats nothing',
    async (_, withFreshToken) => {
      const objects = Array.from({ length: 1_201 }, (_, index) =>
        object('Mutation', 'a', `m${String(index).padStart(4, '0')}`),
      )
      for (const at of [1, 2]) {
        const there = lists(objects, 500)
        let restarts = 0
        const found: string[] = []
        const families = walk({
          client: there.client,
          kinds: mutantKinds,
          namespaces: undefined,
          signal: new AbortController().signal,
          onRestart: () => restarts++,
        })
        for await (const family of families) {
          found.push(family.parent.metadata.name)
          if (found.length === at * 500 - 1) there.expireNext({ withFreshToken })
        }
        expect(found).toEqual(objects.map(({ metadata }) => metadata.name))
        expect(restarts).toBe(1)
      }
    },
  )

  test('an empty page with a token is not the end', async () => {
    const there = lists([object('Mutation', 'a', 'x'), object('Mutation', 'a', 'y')], 1)
    there.emptyNext()
    expect((await walked(there)).map(tell)).toEqual(['Mutation a/x: ', 'Mutation a/y: '])
  })

  test('looks at the named namespaces only, and leaves out one that it may not read', async () => {
    const objects = namespaceNames.flatMap((namespace) => [
      object('Mutation', namespace, 'x'),
      object('Deployment', namespace, 'x-red', 'x'),
    ])
    const there = lists(objects, 5)
    there.forbidden.add('a0')
    const denied: string[] = []
    const onForbidden = (namespace: string) => denied.push(namespace)
    const found = await walked(there, { namespaces: ['a', 'a0', 'a-b'], onForbidden })
    expect(found.map(tell)).toEqual(['Mutation a-b/x: x-red', 'Mutation a/x: x-red'])
    expect(new Set(denied)).toEqual(new Set(['a0']))
  })

  test('costs one list of each kind in pages, however many namespaces there are', async () => {
    const objects = Array.from({ length: 1_000 }, (_, index) => `n${index}`).flatMap((namespace) => [
      object('Mutation', namespace, 'web'),
      object('Deployment', namespace, 'web-red', 'web'),
    ])
    const there = lists(objects, 500)
    expect(await walked(there)).toHaveLength(1_000)
    expect(there.requests.map((path) => path.replace(/\?.*/, '')).sort()).toEqual([
      '/apis/apps/v1/deployments',
      '/apis/apps/v1/deployments',
      '/apis/neiam.org/v1/mutantdeployments',
      '/apis/neiam.org/v1/mutations',
      '/apis/neiam.org/v1/mutations',
    ])
  })
})
