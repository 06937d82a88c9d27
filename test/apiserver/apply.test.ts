import { describe, expect, it } from 'vitest'
import { normalise } from '../../shared/apiserver/defaults/defaults.ts'
import { applyPatch, updateManagedFields } from '../../shared/apiserver/ownership/apply.ts'
import { schemaFor } from '../../shared/apiserver/schema.ts'
import type { ApiError } from '../../shared/apiserver/status.ts'
import { configMaps, deployments, type KubeObject, type Resource } from '../../shared/kinds/object.ts'

const times = ['2026-01-01T00:00:00Z', '2026-01-01T00:00:01Z', '2026-01-01T00:00:02Z'] as const

/** One object under several writers, as a server would keep it. */
function subject(resource: Resource, apiVersion: string) {
  const schema = schemaFor(resource)
  if (!schema) throw new Error(`No schema for ${resource.kind}`)
  let live: KubeObject | undefined
  const head = { apiVersion, kind: resource.kind }
  const named = (body: KubeObject) => ({ ...head, ...body, metadata: { name: 'web', ...body.metadata } })
  const common = { schema, apiVersion, resource }
  return {
    apply(manager: string, body: KubeObject, { force = false, now = times[0] as string } = {}): KubeObject {
      const stored = (object: KubeObject) => normalise(object, resource, schema, 'unstructured')
      const request = { ...common, manager, force, now, live, applied: named(body), normalise: stored }
      live = applyPatch(request).object
      return live
    },
    put(manager: string, body: KubeObject, now: string = times[0]): KubeObject {
      const after = normalise(named(body), resource, schema, 'json')
      live = updateManagedFields({ ...common, manager, now, before: live, after })
      return live
    },
    owners: () =>
      Object.fromEntries(
        (live?.metadata?.managedFields ?? []).map((one) => [`${one.manager}/${one.operation}`, one.fieldsV1]),
      ),
    entries: () => live?.metadata?.managedFields ?? [],
  }
}

const configMap = () => subject(configMaps, 'v1')
const deployment = () => subject(deployments, 'apps/v1')

function refusal(act: () => unknown) {
  try {
    act()
  } catch (error) {
    return (error as ApiError).status
  }
  throw new Error('Nothing was refused')
}

