import { beforeAll, expect } from 'vitest'
import { refusal, types } from './api.ts'
import { configMap, deployment } from './objects.ts'
import type { Part } from './suite.ts'

const containers = [
  {
    name: 'main',
    image: 'nginx',
    env: [
      { name: 'A', value: '1' },
      { name: 'B', value: '2' },
    ],
  },
  { name: 'side', image: 'side:1' },
]

export function patchContract({ api, it }: Part): void {
  let maps = ''
  let deployments = ''
  let count = 0
  beforeAll(async () => {
    const namespace = await api().namespace()
    maps = `/api/v1/namespaces/${namespace}/configmaps`
    deployments = `/apis/apps/v1/namespaces/${namespace}/deployments`
  })
  /** Patches an object made for it, and gives the answer. */
  const patchedMap = async (patch: unknown, type: string) => {
    const name = `map-${count++}`
    const metadata = { finalizers: ['x.io/a', 'x.io/b'] }
    await api().post(maps, configMap(name, { metadata, data: { a: '1', 'b.c': '2' } }))
    return api().patch(`${maps}/${name}?dryRun=All`, patch, type)
  }
  const patchedDeployment = async (pod: object, spec: object = {}) => {
    const name = `deployment-${count++}`
    const made = deployment(name)
    const { template, ...rest } = made.spec as { template: { metadata: object } }
    await api().post(deployments, {
      ...made,
      spec: { ...rest, template: { ...template, spec: { containers } } },
    })
    const patch = { spec: { ...spec, template: { spec: pod } } }
    return api().patch(`${deployments}/${name}`, patch, types.strategic)
  }
  const namesOf = (list: unknown) => (list as { name: string }[]).map(({ name }) => name)

  const applies = (what: string, operation: object, field: string, value: unknown) =>
    it(`JSON patch: ${what}`, async () => {
      const { body } = await patchedMap([operation], types.jsonPatch)
      expect(body).toHaveProperty(field.split('/'), value)
    })
  const data = { a: '1', 'b.c': '2' }
  applies('add puts a field', { op: 'add', path: '/data/n', value: 'x' }, 'data', { ...data, n: 'x' })
  applies('add takes the place of a field', { op: 'add', path: '/data/a', value: 'x' }, 'data', {
    ...data,
    a: 'x',
  })
  applies('remove takes a field away', { op: 'remove', path: '/data/a' }, 'data', { 'b.c': '2' })
  applies('replace makes what is not there', { op: 'replace', path: '/data/n', value: 'x' }, 'data', {
    ...data,
    n: 'x',
  })
  applies('move renames', { op: 'move', from: '/data/a', path: '/data/n' }, 'data', { 'b.c': '2', n: '1' })
  applies('copy copies', { op: 'copy', from: '/data/a', path: '/data/n' }, 'data', { ...data, n: '1' })
  applies(
    'a test of null holds for what is absent',
    { op: 'test', path: '/data/n', value: null },
    'data',
    data,
  )
  applies(
    '- is after the last item',
    { op: 'add', path: '/metadata/finalizers/-', value: 'x.io/c' },
    'metadata/finalizers',
    ['x.io/a', 'x.io/b', 'x.io/c'],
  )
  applies(
    'a place is before its item',
    { op: 'add', path: '/metadata/finalizers/1', value: 'x.io/c' },
    'metadata/finalizers',
    ['x.io/a', 'x.io/c', 'x.io/b'],
  )
  applies('-1 is the last item', { op: 'remove', path: '/metadata/finalizers/-1' }, 'metadata/finalizers', [
    'x.io/a',
  ])

  const rejected = 'the server rejected our request due to an error in our request'
  const refuses = (
    what: string,
    patch: unknown,
    type: string,
    code: number,
    reason: string,
    message: string,
  ) =>
    it(`${what} is a ${code}`, async () => {
      expect(refusal(await patchedMap(patch, type))).toEqual({ code, ...(reason && { reason }), message })
    })
  const doesNotApply = (what: string, operation: object) =>
    refuses(`JSON patch: ${what}`, [operation], types.jsonPatch, 422, 'Invalid', rejected)
  doesNotApply('a failed test', { op: 'test', path: '/data/a', value: '2' })
  doesNotApply('removing what is not there', { op: 'remove', path: '/data/n' })
  doesNotApply('adding below what is not there', { op: 'add', path: '/binaryData/n', value: 'x' })
  doesNotApply('a place past the end', { op: 'add', path: '/metadata/finalizers/9', value: 'x.io/c' })
  doesNotApply('an operation that is none', { op: 'frobnicate', path: '/data/a' })
  doesNotApply('adding to the whole', { op: 'add', path: '', value: {} })
  refuses(
    'JSON patch: an object for a list',
    { op: 'add' },
    types.jsonPatch,
    400,
    'BadRequest',
    'error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp',
  )
  refuses(
    'merge patch: a list',
    [],
    types.merge,
    400,
    'BadRequest',
    'error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}',
  )

  it('merge patch merges objects, removes what is null, and replaces lists', async () => {
    const patch = { metadata: { finalizers: ['x.io/z'] }, data: { a: null, n: 'x' } }
    const { body } = await patchedMap(patch, types.merge)
    expect(body).toMatchObject({ metadata: { finalizers: ['x.io/z'] }, data: { 'b.c': '2', n: 'x' } })
    expect(body.data).not.toHaveProperty('a')
  })

  it('a patch whose outcome the kind cannot hold is a 422', async () => {
    const answer = await patchedMap({ data: 5 }, types.merge)
    expect(refusal(answer)).toMatchObject({ code: 422, reason: 'Invalid' })
    expect(answer.body.message).toMatch(
      /^ "" is invalid: patch: Invalid value: .*: json: cannot unmarshal number into Go struct field ConfigMap.data of type map\[string\]string$/,
    )
  })

  it('strategic patch merges containers and variables by their names', async () => {
    const { body } = await patchedDeployment({
      containers: [
        {
          name: 'main',
          env: [
            { name: 'B', value: '9' },
            { name: 'C', value: '3' },
          ],
        },
      ],
    })
    const list = (body.spec as { template: { spec: { containers: { env?: unknown }[] } } }).template.spec
      .containers
    expect(namesOf(list)).toEqual(['main', 'side'])
    expect(list[0]?.env).toEqual([
      { name: 'A', value: '1' },
      { name: 'B', value: '9' },
      { name: 'C', value: '3' },
    ])
  })

  it('strategic patch deletes an entry when told to, and a field by null', async () => {
    const main = { name: 'main', env: [{ name: 'A', $patch: 'delete' }], image: 'nginx:2' }
    const { body } = await patchedDeployment(
      { containers: [main, { name: 'side', $patch: 'delete' }] },
      { replicas: null },
    )
    expect(body).toMatchObject({
      spec: {
        replicas: 1,
        template: { spec: { containers: [{ name: 'main', image: 'nginx:2', env: [{ name: 'B' }] }] } },
      },
    })
  })

  it('strategic patch puts a list into the stated order', async () => {
    const order = ['side', 'new', 'main'].map((name) => ({ name }))
    const pod = { containers: [{ name: 'new', image: 'new:1' }], '$setElementOrder/containers': order }
    const { body } = await patchedDeployment(pod)
    const { template } = body.spec as { template: { spec: { containers: unknown } } }
    expect(namesOf(template.spec.containers)).toEqual(['side', 'new', 'main'])
  })

  it('strategic patch keeps only the keys to retain', async () => {
    const strategy = { $retainKeys: ['type'], type: 'Recreate' }
    expect((await patchedDeployment({}, { strategy })).body).toHaveProperty('spec.strategy', {
      type: 'Recreate',
    })
  })

  it('strategic patch merges sets, and takes members out of them', async () => {
    const added = await patchedMap({ metadata: { finalizers: ['x.io/c'] } }, types.strategic)
    expect(added.body.metadata?.finalizers).toEqual(['x.io/c', 'x.io/a', 'x.io/b'])
    const patch = { metadata: { '$deleteFromPrimitiveList/finalizers': ['x.io/a'] } }
    expect((await patchedMap(patch, types.strategic)).body.metadata?.finalizers).toEqual(['x.io/b'])
  })

  it('strategic patch with nothing to add to a set still makes each of its members single', async () => {
    const path = `${maps}/doubled`
    await api().post(
      maps,
      configMap('doubled', { metadata: { finalizers: ['x.io/a', 'x.io/a', 'x.io/b', 'x.io/c'] } }),
    )
    const { body } = await api().patch(path, { metadata: { finalizers: [] } }, types.strategic)
    expect(body.metadata?.finalizers).toEqual(['x.io/a', 'x.io/c', 'x.io/b'])
    await api().patch(path, { metadata: { finalizers: null } })
  })

  it('strategic patch: an entry without its merge key is a 500', async () => {
    expect(refusal(await patchedDeployment({ containers: [{ image: 'x' }] }))).toMatchObject({ code: 500 })
  })
}
