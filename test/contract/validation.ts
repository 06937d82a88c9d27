import { beforeAll, expect } from 'vitest'
import { isObject, type KubeObject } from '../../shared/kinds/object.ts'
import type { Answer } from './api.ts'
import { configMap, deployment } from './objects.ts'
import type { Part } from './suite.ts'

const label =
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
const value =
  "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
const mismatch = '`selector` does not match template `labels`'
const now = '2026-12-01T00:00:00.000000Z'

/** The causes of a 422 as lines `field: message`, each once, sorted; nothing when the object was taken. */
function causesOf({ code, body }: Answer): string[] {
  if (code < 300) return []
  const { details } = body as { details?: { causes?: { field: string; message: string }[] } }
  if (code !== 422 || !details?.causes) throw new Error(`${code} ${body.message}`)
  return [...new Set(details.causes.map(({ field, message }) => `${field}: ${message}`))].sort()
}

/** `object` with the value at `path` (steps by `/`) set, or gone when it is undefined. */
function withValue(object: unknown, path: string, to: unknown): KubeObject {
  const [step = '', ...rest] = path.split('/')
  if (Array.isArray(object)) {
    const next = object.map((item, place) =>
      place === Number(step) ? withValue(item, rest.join('/'), to) : item,
    )
    return next as unknown as KubeObject
  }
  const { [step]: below, ...others } = isObject(object) ? object : {}
  const next = rest.length === 0 ? to : withValue(below, rest.join('/'), to)
  return { ...others, ...(next !== undefined && { [step]: next }) }
}

const container = 'spec/template/spec/containers/0'
const at = 'spec.template.spec.containers[0]'

