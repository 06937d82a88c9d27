import { beforeAll, expect } from 'vitest'
import { accepts, refusal } from './api.ts'
import { configMap, deployment, widget, widgetCrd, widgetCrdPath, widgetGroup } from './objects.ts'
import type { Part } from './suite.ts'

interface Table {
  kind: string
  columnDefinitions: { name: string; type: string; format: string; priority: number }[]
  rows: { cells: unknown[]; object: { kind: string; metadata: { name: string } } | null }[]
}

export function tableContract({ api, it }: Part): void {
  let namespace = ''
  beforeAll(async () => {
    namespace = await api().namespace()
  })
  const table = async (path: string) =>
    (await api().get(path, { accept: accepts.table })).body as unknown as Table
  const columns = ({ columnDefinitions }: Table) =>
    columnDefinitions.map(({ name, type, format, priority }) =>
      [name, type, format, priority].join(' ').trim(),
    )

  const hasColumns = (path: string, ...wanted: string[]) =>
    it(`${path} has the columns ${wanted.map((column) => column.split(' ')[0]).join(', ')}`, async () => {
      expect(columns(await table(`${path}?limit=1`))).toEqual(wanted)
    })
  const age = 'Age string  0'
  const name = 'Name string name 0'
  hasColumns('/api/v1/namespaces', name, 'Status string  0', age)
  hasColumns('/api/v1/configmaps', name, 'Data string  0', age)
  hasColumns('/api/v1/secrets', name, 'Type string  0', 'Data string  0', age)
  hasColumns('/apis/coordination.k8s.io/v1/leases', name, 'Holder string  0', age)
  hasColumns('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', name, 'Created At date  0')
  hasColumns(
    '/apis/apps/v1/deployments',
    name,
    'Ready string  0',
    'Up-to-date string  0',
    'Available string  0',
    age,
    'Containers string  1',
    'Images string  1',
    'Selector string  1',
  )
  hasColumns(
    '/api/v1/events',
    'Last Seen string  0',
    'Type string  0',
    'Reason string  0',
    'Object string  0',
    'Subobject string  1',
    'Source string  1',
    'Message string  0',
    'First Seen string  1',
    'Count string  1',
    'Name string name 1',
  )

  it('a row has the cells and the object’s metadata', async () => {
    const path = `/api/v1/namespaces/${namespace}/configmaps`
    await api().post(path, configMap('row', { data: { a: '1', b: '2' } }))
    const { kind, rows } = await table(`${path}/row`)
    expect(kind).toBe('Table')
    expect(rows[0]?.cells).toEqual(['row', 2, expect.stringMatching(/^\d+s$/)])
    expect(rows[0]?.object).toMatchObject({ kind: 'PartialObjectMetadata', metadata: { name: 'row' } })
    expect((await table(`${path}/row?includeObject=None`)).rows[0]?.object).toBeNull()
    expect((await table(`${path}/row?includeObject=Object`)).rows[0]?.object).toMatchObject({
      kind: 'ConfigMap',
    })
    const wrong = await api().get(`${path}/row?includeObject=All`, { accept: accepts.table })
    expect(refusal(wrong)).toMatchObject({ code: 400 })
  })

  it('a Deployment’s row counts its pods and names its containers', async () => {
    const path = `/apis/apps/v1/namespaces/${namespace}/deployments`
    await api().post(path, deployment('row'))
    const { rows } = await table(`${path}/row`)
    expect(rows[0]?.cells.filter((_, index) => index !== 4)).toEqual([
      'row',
      '0/0',
      0,
      0,
      'main',
      'nginx',
      'app=row',
    ])
  })

  it('a custom resource has the columns of its CRD', async () => {
    await api().post(widgetCrdPath, widgetCrd())
    await api().until(`/apis/${widgetGroup}/v1/widgets`, ({ code }) => code === 200)
    const path = `/apis/${widgetGroup}/v1/namespaces/${namespace}/widgets`
    await api().post(path, widget('row', { size: 3, tags: ['a', 'b'] }))
    const ready = {
      conditions: [
        { type: 'Other', status: 'False' },
        { type: 'Ready', status: 'True' },
      ],
    }
    await api().patch(`${path}/row/status`, { status: ready })
    await api().post(path, widget('bare', { size: 1 }))
    const { rows, ...rest } = await table(path)
    expect(columns(rest as Table)).toEqual([
      name,
      'Size integer  0',
      'Ready string  0',
      'Tags string  1',
      'Age date  0',
    ])
    const seconds = expect.stringMatching(/^\d+s$/)
    expect(rows.map(({ cells }) => cells)).toEqual([
      ['bare', 1, null, null, seconds],
      ['row', 3, 'True', '["a","b"]', seconds],
    ])
  })

  it('metadata alone, of one and of many', async () => {
    const path = `/api/v1/namespaces/${namespace}/configmaps`
    await api().post(path, configMap('partial', { data: { a: '1' } }))
    const one = await api().get(`${path}/partial`, { accept: accepts.metadata })
    expect(Object.keys(one.body).sort()).toEqual(['apiVersion', 'kind', 'metadata'])
    expect([one.body.kind, one.body.apiVersion]).toEqual(['PartialObjectMetadata', 'meta.k8s.io/v1'])
    const many = await api().get(`${path}?fieldSelector=metadata.name%3Dpartial`, {
      accept: accepts.metadataList,
    })
    expect(many.body.kind).toBe('PartialObjectMetadataList')
    expect(many.body.items).toEqual([one.body])
    const wrong = await api().get(path, { accept: accepts.metadata })
    expect(refusal(wrong).code).toBe(406)
  })
}
