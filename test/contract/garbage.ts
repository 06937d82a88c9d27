import { beforeEach, expect } from 'vitest'
import type { KubeObject } from '../../shared/kinds/object.ts'
import { refusal } from './api.ts'
import { configMap } from './objects.ts'
import type { Part } from './suite.ts'

export function garbageContract({ api, it }: Part): void {
  let namespace = ''
  let base = ''
  beforeEach(async () => {
    namespace = await api().namespace()
    base = `/api/v1/namespaces/${namespace}/configmaps`
  })

  const ref = ({ metadata }: KubeObject, extra = {}) => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    name: metadata?.name,
    uid: metadata?.uid,
    ...extra,
  })
  const owner = async (name = 'owner') => (await api().post(base, configMap(name))).body
  const dependent = (name: string, ...ownerReferences: object[]) =>
    api().post(base, configMap(name, { metadata: { ownerReferences } }))
  const gone = (name: string) => api().until(`${base}/${name}`, ({ code }) => code === 404)

  it('background: the owner goes at once, what it owns follows', async () => {
    await dependent('child', ref(await owner(), { controller: true, blockOwnerDeletion: true }))
    const deleted = await api().del(`${base}/owner`, { propagationPolicy: 'Background' })
    expect(deleted.body.kind).toBe('Status')
    await gone('child')
  })

  it('foreground: the owner waits for what blocks it', async () => {
    const finalizers = ['neiam.org/keep']
    const ownerReferences = [ref(await owner(), { blockOwnerDeletion: true })]
    await api().post(base, configMap('child', { metadata: { ownerReferences, finalizers } }))
    const { body } = await api().del(`${base}/owner`, { propagationPolicy: 'Foreground' })
    expect(body.metadata?.finalizers).toEqual(['foregroundDeletion'])
    await api().until(`${base}/child`, ({ body: child }) => child.metadata?.deletionTimestamp !== undefined)
    expect((await api().get(`${base}/owner`)).code).toBe(200)
    await api().patch(`${base}/child`, { metadata: { finalizers: null } })
    await gone('owner')
  })

  it('orphan: what it owned stays, without the owner', async () => {
    await dependent('child', ref(await owner()))
    const { body } = await api().del(`${base}/owner`, { propagationPolicy: 'Orphan' })
    expect(body.metadata?.finalizers).toEqual(['orphan'])
    await gone('owner')
    expect((await api().get(`${base}/child`)).body.metadata?.ownerReferences).toBeUndefined()
  })

  it('an object goes when its last owner has gone, and loses those that went before', async () => {
    const [first, second] = [await owner('first'), await owner('second')]
    await dependent('child', ref(first), ref(second))
    await api().del(`${base}/first`)
    const { body } = await api().until(
      `${base}/child`,
      ({ body }) => body.metadata?.ownerReferences?.length === 1,
    )
    expect(body.metadata?.ownerReferences?.[0]?.name).toBe('second')
    await api().del(`${base}/second`)
    await gone('child')
  })

  it('an owner of another incarnation is none', async () => {
    await owner()
    await dependent('child', { apiVersion: 'v1', kind: 'ConfigMap', name: 'owner', uid: 'long-gone' })
    await gone('child')
  })

  it('a namespace takes all that is in it, and waits for what has finalizers', async () => {
    await api().post(base, configMap('plain'))
    await api().post(base, configMap('kept', { metadata: { finalizers: ['neiam.org/keep'] } }))
    const { body } = await api().del(`/api/v1/namespaces/${namespace}`)
    expect(body.status).toMatchObject({ phase: 'Terminating' })
    await gone('plain')
    await api().until(`${base}/kept`, ({ body: kept }) => kept.metadata?.deletionTimestamp !== undefined)
    expect(refusal(await api().post(base, configMap('late')))).toEqual({
      code: 403,
      reason: 'Forbidden',
      message: `configmaps "late" is forbidden: unable to create new content in namespace ${namespace} because it is being terminated`,
    })
    await api().patch(`${base}/kept`, { metadata: { finalizers: null } })
    await api().until(`/api/v1/namespaces/${namespace}`, ({ code }) => code === 404)
  })
}
