import { beforeAll, expect } from 'vitest'
import { normal, refusal } from './api.ts'
import { ruled, ruledCrd, widget, widgetCrd, widgetCrdPath, widgetGroup } from './objects.ts'
import type { Part } from './suite.ts'

type Conditions = { type: string; status: string; reason: string }[]
const conditionsOf = (status: unknown) => (status as { conditions?: Conditions | null })?.conditions ?? []

export function crdContract({ api, it }: Part): void {
  const group = `/apis/${widgetGroup}/v1`
  let base = ''
  let rulesBase = ''
  beforeAll(async () => {
    await api().post(widgetCrdPath, widgetCrd())
    const isEstablished = ({ body }: { body: { status: unknown } }) =>
      conditionsOf(body.status).some(({ type, status }) => type === 'Established' && status === 'True')
    await api().until(`${widgetCrdPath}/widgets.${widgetGroup}`, isEstablished)
    await api().until(`${group}/widgets`, ({ code }) => code === 200)
    const namespace = await api().namespace()
    base = `${group}/namespaces/${namespace}/widgets`
    await api().post(widgetCrdPath, ruledCrd())
    await api().until(`${group}/ruleds`, ({ code }) => code === 200)
    rulesBase = `${group}/namespaces/${namespace}/ruleds`
  })

  it('a CRD gets its defaults, and conditions once it is served', async () => {
    const { body } = await api().get(`${widgetCrdPath}/widgets.${widgetGroup}`)
    expect(body.spec).toMatchObject({
      names: { plural: 'widgets', singular: 'widget', kind: 'Widget', listKind: 'WidgetList' },
      conversion: { strategy: 'None' },
    })
    expect(body.metadata?.generation).toBe(1)
    expect(body.status).toMatchObject({
      acceptedNames: { plural: 'widgets', kind: 'Widget', shortNames: ['xwidgets'] },
      storedVersions: ['v1'],
    })
    expect(conditionsOf(body.status).map(({ type, reason }) => `${type} ${reason}`)).toEqual([
      'NamesAccepted NoConflicts',
      'Established InitialNamesAccepted',
    ])
  })

  it('discovery tells of the kind, its short names, categories and subresources', async () => {
    const { body } = await api().get(group)
    const all = body.resources as Record<string, unknown>[]
    const resources = all.filter(({ name }) => String(name).startsWith('widgets'))
    expect(resources.map(({ name, kind }) => `${name} ${kind}`)).toEqual([
      'widgets Widget',
      'widgets/status Widget',
      'widgets/scale Scale',
    ])
    expect(resources[0]).toMatchObject({
      shortNames: ['xwidgets'],
      categories: ['contract'],
      namespaced: true,
    })
  })

  it('unknown fields go, defaults come, nulls are dropped or kept as the schema has it', async () => {
    const spec = {
      size: 3,
      ports: [{ port: 1, bogus: 1 }],
      maybe: null,
      color: null,
      code: null,
      free: { any: { thing: 1 } },
      bogus: 1,
    }
    const { code, body, headers } = await api().post(base, widget('pruned', spec, { top: 1 }))
    expect(code).toBe(201)
    expect(body.spec).toEqual({
      size: 3,
      color: 'red',
      maybe: null,
      free: { any: { thing: 1 } },
      ports: [{ port: 1, protocol: 'TCP' }],
    })
    expect(body.top).toBeUndefined()
    const warnings = ['spec.bogus', 'spec.ports[0].bogus', 'top'].map(
      (field) => `299 - "unknown field \\"${field}\\""`,
    )
    expect(headers.get('warning')).toBe(warnings.join(', '))
  })

  it('a status that comes with a new object is dropped, and its default stands', async () => {
    const { body } = await api().post(base, widget('fresh', { size: 1 }, { status: { replicas: 7 } }))
    expect(body.status).toEqual({ observedGeneration: -1 })
    expect(body.metadata?.generation).toBe(1)
  })

  it('generation counts changes of the spec alone', async () => {
    await api().post(base, widget('counted', { size: 1 }))
    const generation = async (patch: object, path = '') =>
      (await api().patch(`${base}/counted${path}`, patch)).body.metadata?.generation
    expect(await generation({ metadata: { labels: { a: 'b' } } })).toBe(1)
    expect(await generation({ status: { replicas: 1 } }, '/status')).toBe(1)
    expect(await generation({ spec: { size: 2 } })).toBe(2)
    expect(await generation({ spec: { size: 2 } })).toBe(2)
    expect(await generation({ status: { replicas: 9 } })).toBe(2)
  })

  it('a status write changes the status alone, and an object write never does', async () => {
    await api().post(base, widget('split', { size: 1 }))
    const patch = { status: { replicas: 7 }, spec: { size: 9 }, metadata: { labels: { a: 'b' } } }
    const status = await api().patch(`${base}/split/status`, patch)
    expect(status.body).toMatchObject({ spec: { size: 1 }, status: { replicas: 7, observedGeneration: -1 } })
    expect(status.body.metadata?.labels).toBeUndefined()
    const object = await api().patch(`${base}/split`, { status: { replicas: 8 } })
    expect(object.body.status).toMatchObject({ replicas: 7 })
    const managers = status.body.metadata?.managedFields?.map(({ subresource }) => subresource ?? '')
    expect(managers).toEqual(['', 'status'])
  })

  it('a status that is but its default is stored by the next write, even one that changes nothing', async () => {
    const { body } = await api().post(base, widget('default', { size: 1 }))
    const [first, second] = [
      await api().patch(`${base}/default`, {}),
      await api().patch(`${base}/default`, {}),
    ]
    const version = (object: typeof body) => object.metadata?.resourceVersion
    expect(version(first.body)).not.toBe(version(body))
    expect(second.body).toEqual(first.body)
  })

  it('a PUT of the object, and of its status, names the version it is based on', async () => {
    const { body } = await api().post(base, widget('based', { size: 1 }))
    const message = `widgets.${widgetGroup} "based" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update`
    expect(refusal(await api().put(`${base}/based`, widget('based', { size: 2 })))).toMatchObject({
      code: 422,
      message,
    })
    expect((await api().put(`${base}/based`, { ...body, spec: { size: 2 } })).code).toBe(200)
    const stale = await api().put(`${base}/based/status`, { ...body, status: { replicas: 1 } })
    expect(stale.code).toBe(409)
  })

  it('scale reads and writes the replicas', async () => {
    await api().post(base, widget('scaled', { size: 1, replicas: 2 }))
    expect((await api().get(`${base}/scaled/scale`)).body).toMatchObject({
      kind: 'Scale',
      apiVersion: 'autoscaling/v1',
      spec: { replicas: 2 },
      status: { replicas: 0 },
    })
    await api().patch(`${base}/scaled/scale`, { spec: { replicas: 5 } })
    expect((await api().get(`${base}/scaled`)).body.spec).toMatchObject({ size: 1, replicas: 5 })
  })

  it('apply goes by the list keys of the schema', async () => {
    const path = `${base}/listed`
    await api().apply(
      path,
      widget('listed', { size: 1, ports: [{ port: 1 }], tags: ['a'] }),
      'fieldManager=one',
    )
    await api().apply(
      path,
      widget('listed', { size: 1, ports: [{ port: 2 }], tags: ['b'] }),
      'fieldManager=two',
    )
    const { body } = await api().apply(path, widget('listed', { size: 1 }), 'fieldManager=one')
    expect(body.spec).toEqual({ size: 1, color: 'red', ports: [{ port: 2, protocol: 'TCP' }], tags: ['b'] })
  })

  it('apply refuses a field that the schema does not know', async () => {
    const applied = await api().apply(`${base}/typo`, widget('typo', { size: 1, bogus: 1 }))
    expect(refusal(applied)).toEqual({
      code: 500,
      message: `failed to create typed patch object (/typo; ${widgetGroup}/v1, Kind=Widget): .spec.bogus: field not declared in schema`,
    })
  })

  it('selectable fields select', async () => {
    await api().post(base, widget('green', { size: 1, color: 'green' }))
    const { body } = await api().get(`${base}?fieldSelector=spec.color%3Dgreen`)
    expect(body.items.map(({ metadata, kind }) => `${kind} ${metadata?.name}`)).toEqual(['Widget green'])
  })

  const refused = (name: string, spec: unknown, ...causes: string[]) =>
    it(`${name} is refused`, async () => {
      const answer = await api().post(base, widget('wrong', spec))
      const list = causes.length === 1 ? causes[0] : `[${causes.join(', ')}]`
      expect(refusal(answer)).toEqual({
        code: 422,
        reason: 'Invalid',
        message: `Widget.${widgetGroup} "wrong" is invalid: ${list}`,
      })
    })
  refused('no spec', undefined, 'spec: Required value')
  refused('no required field', {}, 'spec.size: Required value')
  refused(
    'a number too large',
    { size: 11 },
    'spec.size: Invalid value: 11: spec.size in body should be less than or equal to 10',
  )
  refused(
    'a number too small',
    { size: 0 },
    'spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1',
  )
  refused(
    'a word that is not among those allowed',
    { size: 1, color: 'blue' },
    'spec.color: Unsupported value: "blue": supported values: "red", "green"',
  )
  refused(
    'a string too long',
    { size: 1, code: 'ABCDEFG' },
    'spec.code: Too long: may not be more than 5 bytes',
  )
  refused(
    'a string too short',
    { size: 1, code: 'a' },
    'spec.code: Invalid value: "a": spec.code in body should be at least 2 chars long',
  )
  refused(
    'a string of another pattern',
    { size: 1, code: 'ABC' },
    'spec.code: Invalid value: "ABC": spec.code in body should match \'^[a-z]+$\'',
  )
  refused(
    'a string for a number',
    { size: 'x' },
    'spec.size: Invalid value: "string": spec.size in body must be of type integer: "string"',
  )
  refused(
    'an object for a list',
    { size: 1, tags: {} },
    'spec.tags: Invalid value: "object": spec.tags in body must be of type array: "object"',
  )
  refused(
    'a number in a map of strings',
    { size: 1, map: { a: 1 } },
    'spec.map.a: Invalid value: "integer": spec.map.a in body must be of type string: "integer"',
  )
  refused(
    'a boolean for a number or string',
    { size: 1, either: true },
    'spec.either: Invalid value: "boolean": spec.either in body must be of type integer,string: "boolean"',
  )
  refused(
    'a time that is none',
    { size: 1, when: 'noon' },
    'spec.when: Invalid value: "noon": spec.when in body must be of type date-time: "noon"',
  )
  refused(
    'a list too long',
    { size: 1, tags: ['a', 'b', 'c', 'd'] },
    'spec.tags: Too many: 4: must have at most 3 items',
  )
  refused('a set with the same twice', { size: 1, tags: ['a', 'a'] }, 'spec.tags[1]: Duplicate value: "a"')
  refused(
    'a map list with the same key twice',
    { size: 1, ports: [{ port: 1 }, { port: 1 }] },
    'spec.ports[1]: Duplicate value: {"port":1}',
  )

  const breaks = (name: string, spec: object, cause: string) =>
    it(`a rule in CEL: ${name} is refused`, async () => {
      const answer = await api().post(rulesBase, ruled('wrong', spec))
      const message = `Ruled.${widgetGroup} "wrong" is invalid: ${cause}`
      expect(refusal(answer)).toEqual({ code: 422, reason: 'Invalid', message })
    })
  breaks('what two fields say together', { min: 3, max: 1 }, 'spec: Invalid value: min is over max')
  breaks('with a reason and a path of its own', { min: 7 }, 'spec.min: Forbidden: no seven')
  breaks('a message that is computed', { min: 8 }, 'spec: Invalid value: not eight')
  breaks('of a number', { min: 100 }, 'spec.min: Invalid value: 100: failed rule: self < 100')
  breaks('of a string', { min: 1, name: 'b' }, 'spec.name: Invalid value: "b": must start with a')
  breaks(
    'of a list',
    { min: 1, list: [{ n: 60 }] },
    'spec.list: Invalid value: failed rule: self.all(x, x.n < 50)',
  )
  breaks(
    'of an item',
    { min: 1, list: [{ n: 0 }] },
    'spec.list[0].n: Invalid value: 0: failed rule: self > 0',
  )
  breaks('of a fraction', { min: 1, rate: 2 }, 'spec.rate: Invalid value: 2: failed rule: self <= 1.5')
  breaks(
    'of a value in a map',
    { min: 1, map: { a: 'bad' } },
    `spec.map[a]: Invalid value: "bad": failed rule: self != 'bad'`,
  )

  it('a rule in CEL about the old value holds for changes alone', async () => {
    expect((await api().post(rulesBase, ruled('grown', { min: 5, name: 'abc' }))).code).toBe(201)
    const change = async (spec: object) => refusal(await api().patch(`${rulesBase}/grown`, { spec })).message
    const head = `Ruled.${widgetGroup} "grown" is invalid: `
    expect(await change({ min: 4 })).toBe(`${head}spec: Invalid value: may only grow`)
    expect(await change({ name: 'abd' })).toBe(`${head}spec.name: Invalid value: "abd": immutable`)
    expect((await api().patch(`${rulesBase}/grown`, { spec: { min: 6 } })).code).toBe(200)
  })

  it('another kind, another version and none are refused', async () => {
    const message = async (body: unknown) => refusal(await api().post(base, body)).message
    expect(await message({})).toBe(
      "the object provided is unrecognized (must be of type Widget): Object 'Kind' is missing in '{}' ({})",
    )
    expect(await message({ kind: 'Widget' })).toBe(
      `the API version in the data () does not match the expected API version (${widgetGroup}/v1)`,
    )
    expect(await message({ ...widget('a', { size: 1 }), kind: 'Gadget' })).toBe(
      `Gadget.${widgetGroup} "a" is invalid: kind: Invalid value: "Gadget": must be Widget`,
    )
  })

  it('a CRD that is deleted takes its objects with it', async () => {
    const name = `gadgets.${widgetGroup}`
    await api().post(widgetCrdPath, widgetCrd('gadgets', 'Gadget'))
    await api().until(`${group}/gadgets`, ({ code }) => code === 200)
    const gadgets = base.replace('widgets', 'gadgets')
    await api().post(gadgets, { ...widget('a', { size: 1 }), kind: 'Gadget' })
    const deleted = await api().del(`${widgetCrdPath}/${name}`)
    expect(deleted.body.metadata?.finalizers).toEqual(['customresourcecleanup.apiextensions.k8s.io'])
    expect(normal(conditionsOf(deleted.body.status).at(-1))).toMatchObject({
      type: 'Terminating',
      status: 'True',
    })
    await api().until(`${widgetCrdPath}/${name}`, ({ code }) => code === 404)
    await api().until(gadgets, ({ code }) => code === 404)
    await api().post(widgetCrdPath, widgetCrd('gadgets', 'Gadget'))
    await api().until(`${group}/gadgets`, ({ code }) => code === 200)
    expect((await api().get(gadgets)).body.items).toEqual([])
  })

  it('a CRD whose name is not its plural and group is refused', async () => {
    const crd = { ...widgetCrd('things', 'Thing'), metadata: { name: 'other' } }
    expect(refusal(await api().post(widgetCrdPath, crd)).message).toBe(
      'CustomResourceDefinition.apiextensions.k8s.io "other" is invalid: metadata.name: Invalid value: "other": must be spec.names.plural+"."+spec.group',
    )
  })
}
