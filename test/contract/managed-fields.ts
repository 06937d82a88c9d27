import { beforeAll, expect } from 'vitest'
import type { KubeObject, ManagedFieldsEntry } from '../../shared/kinds/object.ts'
import { type Answer, types } from './api.ts'
import { configMap, deployment } from './objects.ts'
import type { Part } from './suite.ts'

type Owners = Record<string, unknown>

/** What each manager owns, by `manager/operation` and the subresource if any. */
export function ownersOf({ body }: Answer): Owners {
  const entries: ManagedFieldsEntry[] = body.metadata?.managedFields ?? []
  const name = ({ manager, operation, subresource }: ManagedFieldsEntry) =>
    [manager, operation, subresource].filter((part) => part).join('/')
  return Object.fromEntries(entries.map((entry) => [name(entry), entry.fieldsV1]))
}

const data = (fields: object) => ({ 'f:data': fields })

export function managedFieldsContract({ api, it }: Part): void {
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

  it('a manager whose fields all went is named no more', async () => {
    await apply('gone', 'one', { data: { a: '1' } })
    expect((await apply('gone', 'one')).body.metadata).not.toHaveProperty('managedFields')
  })

  it('an update owns what it changed; what it removed nobody owns', async () => {
    await apply('updated', 'one', { data: { a: '1', b: '2', c: '3' } })
    const answer = await api().put(
      `${maps}/updated?fieldManager=two`,
      configMap('updated', { data: { a: '9', b: '2' } }),
    )
    expect(ownersOf(answer)).toEqual({
      'one/Apply': data({ 'f:b': {} }),
      'two/Update': data({ 'f:a': {} }),
    })
  })

  it('a creation owns what it made, and what the server filled in by default', async () => {
    const made = await api().post(
      `${deployments}?fieldManager=one`,
      deployment('posted', {}, { env: [{ name: 'A', value: '1' }] }),
    )
    const { 'f:spec': spec, 'f:metadata': metadata } = ownersOf(made)['one/Update'] as Record<string, Owners>
    expect(metadata).toEqual({ 'f:labels': { '.': {}, 'f:app': {} } })
    expect(Object.keys(spec ?? {})).toEqual([
      'f:progressDeadlineSeconds',
      'f:replicas',
      'f:revisionHistoryLimit',
      'f:selector',
      'f:strategy',
      'f:template',
    ])
    expect(spec).toMatchObject({
      'f:strategy': { 'f:rollingUpdate': { '.': {}, 'f:maxSurge': {} } },
      'f:template': {
        'f:spec': {
          'f:containers': {
            'k:{"name":"main"}': { '.': {}, 'f:env': { '.': {}, 'k:{"name":"A"}': { '.': {} } } },
          },
        },
      },
    })
  })

  it('kubectl takes over what its own client-side apply left, and keeps the annotation', async () => {
    const last = 'kubectl.kubernetes.io/last-applied-configuration'
    const object = configMap('migrated', { data: { a: '1', b: '2' } })
    const annotations = { [last]: JSON.stringify(object) }
    await api().post(`${maps}?fieldManager=kubectl-client-side-apply`, {
      ...object,
      metadata: { name: 'migrated', annotations },
    })
    const answer = await apply('migrated', 'kubectl', { data: { a: '9' } })
    expect([answer.code, answer.body.data]).toEqual([200, { a: '9', b: '2' }])
    expect(answer.body.metadata?.annotations?.[last]).toBe(
      '{"apiVersion":"v1","data":{"a":"9"},"kind":"ConfigMap","metadata":{"name":"migrated"}}\n',
    )
  })

  it('what was there before anybody applied belongs to before-first-apply', async () => {
    await api().post(`${maps}?fieldManager=one`, configMap('before', { data: { a: '1' } }))
    const reset = [{ op: 'replace', path: '/metadata/managedFields', value: [{}] }]
    const bare = await api().patch(`${maps}/before`, reset, types.jsonPatch)
    expect(bare.body.metadata).not.toHaveProperty('managedFields')
    const updated = await api().patch(`${maps}/before`, { data: { b: '2' } })
    expect(updated.body.metadata).not.toHaveProperty('managedFields')
    expect(ownersOf(await apply('before', 'two', { data: { c: '3' } }))).toEqual({
      'before-first-apply/Update': data({ '.': {}, 'f:a': {}, 'f:b': {} }),
      'two/Apply': data({ 'f:c': {} }),
    })
  })

  it('ownership moved by a JSON patch lets the next apply remove what the earlier manager made', async () => {
    const made = await api().post(
      `${maps}?fieldManager=older`,
      configMap('moved', { data: { a: '1', b: '2' } }),
    )
    const entries = made.body.metadata?.managedFields?.map((entry) => ({
      ...entry,
      manager: 'ours',
      operation: 'Apply',
    }))
    const { resourceVersion } = made.body.metadata ?? {}
    const patch = [
      { op: 'test', path: '/metadata/resourceVersion', value: resourceVersion },
      { op: 'replace', path: '/metadata/managedFields', value: entries },
    ]
    const moved = await api().patch(`${maps}/moved`, patch, types.jsonPatch)
    expect(ownersOf(moved)).toEqual({ 'ours/Apply': data({ '.': {}, 'f:a': {}, 'f:b': {} }) })
    const applied = await apply('moved', 'ours', { data: { a: '1' } })
    expect(applied.body.data).toEqual({ a: '1' })
    expect(Object.keys(ownersOf(applied))).toEqual(['ours/Apply'])
  })

  it('a status that is applied is owned through its subresource, and nothing else is', async () => {
    await applyDeployment('status', 'one', deployment('status'))
    const status = { replicas: 3, conditions: [{ type: 'Available', status: 'True' }] }
    const object = {
      ...deployment('status', { replicas: 9 }),
      metadata: { name: 'status', labels: { x: 'y' } },
      status,
    }
    const answer = await api().apply(`${deployments}/status/status`, object, 'fieldManager=two')
    expect(answer.body).toMatchObject({
      spec: { replicas: 0 },
      status: { replicas: 3 },
      metadata: { labels: { app: 'status' } },
    })
    expect(ownersOf(answer)['two/Apply/status']).toEqual({
      'f:status': {
        'f:conditions': { 'k:{"type":"Available"}': { '.': {}, 'f:status': {}, 'f:type': {} } },
        'f:replicas': {},
      },
    })
  })

  it('stating what an apply cannot change leaves it as it is, but counts as a change for the time', async () => {
    const object = deployment('counted')
    await applyDeployment('counted', 'one', object)
    const quiet = await applyDeployment('counted', 'two', object)
    const loud = await applyDeployment('counted', 'three', { ...object, status: { replicas: 3 } })
    const timeOf = ({ body }: Answer, manager: string) =>
      body.metadata?.managedFields?.find((entry) => entry.manager === manager)?.time
    expect([timeOf(quiet, 'two') === undefined, timeOf(loud, 'three') === undefined]).toEqual([true, false])
    expect(ownersOf(loud)['three/Apply']).toEqual(ownersOf(quiet)['two/Apply'])
    expect(loud.body.status).not.toMatchObject({ replicas: 3 })
  })

  it('an empty list of managers, or one of an empty entry, makes the server forget them', async () => {
    for (const [place, managedFields] of [[], [{}]].entries()) {
      await api().post(maps, configMap(`forgotten-${place}`, { data: { a: '1' } }))
      const object = configMap(`forgotten-${place}`, { data: { a: '1' }, metadata: { managedFields } })
      const { body } = await api().put(`${maps}/forgotten-${place}`, object)
      expect(body.metadata).not.toHaveProperty('managedFields')
    }
  })

  it('managers that cannot be read are not looked at', async () => {
    const made = await api().post(`${maps}?fieldManager=one`, configMap('unread', { data: { a: '1' } }))
    const entry = {
      manager: 'x',
      operation: 'Sideways',
      apiVersion: 'v1',
      fieldsType: 'FieldsV1',
      fieldsV1: { 'f:data': {} },
    }
    const object = configMap('unread', { data: { a: '1' }, metadata: { managedFields: [entry] } })
    expect(ownersOf(await api().put(`${maps}/unread?fieldManager=two`, object))).toEqual(ownersOf(made))
  })

  it('past ten updating managers the oldest are folded into one', async () => {
    await api().post(`${maps}?fieldManager=m00`, configMap('many', { data: { k: '0' } }))
    for (const number of ['01', '02', '03', '04', '05', '06', '07', '08', '09', '10', '11'])
      await api().patch(`${maps}/many?fieldManager=m${number}`, { data: { [`k${number}`]: '1' } })
    const owners = ownersOf(await api().get(`${maps}/many`))
    expect(Object.keys(owners)).toHaveLength(10)
    expect(owners['ancient-changes/Update']).toEqual(data({ '.': {}, 'f:k': {}, 'f:k01': {}, 'f:k02': {} }))
  })

  it('keys in the path of a field are escaped as in HTML', async () => {
    const made = await api().post(
      `${deployments}?fieldManager=one`,
      deployment('escaped', {}, { env: [{ name: 'a<b' }] }),
    )
    expect(JSON.stringify(ownersOf(made))).toContain('k:{\\"name\\":\\"a\\\\u003cb\\"}')
  })
}