/** What is changed of a valid Deployment, to what, and what is wrong then. */
const deployments: [path: string, to: unknown, causes: string[]][] = [
  ['spec/replicas', -1, ['spec.replicas: Invalid value: -1: must be greater than or equal to 0']],
  [
    'spec/progressDeadlineSeconds',
    0,
    ['spec.progressDeadlineSeconds: Invalid value: 0: must be greater than minReadySeconds'],
  ],
  [
    'spec/selector',
    undefined,
    [
      'spec.selector: Required value',
      `spec.template.metadata.labels: Invalid value: {"app":"valid"}: ${mismatch}`,
    ],
  ],
  ['spec/selector', {}, ['spec.selector: Invalid value: {}: empty selector is invalid for deployment']],
  [
    'spec/selector/matchLabels',
    { app: 'y' },
    [`spec.template.metadata.labels: Invalid value: {"app":"valid"}: ${mismatch}`],
  ],
  ['spec/selector', { matchExpressions: [{ key: 'app', operator: 'In', values: ['valid'] }] }, []],
  ['metadata/labels', { a: 'b c' }, [`metadata.labels: Invalid value: "b c": ${value}`]],
  [
    'spec/template/metadata/labels',
    { app: 'valid', b: 'c d' },
    [`spec.template.labels: Invalid value: "c d": ${value}`],
  ],
  [
    'spec/strategy',
    { type: 'Recreate', rollingUpdate: {} },
    ["spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'"],
  ],
  [
    'spec/strategy',
    { rollingUpdate: { maxSurge: 0, maxUnavailable: 0 } },
    ['spec.strategy.rollingUpdate.maxUnavailable: Invalid value: 0: may not be 0 when `maxSurge` is 0'],
  ],
  ['spec/template/spec/containers', [], ['spec.template.spec.containers: Required value']],
  ['spec/template/spec/containers', [{}], [`${at}.image: Required value`, `${at}.name: Required value`]],
  [`${container}/name`, 'A', [`${at}.name: Invalid value: "A": ${label}`]],
  [`${container}/name`, 'a.b', [`${at}.name: Invalid value: "a.b": must not contain dots`]],
  [
    'spec/template/spec/initContainers',
    [{ name: 'main', image: 'x' }],
    ['spec.template.spec.initContainers[0].name: Duplicate value: "main"'],
  ],
  [
    `${container}/env`,
    [{ name: 'A=B' }],
    [
      `${at}.env[0].name: Invalid value: "A=B": a valid environment variable name must consist only of printable ASCII characters other than '='`,
    ],
  ],
  [`${container}/env`, [{ name: 'a b' }, { name: '1' }, { name: 'a b' }], []],
  [`${container}/env`, [{ name: '' }], [`${at}.env[0].name: Required value`]],
  [
    `${container}/env`,
    [{ name: 'A', value: 'x', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } }],
    [`${at}.env[0].valueFrom: Invalid value: "": may not be specified when \`value\` is not empty`],
  ],
  [
    `${container}/env`,
    [{ name: 'A', valueFrom: { fieldRef: { fieldPath: 'nope' } } }],
    [
      `${at}.env[0].valueFrom.fieldRef.fieldPath: Invalid value: "nope": error converting fieldPath: field label not supported: nope`,
    ],
  ],
  [
    `${container}/ports`,
    [{ containerPort: 70000 }],
    [`${at}.ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive`],
  ],
  [
    `${container}/ports`,
    [{ containerPort: 80, protocol: 'tcp' }],
    [`${at}.ports[0].protocol: Unsupported value: "tcp": supported values: "SCTP", "TCP", "UDP"`],
  ],
  [
    `${container}/ports`,
    [
      { containerPort: 80, name: 'h' },
      { containerPort: 81, name: 'h' },
    ],
    [`${at}.ports[1].name: Duplicate value: "h"`],
  ],
  [
    `${container}/resources`,
    { limits: { cpu: '1' }, requests: { cpu: '2' } },
    [`${at}.resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1`],
  ],
  [
    `${container}/imagePullPolicy`,
    'Maybe',
    [
      `${at}.imagePullPolicy: Unsupported value: "Maybe": supported values: "Always", "IfNotPresent", "Never"`,
    ],
  ],
  [`${container}/livenessProbe`, {}, [`${at}.livenessProbe: Required value: must specify a handler type`]],
  [
    `${container}/readinessProbe`,
    { httpGet: { port: 0 } },
    [`${at}.readinessProbe.httpGet.port: Invalid value: 0: must be between 1 and 65535, inclusive`],
  ],
  [
    `${container}/volumeMounts`,
    [{ name: 'v', mountPath: '/x' }],
    [`${at}.volumeMounts[0].name: Not found: "v"`],
  ],
  [
    'spec/template/spec/volumes',
    [{ name: 'v' }, { name: 'v' }],
    ['spec.template.spec.volumes[1].name: Duplicate value: "v"'],
  ],
  [
    'spec/template/spec/restartPolicy',
    'Never',
    ['spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"'],
  ],
]

const event = {
  apiVersion: 'events.k8s.io/v1',
  kind: 'Event',
  metadata: { name: 'event.1' },
  eventTime: now,
  reportingController: 'neiam.org/test',
  reportingInstance: 'test-1',
  action: 'Testing',
  reason: 'Tested',
  type: 'Normal',
  note: 'All is well',
  regarding: { apiVersion: 'v1', kind: 'Pod', name: 'pod', namespace: 'other' },
}
const events: typeof deployments = [
  [
    'eventTime',
    undefined,
    [
      'eventTime: Required value',
      'involvedObject.namespace: Invalid value: "other": does not match event.namespace',
    ],
  ],
  ['note', 'é'.repeat(513), ['message: Invalid value: "": can have at most 1024 characters']],
  ['note', 'é'.repeat(512), []],
  ['type', 'Alarming', ['type: Invalid value: "": has invalid value: Alarming']],
  ['reason', '', ['reason: Required value']],
  ['action', 'x'.repeat(129), ['action: Invalid value: "": can have at most 128 characters']],
  ['series', { count: 1, lastObservedTime: now }, ['series.count: Invalid value: "": should be at least 2']],
  ['series', { count: 2 }, ['series.lastObservedTime: Required value']],
  [
    'regarding/namespace',
    undefined,
    ['involvedObject.namespace: Invalid value: "": does not match event.namespace'],
  ],
  ['deprecatedCount', 1, ['count: Invalid value: "": needs to be unset']],
]

