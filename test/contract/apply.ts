import { beforeAll, expect } from 'vitest'
import type { KubeObject } from '../../shared/kinds/object.ts'
import { type Answer, refusal } from './api.ts'
import { ownersOf } from './managed-fields.ts'
import { configMap, deployment } from './objects.ts'
import type { Part } from './suite.ts'

const data = (fields: object) => ({ 'f:data': fields })

export function applyContract({ api, it }: Part): void {
  let namespace = ''
  let maps = ''
  let deployments = ''
  beforeAll(async () => {
    namespace = await api().namespace()
    maps = `/api/v1/namespaces/${namespace}/configmaps`
    deployments = `/apis/apps/v1/namespaces/${namespace}/deployments`
  })
  const apply = (name: string, manager: string, extra: object = {}, query = '') =>
    api().apply(`${maps}/${name}`, configMap(name, { ...extra }), `fieldManager=${manager}${query}`)
  const applyDeployment = (name: string, manager: string, object: KubeObject, query = '') =>
    api().apply(
      `${deployments}/${name}`,
      { ...object, metadata: { ...object.metadata, name } },
      `fieldManager=${manager}${query}`,
    )

  it('apply makes what is not there, with 201, and then changes it, with 200', async () => {
    const made = await apply('made', 'one', { data: { a: '1' } })
    expect([made.code, made.body.data]).toEqual([201, { a: '1' }])
    expect(ownersOf(made)).toEqual({ 'one/Apply': data({ 'f:a': {} }) })
    const changed = await apply('made', 'one', { data: { a: '2' } })
    expect([changed.code, changed.body.data]).toEqual([200, { a: '2' }])
  })

  it('an apply that changes nothing leaves the version', async () => {
    const first = await apply('same', 'one', { data: { a: '1' } })
    const second = await apply('same', 'one', { data: { a: '1' } })
    expect(second.body.metadata).toEqual(first.body.metadata)
  })

  it('a manager who states what stands already owns it too, without a time', async () => {
    await apply('shared', 'one', { data: { a: '1', b: '2' } })
    const both = await apply('shared', 'two', { data: { a: '1' } })
    expect(ownersOf(both)).toEqual({
      'one/Apply': data({ 'f:a': {}, 'f:b': {} }),
      'two/Apply': data({ 'f:a': {} }),
    })
    expect(
      both.body.metadata?.managedFields?.map(({ manager, time }) => [manager, time === undefined]),
    ).toEqual([
      ['two', true],
      ['one', false],
    ])
  })

  it('a field that its manager states no more goes, unless another one owns it', async () => {
    await apply('left', 'one', { data: { a: '1', b: '2', c: '3' } })
    await apply('left', 'two', { data: { b: '2' } })
    expect((await apply('left', 'one', { data: { c: '3' } })).body.data).toEqual({ b: '2', c: '3' })
    expect((await apply('left', 'one')).body.data).toEqual({ b: '2' })
    expect((await apply('left', 'two')).body).not.toHaveProperty('data')
  })

  it('another value for a field of somebody else is a 409 that says whose it is', async () => {
    await apply('fight', 'one', { data: { a: '1' } })
    const one = await apply('fight', 'two', { data: { a: '9' } })
    expect(refusal(one)).toEqual({
      code: 409,
      reason: 'Conflict',
      message: 'Apply failed with 1 conflict: conflict with "one": .data.a',
    })
    expect(one.body).toHaveProperty('details', {
      causes: [{ reason: 'FieldManagerConflict', message: 'conflict with "one"', field: '.data.a' }],
    })
  })

  it('several conflicts are told by manager, updates with their version', async () => {
    await apply('fights', 'one', { data: { a: '1', b: '2' } })
    await api().patch(`${maps}/fights?fieldManager=kubectl`, { data: { b: '3', c: '4' } })
    const message = (await apply('fights', 'two', { data: { a: '9', b: '9', c: '9' } })).body.message
    expect(message).toBe(
      'Apply failed with 3 conflicts: conflicts with "kubectl" using v1:\n- .data.b\n- .data.c\nconflicts with "one":\n- .data.a',
    )
  })

  it('force takes the field, and the other owns it no more', async () => {
    await apply('taken', 'one', { data: { a: '1', b: '2' } })
    const taken = await apply('taken', 'two', { data: { a: '9' } }, '&force=true')
    expect(taken.body.data).toEqual({ a: '9', b: '2' })
    expect(ownersOf(taken)).toEqual({
      'one/Apply': data({ 'f:b': {} }),
      'two/Apply': data({ 'f:a': {} }),
    })
  })

  it('a null states the field, with its zero value', async () => {
    const answer = await apply('null', 'one', { data: { a: null }, immutable: null })
    expect(answer.body.data).toEqual({ a: '' })
    expect(ownersOf(answer)).toEqual({ 'one/Apply': { ...data({ 'f:a': {} }), 'f:immutable': {} } })
  })

  it('a body with managedFields is a 400', async () => {
    const answer = await apply('managed', 'one', { metadata: { managedFields: [] } })
    expect(refusal(answer)).toEqual({
      code: 400,
      reason: 'BadRequest',
      message: 'metadata.managedFields must be nil',
    })
  })

  it('a body of another kind or version is a 400', async () => {
    const send = async (head: object) =>
      refusal(await api().apply(`${maps}/kind`, { ...head, metadata: { name: 'kind' } })).message
    expect(await send({ apiVersion: 'v1', kind: 'Secret' })).toBe('invalid object type: /v1, Kind=Secret')
    expect(await send({ apiVersion: 'v2', kind: 'ConfigMap' })).toBe(
      'invalid object type: /v2, Kind=ConfigMap',
    )
    expect(await send({ kind: 'ConfigMap' })).toBe('invalid object type: /, Kind=ConfigMap')
  })

  it('a stale version is a 409, on a missing object it is not looked at', async () => {
    await apply('stale', 'one', { data: { a: '1' } })
    const stale = await apply('stale', 'one', { metadata: { resourceVersion: '1' }, data: { a: '2' } })
    expect(refusal(stale)).toMatchObject({
      code: 409,
      reason: 'Conflict',
      message: expect.stringContaining('the object has been modified'),
    })
    expect((await apply('fresh', 'one', { metadata: { resourceVersion: '1' } })).code).toBe(201)
  })

  it('the uid of what is gone is a 409, that of another incarnation a 422', async () => {
    const absent = await apply('uid', 'one', { metadata: { uid: 'abc' } })
    expect(refusal(absent)).toEqual({
      code: 409,
      reason: 'Conflict',
      message:
        'Operation cannot be fulfilled on configmaps "uid": uid mismatch: the provided object specified uid abc, and no existing object was found',
    })
    await apply('uid', 'one')
    const other = await apply('uid', 'one', { metadata: { uid: 'abc' } })
    expect(refusal(other)).toEqual({
      code: 422,
      reason: 'Invalid',
      message: 'ConfigMap "uid" is invalid: metadata.uid: Invalid value: "abc": field is immutable',
    })
  })

  it('an env name that stands twice is repaired by an apply that states it once', async () => {
    const twice = [
      { name: 'A', value: '1' },
      { name: 'A', value: '2' },
      { name: 'B', value: '3' },
    ]
    await api().post(deployments, deployment('twice', {}, { env: twice }))
    const once = [{ name: 'A', value: '4' }]
    const { body } = await applyDeployment(
      'twice',
      'one',
      deployment('twice', {}, { env: once }),
      '&force=true',
    )
    expect(body).toHaveProperty('spec.template.spec.containers.0.env', [
      { name: 'A', value: '4' },
      { name: 'B', value: '3' },
    ])
  })

  it('lists are put into the order of the one who applies, with what others have in between', async () => {
    const names = (answer: Answer) =>
      (
        answer.body.spec as { template: { spec: { containers: { name: string }[] } } }
      ).template.spec.containers.map((one) => one.name)
    const containers = (...list: string[]) => ({
      ...deployment('order'),
      spec: {
        ...(deployment('order').spec as object),
        template: {
          metadata: { labels: { app: 'order' } },
          spec: { containers: list.map((name) => ({ name, image: 'x' })) },
        },
      },
    })
    await applyDeployment('order', 'one', containers('a', 'b', 'c'))
    expect(names(await applyDeployment('order', 'two', containers('n', 'c', 'a')))).toEqual([
      'b',
      'n',
      'c',
      'a',
    ])
  })

  it('an apply that changes nothing but the order of a list changes it', async () => {
    await apply('turned', 'one', { metadata: { finalizers: ['x.io/a', 'x.io/b'] } })
    const turned = await apply('turned', 'one', { metadata: { finalizers: ['x.io/b', 'x.io/a'] } })
    expect(turned.body.metadata?.finalizers).toEqual(['x.io/b', 'x.io/a'])
    await api().patch(`${maps}/turned`, { metadata: { finalizers: null } })
  })
}
