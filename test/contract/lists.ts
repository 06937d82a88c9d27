import { beforeAll, expect } from 'vitest'
import type { Answer } from './api.ts'
import { configMap } from './objects.ts'
import type { Part } from './suite.ts'

const names = ({ body }: Answer) => body.items.map(({ metadata }) => metadata?.name)
const listMeta = ({ body }: Answer) =>
  body.metadata as { resourceVersion: string; continue?: string; remainingItemCount?: number }

export function listContract({ api, it }: Part): void {
  let base = ''
  beforeAll(async () => {
    base = `/api/v1/namespaces/${await api().namespace()}/secrets`
    for (const [name, labels] of Object.entries({
      'a-1': { app: 'a', tier: 'web' },
      'a-2': { app: 'a', tier: 'db' },
      'b-1': { app: 'b' },
      c: {},
      'd.x': { app: 'd', empty: '' },
    }))
      await api().post(base, { metadata: { name, labels }, ...(name === 'c' && { type: 'neiam.org/c' }) })
  })

  const selects = (selector: string, wanted: string[]) =>
    it(`the label selector ${selector} selects ${wanted.join(', ') || 'nothing'}`, async () => {
      expect(names(await api().get(`${base}?labelSelector=${encodeURIComponent(selector)}`))).toEqual(wanted)
    })
  selects('app=a', ['a-1', 'a-2'])
  selects('app==a,tier=db', ['a-2'])
  selects('app!=a', ['b-1', 'c', 'd.x'])
  selects('app in (a, b)', ['a-1', 'a-2', 'b-1'])
  selects('app notin (a,b)', ['c', 'd.x'])
  selects('app', ['a-1', 'a-2', 'b-1', 'd.x'])
  selects('!app', ['c'])
  selects('app,!tier', ['b-1', 'd.x'])
  selects('empty=', ['d.x'])
  selects('empty in ()', ['d.x'])
  selects('app=none', [])

  const selectsByField = (selector: string, wanted: string[]) =>
    it(`the field selector ${selector} selects ${wanted.join(', ') || 'nothing'}`, async () => {
      expect(names(await api().get(`${base}?fieldSelector=${encodeURIComponent(selector)}`))).toEqual(wanted)
    })
  selectsByField('metadata.name=a-1', ['a-1'])
  selectsByField('metadata.name!=a-1', ['a-2', 'b-1', 'c', 'd.x'])
  selectsByField('type=neiam.org/c', ['c'])
  selectsByField('metadata.name=a-1,type=neiam.org/c', [])
  selectsByField('metadata.namespace=other', [])

  it('items come in the order of their names, without kind and apiVersion', async () => {
    const answer = await api().get(base)
    expect(names(answer)).toEqual(['a-1', 'a-2', 'b-1', 'c', 'd.x'])
    expect([answer.body.kind, answer.body.apiVersion]).toEqual(['SecretList', 'v1'])
    expect(answer.body.items.map(({ kind }) => kind)).toEqual(Array(5).fill(undefined))
  })

  it('pages hold what was there when the first was read', async () => {
    const first = await api().get(`${base}?limit=2`)
    expect([names(first), listMeta(first).remainingItemCount]).toEqual([['a-1', 'a-2'], 3])
    await api().post(base, { metadata: { name: 'b-0' } })
    await api().patch(`${base}/c`, { metadata: { labels: { late: 'yes' } } })
    const token = encodeURIComponent(listMeta(first).continue ?? '')
    const second = await api().get(`${base}?limit=2&continue=${token}`)
    expect([names(second), listMeta(second).remainingItemCount]).toEqual([['b-1', 'c'], 1])
    expect(second.body.items[1]?.metadata?.labels).toBeUndefined()
    expect(listMeta(second).resourceVersion).toBe(listMeta(first).resourceVersion)
    const last = await api().get(
      `${base}?limit=2&continue=${encodeURIComponent(listMeta(second).continue ?? '')}`,
    )
    expect([names(last), listMeta(last).continue]).toEqual([['d.x'], undefined])
    await api().del(`${base}/b-0`)
  })

  it('with a selector nobody counts what remains', async () => {
    const page = await api().get(`${base}?limit=1&labelSelector=app`)
    expect(names(page)).toEqual(['a-1'])
    expect(listMeta(page).continue).toBeTruthy()
    expect(listMeta(page).remainingItemCount).toBeUndefined()
  })

  it('an old version can be listed exactly', async () => {
    const then = await api().get(base)
    await api().post(base, { metadata: { name: 'e' } })
    const { resourceVersion } = listMeta(then)
    const exact = await api().get(`${base}?resourceVersion=${resourceVersion}&resourceVersionMatch=Exact`)
    expect(names(exact)).toEqual(names(then))
    const newer = await api().get(
      `${base}?resourceVersion=${resourceVersion}&resourceVersionMatch=NotOlderThan`,
    )
    expect(names(newer)).toContain('e')
    await api().del(`${base}/e`)
  })

  it('a list over all namespaces goes by namespace, then by name', async () => {
    const other = await api().namespace()
    const label = `all-${other}`
    const mine = base.split('/')[4] as string
    for (const namespace of [other, mine])
      for (const name of ['y', 'x'])
        await api().post(
          `/api/v1/namespaces/${namespace}/configmaps`,
          configMap(name, { metadata: { labels: { label } } }),
        )
    const all = await api().get(`/api/v1/configmaps?labelSelector=label%3D${label}`)
    const wanted = [mine, other].sort().flatMap((namespace) => [`${namespace}/x`, `${namespace}/y`])
    expect(all.body.items.map(({ metadata }) => `${metadata?.namespace}/${metadata?.name}`)).toEqual(wanted)
  })
}
