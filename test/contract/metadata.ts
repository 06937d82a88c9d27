import { beforeAll, expect } from 'vitest'
import { refusal } from './api.ts'
import { configMap } from './objects.ts'
import type { Part } from './suite.ts'

export function metadataContract({ api, it }: Part): void {
  let base = ''
  beforeAll(async () => {
    base = `/api/v1/namespaces/${await api().namespace()}/configmaps`
  })

  it('versions rise with each write, over all kinds', async () => {
    const first = await api().post(base, configMap('v1'))
    const second = await api().post(base.replace('configmaps', 'secrets'), { metadata: { name: 'v2' } })
    const third = await api().patch(`${base}/v1`, { data: { a: '1' } })
    const versions = [first, second, third].map(({ body }) => Number(body.metadata?.resourceVersion))
    expect(versions).toEqual(versions.toSorted((a, b) => a - b))
    expect(new Set(versions).size).toBe(3)
  })

  it('a write from a version that is no longer the newest is refused', async () => {
    const { body } = await api().post(base, configMap('stale'))
    await api().patch(`${base}/stale`, { data: { a: '1' } })
    const { resourceVersion } = body.metadata ?? {}
    const message =
      'Operation cannot be fulfilled on configmaps "stale": the object has been modified; please apply your changes to the latest version and try again'
    const refused = { code: 409, reason: 'Conflict', message }
    expect(refusal(await api().put(`${base}/stale`, body))).toEqual(refused)
    expect(refusal(await api().patch(`${base}/stale`, { metadata: { resourceVersion } }))).toEqual(refused)
  })

  it('a write for another incarnation is refused', async () => {
    await api().post(base, configMap('reborn'))
    const put = await api().put(`${base}/reborn`, configMap('reborn', { metadata: { uid: 'other' } }))
    expect(refusal(put)).toMatchObject({ code: 409, reason: 'Conflict' })
    expect(refusal(await api().patch(`${base}/reborn`, { metadata: { uid: 'other' } }))).toEqual({
      code: 422,
      reason: 'Invalid',
      message: 'ConfigMap "reborn" is invalid: metadata.uid: Invalid value: "other": field is immutable',
    })
  })

  it('what only the server sets is not taken from a client', async () => {
    const given = {
      uid: 'mine',
      creationTimestamp: '2020-01-01T00:00:00Z',
      deletionTimestamp: '2020-01-01T00:00:00Z',
      deletionGracePeriodSeconds: 7,
      selfLink: '/mine',
    }
    const { body } = await api().post(base, configMap('given', { metadata: given }))
    expect(body.metadata?.uid).not.toBe('mine')
    expect(body.metadata?.creationTimestamp).not.toBe(given.creationTimestamp)
    expect(body.metadata?.deletionTimestamp).toBeUndefined()
    expect(Object.keys(body.metadata ?? {}).sort()).toEqual([
      'creationTimestamp',
      'name',
      'namespace',
      'resourceVersion',
      'uid',
    ])
  })

  it('an object with a finalizer stays, marked, until the finalizer is taken off', async () => {
    const finalizers = ['neiam.org/keep']
    const { body } = await api().post(base, configMap('kept', { metadata: { finalizers } }))
    const deleted = await api().del(`${base}/kept`)
    expect(deleted.body.metadata?.deletionTimestamp).toBeTruthy()
    expect(deleted.body.metadata?.deletionGracePeriodSeconds).toBe(0)
    expect(deleted.body.metadata?.uid).toBe(body.metadata?.uid)
    expect((await api().del(`${base}/kept`)).body).toEqual(deleted.body)
    const added = await api().patch(`${base}/kept`, {
      metadata: { finalizers: [...finalizers, 'neiam.org/late'] },
    })
    expect(refusal(added)).toEqual({
      code: 422,
      reason: 'Invalid',
      message:
        'ConfigMap "kept" is invalid: metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"neiam.org/late"}',
    })
    expect((await api().patch(`${base}/kept`, { data: { still: 'writable' } })).code).toBe(200)
    expect((await api().patch(`${base}/kept`, { metadata: { finalizers: null } })).code).toBe(200)
    expect((await api().get(`${base}/kept`)).code).toBe(404)
  })

  it('preconditions of a DELETE name the incarnation and the version', async () => {
    const { body } = await api().post(base, configMap('sure'))
    const { uid, resourceVersion } = body.metadata ?? {}
    const byUid = await api().del(`${base}/sure`, { preconditions: { uid: 'other' } })
    expect(refusal(byUid)).toEqual({
      code: 409,
      reason: 'Conflict',
      message: `Operation cannot be fulfilled on ConfigMap "sure": the UID in the precondition (other) does not match the UID in record (${uid}). The object might have been deleted and then recreated`,
    })
    const byVersion = await api().del(`${base}/sure`, { preconditions: { resourceVersion: '1' } })
    expect(refusal(byVersion)).toEqual({
      code: 409,
      reason: 'Conflict',
      message: `Operation cannot be fulfilled on ConfigMap "sure": the ResourceVersion in the precondition (1) does not match the ResourceVersion in record (${resourceVersion}). The object might have been modified`,
    })
    expect((await api().del(`${base}/sure`, { preconditions: { uid, resourceVersion } })).code).toBe(200)
  })

  it('a JSON patch of managedFields alone moves ownership', async () => {
    const { body } = await api().post(`${base}?fieldManager=old`, configMap('moved', { data: { a: '1' } }))
    const [entry] = body.metadata?.managedFields ?? []
    const managedFields = [{ ...entry, manager: 'new', operation: 'Apply' }]
    const operations = [{ op: 'replace', path: '/metadata/managedFields', value: managedFields }]
    await api().patch(`${base}/moved`, operations, 'application/json-patch+json')
    const applied = await api().apply(`${base}/moved`, configMap('moved'), 'fieldManager=new')
    expect(applied.body.data).toBeUndefined()
  })

  it('a new namespace is named in its label, and finalized by Kubernetes', async () => {
    const name = await api().namespace()
    const { body } = await api().get(`/api/v1/namespaces/${name}`)
    expect(body.metadata?.labels).toEqual({ 'kubernetes.io/metadata.name': name })
    expect(body.spec).toEqual({ finalizers: ['kubernetes'] })
    expect(body.status).toEqual({ phase: 'Active' })
  })
}