export function validationContract({ api, it }: Part): void {
  let namespace = ''
  const path = (group: string, plural: string) => `/${group}/namespaces/${namespace}/${plural}`
  beforeAll(async () => {
    namespace = await api().namespace()
  })
  const table = (kind: string, base: () => string, object: KubeObject, rows: typeof deployments) => {
    for (const [field, to, causes] of rows)
      it(`${kind} with ${field} ${(JSON.stringify(to) ?? 'gone').slice(0, 60)} ${causes.length > 0 ? 'is a 422' : 'is taken'}`, async () => {
        const answer = await api().post(`${base()}?dryRun=All`, withValue(object, field, to))
        expect(causesOf(answer)).toEqual(causes)
      })
  }
  table('a Deployment', () => path('apis/apps/v1', 'deployments'), deployment('valid'), deployments)
  table('an Event', () => path('apis/events.k8s.io/v1', 'events'), event, events)
  table(
    'a Lease',
    () => path('apis/coordination.k8s.io/v1', 'leases'),
    { metadata: { name: 'lease' }, spec: {} },
    [
      [
        'spec/leaseDurationSeconds',
        0,
        ['spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0'],
      ],
      [
        'spec/leaseTransitions',
        -1,
        ['spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0'],
      ],
      ['spec/renewTime', now, []],
    ],
  )
  table('a Secret', () => path('api/v1', 'secrets'), { metadata: { name: 'secret' } }, [
    ['data', { '..': '' }, ['data[..]: Invalid value: "..": must not be \'..\'']],
    ['type', 'kubernetes.io/tls', ['data[tls.crt]: Required value', 'data[tls.key]: Required value']],
  ])
  table('a ConfigMap', () => path('api/v1', 'configmaps'), configMap('map', { data: { a: '1' } }), [
    ['binaryData', { a: 'eA==' }, ['data[a]: Invalid value: "a": duplicate of key present in binaryData']],
    ['data', { a: 'x'.repeat(1024 * 1024 + 1) }, ['[]: Too long: may not be more than 1048576 bytes']],
  ])

  it('the selector of a Deployment does not change', async () => {
    const base = path('apis/apps/v1', 'deployments')
    await api().post(base, deployment('chosen'))
    const labels = { app: 'chosen', v: '1' }
    const patch = { spec: { selector: { matchLabels: labels }, template: { metadata: { labels } } } }
    expect(causesOf(await api().patch(`${base}/chosen`, patch))).toEqual([
      'spec.selector: Invalid value: {"matchLabels":{"app":"chosen","v":"1"}}: field is immutable',
    ])
  })

  it('the type of a Secret does not change, and nothing of an immutable one', async () => {
    const base = path('api/v1', 'secrets')
    await api().post(base, { metadata: { name: 'sealed' }, immutable: true, data: { a: 'YQ==' } })
    expect(
      causesOf(await api().patch(`${base}/sealed`, { type: 'x', data: { a: 'Yg==' }, immutable: null })),
    ).toEqual([
      'data: Forbidden: field is immutable when `immutable` is set',
      'immutable: Forbidden: field is immutable when `immutable` is set',
      'type: Invalid value: "x": field is immutable',
    ])
  })

  it('an Event keeps all but its series', async () => {
    const base = path('apis/events.k8s.io/v1', 'events')
    await api().post(base, event)
    expect(causesOf(await api().patch(`${base}/event.1`, { note: 'x' }))).toEqual([
      'message: Invalid value: "x": field is immutable',
    ])
    expect(
      causesOf(await api().patch(`${base}/event.1`, { series: { count: 2, lastObservedTime: now } })),
    ).toEqual([])
  })

  it('times of a Lease have six fraction digits, or are a 400', async () => {
    const lease = { metadata: { name: 'timed' }, spec: { renewTime: '2026-12-01T00:00:00.123Z' } }
    expect((await api().post(path('apis/coordination.k8s.io/v1', 'leases'), lease)).body.message).toBe(
      'Lease in version "v1" cannot be handled as a Lease: parsing time "2026-12-01T00:00:00.123Z" as "2006-01-02T15:04:05.000000Z07:00": cannot parse ".123Z" as ".000000"',
    )
  })
}