describe('applyPatch', () => {
  it('two managers of one value own it together, and the later one has no time', () => {
    const one = configMap()
    one.apply('a', { data: { x: '1', y: '2' } })
    one.apply('b', { data: { x: '1' } }, { now: times[1] })
    expect(one.owners()).toEqual({
      'a/Apply': { 'f:data': { 'f:x': {}, 'f:y': {} } },
      'b/Apply': { 'f:data': { 'f:x': {} } },
    })
    expect(one.entries()[0]).not.toHaveProperty('time')
  })

  it('a field stays as long as one of its managers states it', () => {
    const one = configMap()
    one.apply('a', { data: { x: '1', y: '2' } })
    one.apply('b', { data: { x: '1' } })
    expect(one.apply('a', {}).data).toEqual({ x: '1' })
    expect(one.apply('b', {})).not.toHaveProperty('data')
  })

  it.each([
    {
      later: times[0],
      first: 'a subresource, in the same second',
      order: ['with subresource "scale" using', 'using'],
    },
    { later: times[1], first: 'who wrote earlier', order: ['using', 'with subresource "scale" using'] },
  ])('of one manager’s conflicts first comes $first', ({ later, order }) => {
    const one = configMap()
    const entry = {
      manager: 'a',
      operation: 'Update' as const,
      apiVersion: 'v1',
      fieldsType: 'FieldsV1' as const,
    }
    const managedFields = [
      { ...entry, time: times[0], fieldsV1: { 'f:data': { 'f:x': {} } } },
      { ...entry, time: later, subresource: 'scale', fieldsV1: { 'f:data': { 'f:y': {} } } },
    ]
    const data = { x: '1', y: '1' }
    one.put('a', { data })
    one.put('a', { metadata: { managedFields }, data })
    const { message = '' } = refusal(() => one.apply('b', { data: { x: '2', y: '2' } }))
    const told = [...message.matchAll(/conflicts with "a" (.*) v1:/g)].map(([, who]) => who)
    expect(told).toEqual(order)
  })

  it('a foreign field is a conflict that names its manager, and force takes it over', () => {
    const one = deployment()
    one.put('kubectl', deploymentBody())
    const status = refusal(() => one.apply('a', { spec: { replicas: 5 } }))
    expect(status).toMatchObject({
      code: 409,
      message: 'Apply failed with 1 conflict: conflict with "kubectl" using apps/v1: .spec.replicas',
      details: { causes: [{ reason: 'FieldManagerConflict', field: '.spec.replicas' }] },
    })
    one.apply('a', { spec: { replicas: 5 } }, { force: true })
    expect(one.owners()['a/Apply']).toEqual({ 'f:spec': { 'f:replicas': {} } })
    expect(one.owners()['kubectl/Update']?.['f:spec']).not.toHaveProperty('f:replicas')
  })

  it('an apply that changes nothing gives the object back with its old time', () => {
    const one = deployment()
    const first = one.apply('a', deploymentBody())
    expect(one.apply('a', deploymentBody(), { now: times[1] })).toEqual(first)
  })

  it('a spelling that the server makes canonical does not renew the time', () => {
    const one = deployment()
    const body = deploymentBody({ resources: { limits: { cpu: '1000m' } } })
    const first = one.apply('a', body)
    expect(first).toHaveProperty('spec.template.spec.containers.0.resources.limits.cpu', '1')
    expect(one.apply('a', body, { now: times[2] })).toEqual(first)
  })

  it('list entries are told apart by their keys, ports by the default protocol too', () => {
    const one = deployment()
    one.apply('a', deploymentBody({ ports: [{ containerPort: 80 }] }))
    const object = one.apply('b', {
      spec: {
        template: {
          spec: { containers: [{ name: 'web', ports: [{ containerPort: 80, protocol: 'UDP' }] }] },
        },
      },
    })
    expect(object).toHaveProperty('spec.template.spec.containers.0.ports', [
      { containerPort: 80, protocol: 'TCP' },
      { containerPort: 80, protocol: 'UDP' },
    ])
    const ports = ['f:spec', 'f:template', 'f:spec', 'f:containers', 'k:{"name":"web"}', 'f:ports']
    expect(one.owners()['a/Apply']).toHaveProperty([
      ...ports,
      'k:{"containerPort":80,"protocol":"TCP"}',
      'f:containerPort',
    ])
  })

  it.each([
    [{ spec: { replicas: '1' } }, '.spec.replicas: expected numeric (int or float), got string'],
    [{ spec: { replica: 1 } }, '.spec.replica: field not declared in schema'],
    [
      { spec: { template: { spec: { containers: [{ name: 'a' }, { name: 'a' }] } } } },
      '.spec.template.spec.containers: duplicate entries for key [name="a"]',
    ],
    [{ spec: { template: 'x' } }, '.spec.template: expected map, got &{x}'],
  ])('a body that the schema cannot read is a 500 without a reason: %j', (body, why) => {
    const status = refusal(() => deployment().apply('a', { ...body, metadata: { namespace: 'shop' } }))
    expect(status).not.toHaveProperty('reason')
    expect(status).toMatchObject({
      code: 500,
      message: `failed to create typed patch object (shop/web; apps/v1, Kind=Deployment): ${why}`,
    })
  })

  it('a body that brings managedFields is a 400', () => {
    const status = refusal(() => configMap().apply('a', { metadata: { managedFields: [] } }))
    expect(status).toMatchObject({ code: 400, message: 'metadata.managedFields must be nil' })
  })

  it('what was there before anybody applied belongs to before-first-apply', () => {
    const one = configMap()
    one.put('kubectl', { data: { x: '1' } })
    one.put('kubectl', { data: { x: '1' }, metadata: { managedFields: [{}] } })
    expect(one.entries()).toEqual([])
    one.apply('a', { data: { y: '2' } })
    expect(one.owners()).toEqual({
      'a/Apply': { 'f:data': { 'f:y': {} } },
      'before-first-apply/Update': { 'f:data': { '.': {}, 'f:x': {} } },
    })
  })

  it('an entry that an update put twice into a list is repaired by the apply that states it once', () => {
    const one = deployment()
    const env = [
      { name: 'X', value: '1' },
      { name: 'X', value: '2' },
    ]
    one.put('kubectl', deploymentBody({ env }))
    const object = one.apply('a', deploymentBody({ env: [{ name: 'X', value: '3' }] }), { force: true })
    expect(object).toHaveProperty('spec.template.spec.containers.0.env', [{ name: 'X', value: '3' }])
  })
})

describe('updateManagedFields', () => {
  it('an update owns what it changed, and takes it from whoever had it', () => {
    const one = configMap()
    one.apply('a', { data: { x: '1', y: '2' } })
    one.put('b', { data: { x: '9', y: '2' } })
    expect(one.owners()).toEqual({
      'a/Apply': { 'f:data': { 'f:y': {} } },
      'b/Update': { 'f:data': { 'f:x': {} } },
    })
  })

  it('an update that moves ownership lets the next apply remove what the earlier manager made', () => {
    const one = configMap()
    one.put('rust-operator', { data: { x: '1', y: '2' } })
    const moved = one.entries().map((entry) => ({ ...entry, manager: 'a', operation: 'Apply' }))
    one.put('mutantops', { data: { x: '1', y: '2' }, metadata: { managedFields: moved } })
    expect(one.apply('a', { data: { x: '1' } }).data).toEqual({ x: '1' })
    expect(Object.keys(one.owners())).toEqual(['a/Apply'])
  })

  it('past ten Update managers the oldest become ancient changes', () => {
    const one = configMap()
    const data: Record<string, string> = {}
    for (let i = 0; i < 12; i++) {
      data[`k${i}`] = String(i)
      one.put(`m${i}`, { data: { ...data } }, `2026-01-01T00:00:${String(i).padStart(2, '0')}Z`)
    }
    const managers = one.entries().map((entry) => entry.manager)
    expect(managers).toHaveLength(10)
    expect(managers).toContain('ancient-changes')
    expect(managers).not.toContain('m2')
  })
})

function deploymentBody(container: Record<string, unknown> = {}): KubeObject {
  const labels = { app: 'web' }
  const containers = [{ name: 'web', image: 'web:1', ...container }]
  return {
    spec: {
      replicas: 2,
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers } },
    },
  }
}
