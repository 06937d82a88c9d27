import { beforeAll, expect } from 'vitest'
import { isObject } from '../../shared/kinds/object.ts'
import { refusal } from './api.ts'
import { deployment } from './objects.ts'
import type { Part } from './suite.ts'

export function deploymentContract({ api, it }: Part): void {
  let base = ''
  beforeAll(async () => {
    base = `/apis/apps/v1/namespaces/${await api().namespace()}/deployments`
  })

  it('a Deployment gets its defaults and its quantities in their own spelling', async () => {
    const resources = { limits: { cpu: '1000m', memory: '0.5Gi' } }
    const { body } = await api().post(
      base,
      deployment('full', {}, { resources, ports: [{ containerPort: 80 }] }),
    )
    expect(body.spec).toMatchObject({
      replicas: 0,
      revisionHistoryLimit: 10,
      progressDeadlineSeconds: 600,
      strategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: '25%', maxSurge: '25%' } },
    })
    const spec = body.spec as { template: { spec: { containers: Record<string, unknown>[] } } }
    expect(spec.template.spec.containers).toEqual([
      {
        name: 'main',
        image: 'nginx',
        imagePullPolicy: 'Always',
        ports: [{ containerPort: 80, protocol: 'TCP' }],
        resources: { limits: { cpu: '1', memory: '512Mi' } },
        terminationMessagePath: '/dev/termination-log',
        terminationMessagePolicy: 'File',
      },
    ])
  })

  it('generation counts changes of the spec, and of annotations', async () => {
    await api().post(base, deployment('counted'))
    const changed = async (patch: object) =>
      (await api().patch(`${base}/counted`, patch)).body.metadata?.generation
    expect(await changed({ metadata: { labels: { a: 'b' } } })).toBe(1)
    expect(await changed({ metadata: { annotations: { a: 'b' } } })).toBe(2)
    expect(await changed({ spec: { paused: true } })).toBe(3)
  })

  it('its rollout ends: observed, counted, and told in conditions', async () => {
    await api().post(base, deployment('rolled'))
    const { body } = await api().until(
      `${base}/rolled`,
      ({ body }) =>
        isObject(body.status) &&
        body.status.observedGeneration === 1 &&
        Array.isArray(body.status.conditions) &&
        body.status.conditions.length === 2,
    )
    const { conditions } = body.status as { conditions: Record<string, string>[] }
    expect(conditions.map(({ type, status, reason }) => `${type} ${status} ${reason}`).sort()).toEqual([
      'Available True MinimumReplicasAvailable',
      'Progressing True NewReplicaSetAvailable',
    ])
    expect(body.metadata?.annotations).toEqual({ 'deployment.kubernetes.io/revision': '1' })
    expect(body.metadata?.generation).toBe(1)
    const controller = body.metadata?.managedFields?.find(
      ({ manager }) => manager === 'kube-controller-manager',
    )
    expect(controller).toMatchObject({ operation: 'Update', subresource: 'status' })
  })

  it('a status write leaves spec and labels', async () => {
    await api().post(base, deployment('parts'))
    const patch = { spec: { replicas: 3 }, metadata: { labels: { x: 'y' }, annotations: { x: 'y' } } }
    const { body } = await api().patch(`${base}/parts/status`, patch)
    expect(body.spec).toMatchObject({ replicas: 0 })
    expect(body.metadata?.labels).toEqual({ app: 'parts' })
    expect(body.metadata?.annotations).toMatchObject({ x: 'y' })
  })

  it('scale changes the replicas', async () => {
    await api().post(base, deployment('scaled', { paused: true }))
    const { body } = await api().patch(`${base}/scaled/scale`, { spec: { replicas: 1 } })
    expect(body).toMatchObject({ kind: 'Scale', spec: { replicas: 1 }, status: { selector: 'app=scaled' } })
    expect((await api().get(`${base}/scaled`)).body.spec).toMatchObject({ replicas: 1 })
    expect(refusal(await api().patch(`${base}/scaled/scale`, { spec: { replicas: -1 } })).message).toBe(
      'Scale.autoscaling "scaled" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0',
    )
  })

  /** Each manager that is named here, with `T` for a time and `R` for the replicas. */
  const managers = async (name: string) =>
    ((await api().get(`${base}/${name}`)).body.metadata?.managedFields ?? [])
      .filter(({ manager }) => /^[a-d]$/.test(manager ?? ''))
      .map(({ manager, operation, subresource, time, fieldsV1 }) => {
        const owns = JSON.stringify(fieldsV1).includes('f:replicas')
        return `${manager} ${operation} ${subresource ?? '-'} ${time ? 'T' : ''}${owns ? 'R' : ''}`.trim()
      })
      .sort()
  const scale = (name: string, replicas: number, manager: string) =>
    api().patch(`${base}/${name}/scale?fieldManager=${manager}`, { spec: { replicas } })

  it('a scale takes the replicas from an updater; to 0 nobody has them, and what nobody has nobody gets', async () => {
    await api().post(`${base}?fieldManager=a`, deployment('handed', { replicas: 2, paused: true }))
    await scale('handed', 3, 'b')
    expect(await managers('handed')).toEqual(['a Update - T', 'b Update scale R'])
    await scale('handed', 4, 'b')
    await scale('handed', 4, 'c')
    expect(await managers('handed')).toEqual(['a Update - T', 'b Update scale R'])
    await scale('handed', 0, 'c')
    expect(await managers('handed')).toEqual(['a Update - T'])
    await scale('handed', 1, 'c')
    expect(await managers('handed')).toEqual(['a Update - T'])
    await api().patch(`${base}/handed?fieldManager=d`, { spec: { replicas: 2 } })
    await scale('handed', 3, 'd')
    expect(await managers('handed')).toEqual(['a Update - T', 'd Update scale R'])
  })

  it('a scale that changes nothing makes an entry of its own of an updater, and leaves an applier', async () => {
    await api().post(`${base}?fieldManager=a`, deployment('same', { replicas: 2, paused: true }))
    await scale('same', 2, 'b')
    expect(await managers('same')).toEqual(['a Update - R', 'a Update - T'])
    await scale('same', 2, 'b')
    expect(await managers('same')).toEqual(['a Update - T'])

    await api().apply(
      `${base}/applied`,
      deployment('applied', { replicas: 2, paused: true }),
      'fieldManager=a',
    )
    await scale('applied', 2, 'b')
    expect(await managers('applied')).toEqual(['a Apply - TR'])
    await scale('applied', 3, 'b')
    expect(await managers('applied')).toEqual(['a Apply - T', 'b Update scale R'])
  })

  it('appliers share a container: each owns its own env names', async () => {
    const path = `${base}/shared`
    const env = (name: string) => deployment('shared', {}, { env: [{ name, value: '1' }] })
    await api().apply(path, env('ONE'), 'fieldManager=one')
    const both = await api().apply(path, env('TWO'), 'fieldManager=two')
    const names = (body: unknown) =>
      (
        body as { spec: { template: { spec: { containers: { env: { name: string }[] }[] } } } }
      ).spec.template.spec.containers[0]?.env.map(({ name }) => name)
    expect(names(both.body)).toEqual(['ONE', 'TWO'])
    const left = await api().apply(path, deployment('shared'), 'fieldManager=one')
    expect(names(left.body)).toEqual(['TWO'])
  })

  const unreadable = (name: string, container: object, why: string) =>
    it(`apply of ${name} is a 500 without a reason`, async () => {
      const answer = await api().apply(`${base}/unreadable`, deployment('unreadable', {}, container))
      expect(refusal(answer)).toEqual({
        code: 500,
        message: `failed to create typed patch object (/unreadable; apps/v1, Kind=Deployment): ${why}`,
      })
    })
  unreadable(
    'an unknown field',
    { bogus: 1 },
    '.spec.template.spec.containers[name="main"].bogus: field not declared in schema',
  )
  unreadable(
    'a name that stands twice',
    { env: [{ name: 'A' }, { name: 'A' }] },
    '.spec.template.spec.containers[name="main"].env: duplicate entries for key [name="A"]',
  )
}
