import fc from 'fast-check'
import { types } from '../contract/api.ts'
import { widgetGroup } from '../contract/objects.ts'

/** One request of a random sequence; `NS` in its path stands for the namespace of the sequence. */
export interface Step {
  method: string
  path: string
  body?: unknown
  type?: string
  /** Which resourceVersion the body carries: none, the newest that was seen of the object, or the first. */
  version?: 'newest' | 'first' | undefined
}

const maybe = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined, freq: 2 })

const rarely = <T>(arbitrary: fc.Arbitrary<T>) =>
  fc.oneof({ weight: 9, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary })

/** Drops what is undefined. */
const compact = (object: Record<string, unknown>) =>
  Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined))

const name = fc.constantFrom('a', 'b')
const labels = fc.dictionary(fc.constantFrom('x', 'y'), fc.constantFrom('1', '2'), { maxKeys: 2 })
const metadata = fc.record({
  labels: maybe(labels),
  annotations: maybe(labels),
  finalizers: maybe(fc.constantFrom([], ['neiam.org/a'], ['neiam.org/a', 'neiam.org/b'])),
})

interface Kind {
  base: string
  head: { apiVersion: string; kind: string }
  /** What stands beside the metadata. */
  content: fc.Arbitrary<Record<string, unknown>>
  hasStatus: boolean
}

const values = fc.dictionary(fc.constantFrom('a', 'b', 'c'), fc.constantFrom('1', '2', ''), { maxKeys: 3 })

const configMaps: Kind = {
  base: '/api/v1/namespaces/NS/configmaps',
  head: { apiVersion: 'v1', kind: 'ConfigMap' },
  content: fc.record({ data: maybe(values), immutable: maybe(fc.constantFrom(false)) }).map(compact),
  hasStatus: false,
}

const secrets: Kind = {
  base: '/api/v1/namespaces/NS/secrets',
  head: { apiVersion: 'v1', kind: 'Secret' },
  content: fc
    .record({ stringData: maybe(values), type: maybe(fc.constantFrom('Opaque', 'neiam.org/t')) })
    .map(compact),
  hasStatus: false,
}

const port = fc
  .record({ port: fc.constantFrom(1, 2), protocol: maybe(fc.constantFrom('TCP', 'UDP')) })
  .map(compact)
const widgetSpec = fc
  .record({
    size: fc.constantFrom(1, 2, 2, 3, 11),
    color: maybe(fc.constantFrom('red', 'green', 'blue')),
    tags: maybe(fc.array(fc.constantFrom('p', 'q'), { maxLength: 2 })),
    ports: maybe(fc.array(port, { maxLength: 2 })),
    // Always there and never smaller: see the skips.
    free: fc.constantFrom({ k: 1 }, { k: 2 }),
    map: maybe(values),
    maybe: maybe(fc.constantFrom(null, 's')),
    bogus: rarely(fc.constant(1)),
  })
  .map(compact)

const widgets: Kind = {
  base: `/apis/${widgetGroup}/v1/namespaces/NS/widgets`,
  head: { apiVersion: `${widgetGroup}/v1`, kind: 'Widget' },
  content: fc
    .record({ spec: widgetSpec, status: maybe(fc.constantFrom({ replicas: 1 }, { seen: true })) })
    .map(compact),
  hasStatus: true,
}

const env = fc
  .record({ name: fc.constantFrom('A', 'B', 'C'), value: maybe(fc.constantFrom('1', '')) })
  .map(compact)
const container = fc
  .record({
    name: fc.constantFrom('main', 'side'),
    image: fc.constantFrom('i', 'j'),
    env: maybe(fc.uniqueArray(env, { maxLength: 3, selector: (entry) => entry.name })),
    ports: maybe(fc.constantFrom([{ containerPort: 80 }], [{ containerPort: 80, name: 'http' }])),
    resources: maybe(fc.constantFrom({}, { limits: { cpu: '1000m' } }, { requests: { memory: '0.5Gi' } })),
    command: maybe(fc.constantFrom([], ['run'])),
  })
  .map(compact)

/** The real server warns of a port that two containers have; the embedded one does not. */
const portsOfOne = (containers: Record<string, unknown>[]) =>
  containers.map((one) => (one.name === 'side' ? compact({ ...one, ports: undefined }) : one))

const deployments: Kind = {
  base: '/apis/apps/v1/namespaces/NS/deployments',
  head: { apiVersion: 'apps/v1', kind: 'Deployment' },
  content: fc
    .record({
      replicas: maybe(fc.constantFrom(0, 1, -1)),
      paused: maybe(fc.boolean()),
      strategy: maybe(fc.constantFrom({}, { type: 'Recreate' }, { rollingUpdate: { maxSurge: 1 } })),
      containers: fc
        .uniqueArray(container, { minLength: 0, maxLength: 2, selector: (one) => one.name })
        .map(portsOfOne),
    })
    .map(({ containers, ...spec }) => ({
      spec: {
        ...compact(spec),
        selector: { matchLabels: { app: 'x' } },
        template: { metadata: { labels: { app: 'x' } }, spec: { containers } },
      },
    })),
  hasStatus: true,
}

