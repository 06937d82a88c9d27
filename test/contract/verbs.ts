import { beforeAll, expect } from 'vitest'
import { normal, refusal, types } from './api.ts'
import { configMap } from './objects.ts'
import type { Part } from './suite.ts'

export function verbContract({ api, it }: Part): void {
  let base = ''
  beforeAll(async () => {
    base = `/api/v1/namespaces/${await api().namespace()}/configmaps`
  })

  it('an object created is given back with what the server adds, and read again the same', async () => {
    const created = await api().post(base, configMap('made', { data: { a: '1' } }))
    expect(created.code).toBe(201)
    expect(normal(created.body)).toEqual({
      kind: 'ConfigMap',
      apiVersion: 'v1',
      metadata: {
        name: 'made',
        namespace: base.split('/')[4],
        uid: '<uid>',
        resourceVersion: '<version>',
        creationTimestamp: '<time>',
        managedFields: [
          {
            manager: 'contract',
            operation: 'Update',
            apiVersion: 'v1',
            time: '<time>',
            fieldsType: 'FieldsV1',
            fieldsV1: { 'f:data': { '.': {}, 'f:a': {} } },
          },
        ],
      },
      data: { a: '1' },
    })
    expect((await api().get(`${base}/made`)).body).toEqual(created.body)
  })

  it('kind and apiVersion may be left out for built-in kinds', async () => {
    expect((await api().post(base, { metadata: { name: 'untyped' } })).code).toBe(201)
  })

  it('a body may be YAML', async () => {
    const yaml = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: yaml}\ndata: {a: "1"}\n'
    const { code, body } = await api().post(base, yaml, { type: 'application/yaml' })
    expect([code, body.data]).toEqual([201, { a: '1' }])
  })

  it('generateName gets five letters', async () => {
    const { body } = await api().post(base, { metadata: { generateName: 'made-' } })
    expect(body.metadata?.name).toMatch(/^made-[bcdfghjklmnpqrstvwxz2-9]{5}$/)
    expect(body.metadata?.generateName).toBe('made-')
  })

  it('a second object of the name is refused', async () => {
    await api().post(base, configMap('twice'))
    expect(refusal(await api().post(base, configMap('twice')))).toEqual({
      code: 409,
      reason: 'AlreadyExists',
      message: 'configmaps "twice" already exists',
    })
  })

  it('PUT replaces all that is not the server’s', async () => {
    const { body } = await api().post(
      base,
      configMap('put', { data: { a: '1' }, metadata: { labels: { x: 'y' } } }),
    )
    const put = await api().put(`${base}/put`, configMap('put', { data: { b: '2' } }))
    expect(put.code).toBe(200)
    expect(put.body.data).toEqual({ b: '2' })
    expect(put.body.metadata?.labels).toBeUndefined()
    expect(put.body.metadata?.uid).toBe(body.metadata?.uid)
    expect(put.body.metadata?.creationTimestamp).toBe(body.metadata?.creationTimestamp)
  })

  it('PUT to a name that is not there creates a Lease, but no ConfigMap', async () => {
    const leases = base.replace('/api/v1', '/apis/coordination.k8s.io/v1').replace('configmaps', 'leases')
    const lease = { metadata: { name: 'new', resourceVersion: '1' }, spec: {} }
    // A dry run stores nothing that would have a version, so it shows the one that it was sent.
    const sent = { ...lease, metadata: { name: 'new', resourceVersion: '7' } }
    const dry = await api().put(`${leases}/new?dryRun=All`, sent)
    expect([dry.code, dry.body.metadata?.resourceVersion]).toEqual([201, '7'])
    expect((await api().put(`${leases}/new`, lease)).code).toBe(201)
    expect((await api().put(`${base}/new`, configMap('new'))).code).toBe(404)
  })

  it('a Lease is not replaced without its version', async () => {
    const leases = base.replace('/api/v1', '/apis/coordination.k8s.io/v1').replace('configmaps', 'leases')
    const lease = { metadata: { name: 'blind' }, spec: {} }
    await api().put(`${leases}/blind`, lease)
    expect(refusal(await api().put(`${leases}/blind`, lease))).toEqual({
      code: 422,
      reason: 'Invalid',
      message:
        'leases.coordination.k8s.io "blind" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update',
    })
  })

  it('a write that changes nothing leaves the version', async () => {
    const { body } = await api().post(base, configMap('same', { data: { a: '1' } }))
    const put = await api().put(`${base}/same`, configMap('same', { data: { a: '1' } }))
    const patched = await api().patch(`${base}/same`, { data: { a: '1' } })
    expect([put.body, patched.body]).toEqual([body, body])
  })

  it('merge patch: null removes, a list replaces', async () => {
    await api().post(base, configMap('merge', { data: { a: '1', b: '2' } }))
    const { body } = await api().patch(`${base}/merge`, { data: { a: null, c: '3' } })
    expect(body.data).toEqual({ b: '2', c: '3' })
  })

  it('JSON patch: all or nothing', async () => {
    await api().post(base, configMap('json', { data: { a: '1' } }))
    const failed = [
      { op: 'add', path: '/data/b', value: '2' },
      { op: 'test', path: '/data/a', value: 'other' },
    ]
    expect((await api().patch(`${base}/json`, failed, types.jsonPatch)).code).toBe(422)
    const done = [
      { op: 'test', path: '/data/a', value: '1' },
      { op: 'replace', path: '/data/a', value: '3' },
    ]
    expect((await api().patch(`${base}/json`, done, types.jsonPatch)).body.data).toEqual({ a: '3' })
  })

  it('apply creates, applies again without a write, and takes out what it leaves out', async () => {
    const made = await api().apply(`${base}/applied`, configMap('applied', { data: { a: '1', b: '2' } }))
    const again = await api().apply(`${base}/applied`, configMap('applied', { data: { a: '1', b: '2' } }))
    const less = await api().apply(`${base}/applied`, configMap('applied', { data: { a: '1' } }))
    expect([made.code, again.code, less.code]).toEqual([201, 200, 200])
    expect(again.body).toEqual(made.body)
    expect(less.body.data).toEqual({ a: '1' })
  })

  it('a conflict of appliers names the other and the field; force takes it', async () => {
    await api().apply(`${base}/fought`, configMap('fought', { data: { a: '1' } }), 'fieldManager=one')
    const other = configMap('fought', { data: { a: '2' } })
    const refused = await api().apply(`${base}/fought`, other, 'fieldManager=two')
    expect(refusal(refused)).toEqual({
      code: 409,
      reason: 'Conflict',
      message: 'Apply failed with 1 conflict: conflict with "one": .data.a',
    })
    const forced = await api().apply(`${base}/fought`, other, 'fieldManager=two&force=true')
    expect(forced.body.data).toEqual({ a: '2' })
    const managers = forced.body.metadata?.managedFields?.map(
      ({ manager, operation }) => `${operation} ${manager}`,
    )
    expect(managers).toEqual(['Apply two'])
  })

  it('DELETE answers with the name and the uid of what is gone', async () => {
    const { body } = await api().post(base, configMap('gone'))
    const deleted = await api().del(`${base}/gone`)
    expect(deleted.body).toEqual({
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Success',
      details: { name: 'gone', kind: 'configmaps', uid: body.metadata?.uid },
    })
    expect((await api().get(`${base}/gone`)).code).toBe(404)
  })

  it('DELETE of a collection deletes what is selected, and lists it', async () => {
    for (const name of ['c-1', 'c-2', 'c-3'])
      await api().post(base, configMap(name, { metadata: { labels: { set: name === 'c-3' ? 'b' : 'a' } } }))
    const { body } = await api().del(`${base}?labelSelector=set%3Da`)
    expect(body.items.map(({ metadata }) => metadata?.name)).toEqual(['c-1', 'c-2'])
    expect((await api().get(`${base}?labelSelector=set`)).body.items).toHaveLength(1)
  })

  it('a dry run answers as the real thing does, and does nothing', async () => {
    const made = await api().post(`${base}?dryRun=All`, configMap('dry'))
    expect(made.code).toBe(201)
    expect(made.body.metadata?.uid).toBeTruthy()
    expect(made.body.metadata?.resourceVersion).toBeUndefined()
    expect((await api().get(`${base}/dry`)).code).toBe(404)
    const { body } = await api().post(base, configMap('wet', { data: { a: '1' } }))
    const put = await api().put(`${base}/wet?dryRun=All`, configMap('wet', { data: { a: '2' } }))
    expect(put.body.data).toEqual({ a: '2' })
    const applied = await api().apply(`${base}/other`, configMap('other'), 'fieldManager=a&dryRun=All')
    expect(applied.code).toBe(201)
    expect((await api().del(`${base}/wet?dryRun=All`)).code).toBe(200)
    expect((await api().get(`${base}/wet`)).body).toEqual(body)
    expect((await api().get(`${base}/other`)).code).toBe(404)
  })

  it('a field that the kind does not know is dropped, warned of, or refused, as asked', async () => {
    const odd = configMap('odd', { bogus: 1 })
    const strict = await api().post(`${base}?fieldValidation=Strict`, odd)
    expect(refusal(strict)).toEqual({
      code: 400,
      reason: 'BadRequest',
      message:
        'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: unknown field "bogus"',
    })
    const warned = await api().post(base, odd)
    expect([warned.code, warned.headers.get('warning')]).toEqual([201, '299 - "unknown field \\"bogus\\""'])
    expect(warned.body.bogus).toBeUndefined()
    const ignored = await api().put(`${base}/odd?fieldValidation=Ignore`, odd)
    expect([ignored.code, ignored.headers.get('warning')]).toEqual([200, null])
  })

  it('a namespace is there for what is created in it', async () => {
    const path = '/api/v1/namespaces/contract-nowhere/configmaps'
    expect(refusal(await api().post(path, configMap('a')))).toEqual({
      code: 404,
      reason: 'NotFound',
      message: 'namespaces "contract-nowhere" not found',
    })
    expect((await api().get(path)).body.items).toEqual([])
  })
}