const leases: Kind = {
  base: '/apis/coordination.k8s.io/v1/namespaces/NS/leases',
  head: { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease' },
  content: fc
    .record({
      holderIdentity: maybe(fc.constantFrom('h', '')),
      leaseDurationSeconds: maybe(fc.constantFrom(15, 0)),
      renewTime: maybe(fc.constantFrom('2026-01-01T00:00:00.123456Z', '2026-01-01T00:00:00.123Z', null)),
      leaseTransitions: maybe(fc.constantFrom(1, -1)),
    })
    .map((spec) => ({ spec: compact(spec) })),
  hasStatus: false,
}

const kind = fc.constantFrom(configMaps, secrets, widgets, deployments, leases)

/** An object of a kind with everything about it by chance. */
const object = (of: Kind) =>
  fc.record({ name, metadata, content: of.content }).map((parts) => ({
    ...of.head,
    metadata: { name: parts.name, ...compact(parts.metadata) },
    ...parts.content,
  }))

const dryRun = rarely(fc.constant('dryRun=All')).map((set) => set ?? '')
const query = (...parts: string[]) => {
  const set = parts.filter((part) => part !== '')
  return set.length === 0 ? '' : `?${set.join('&')}`
}

const create = kind.chain((of) =>
  fc
    .tuple(object(of), dryRun)
    .map(([body, dry]): Step => ({ method: 'POST', path: of.base + query(dry), body })),
)
const version = fc.constantFrom(undefined, 'newest' as const, 'newest' as const, 'first' as const)
const replace = kind.chain((of) =>
  fc.tuple(object(of), version, dryRun).map(
    ([body, at, dry]): Step => ({
      method: 'PUT',
      path: `${of.base}/${body.metadata.name}${query(dry)}`,
      body,
      version: at,
    }),
  ),
)
const apply = kind.chain((of) =>
  fc.tuple(object(of), fc.constantFrom('one', 'two'), fc.boolean(), dryRun).map(
    ([body, manager, force, dry]): Step => ({
      method: 'PATCH',
      path: `${of.base}/${body.metadata.name}${query(`fieldManager=${manager}`, force ? 'force=true' : '', dry)}`,
      body: { ...body, metadata: compact({ ...body.metadata, finalizers: undefined }) },
      type: types.apply,
    }),
  ),
)
const merge = kind.chain((of) =>
  fc.tuple(object(of), fc.constantFrom('', '/status'), dryRun).map(([body, sub, dry]): Step => {
    const { apiVersion: _1, kind: _2, ...patch } = body
    const path = `${of.base}/${body.metadata.name}${of.hasStatus ? sub : ''}${query(dry)}`
    return { method: 'PATCH', path, body: patch, type: types.merge }
  }),
)
const operation = fc.constantFrom(
  { op: 'add', path: '/metadata/labels', value: { j: '1' } },
  { op: 'remove', path: '/metadata/labels/x' },
  { op: 'replace', path: '/metadata/annotations', value: {} },
  { op: 'test', path: '/metadata/name', value: 'a' },
  { op: 'remove', path: '/metadata/finalizers' },
)
const jsonPatch = fc.tuple(kind, name, fc.array(operation, { minLength: 1, maxLength: 2 })).map(
  ([of, target, body]): Step => ({
    method: 'PATCH',
    path: `${of.base}/${target}`,
    body,
    type: types.jsonPatch,
  }),
)
const remove = fc
  .tuple(kind, name, dryRun)
  .map(([of, target, dry]): Step => ({ method: 'DELETE', path: `${of.base}/${target}${query(dry)}` }))
const selector = fc.constantFrom(
  '',
  'labelSelector=x',
  'labelSelector=x%3D1',
  'labelSelector=!x',
  'labelSelector=x%20in%20(1,2)',
  'fieldSelector=metadata.name%3Da',
)
const read = fc
  .tuple(kind, fc.option(name, { nil: '', freq: 2 }), selector)
  .filter(([of, , by]) => of !== configMaps || by !== '')
  .map(
    ([of, target, by]): Step => ({
      method: 'GET',
      path: target === '' ? of.base + query(by) : `${of.base}/${target}`,
    }),
  )
  // A controller puts a ConfigMap of its own into each namespace of the real cluster.
  .filter(({ path }) => !(path.includes('/configmaps?') && path.includes('!x')))

const scale = fc
  .tuple(fc.constantFrom(widgets, deployments), name, fc.constantFrom(0, 1, 2, -1))
  .map(([of, target, replicas]): Step => {
    const path = `${of.base}/${target}/scale`
    return { method: 'PATCH', path, body: { spec: { replicas } }, type: types.merge }
  })
const readScale = fc
  .tuple(fc.constantFrom(widgets, deployments), name)
  .map(([of, target]): Step => ({ method: 'GET', path: `${of.base}/${target}/scale` }))
const removeAll = fc
  .tuple(fc.constantFrom(secrets, widgets, deployments, leases), selector)
  .map(([of, by]): Step => ({ method: 'DELETE', path: of.base + query(by) }))
const strategic = fc.constantFrom(configMaps, secrets, deployments, leases).chain((of) =>
  object(of).map((body): Step => {
    const { apiVersion: _1, kind: _2, ...patch } = body
    const path = `${of.base}/${body.metadata.name}`
    return { method: 'PATCH', path, body: patch, type: types.strategic }
  }),
)

/** Requests that a client might send, good and bad ones. */
export const requests: fc.Arbitrary<Step> = fc.oneof(
  { weight: 3, arbitrary: create },
  { weight: 3, arbitrary: apply },
  { weight: 2, arbitrary: replace },
  { weight: 2, arbitrary: merge },
  { weight: 1, arbitrary: jsonPatch },
  { weight: 1, arbitrary: remove },
  { weight: 1, arbitrary: read },
  { weight: 1, arbitrary: scale },
  { weight: 1, arbitrary: readScale },
  { weight: 1, arbitrary: removeAll },
  { weight: 1, arbitrary: strategic },
)
