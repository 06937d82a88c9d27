import fc from 'fast-check'

/** Random bodies: mostly valid, from small sets of values, so that writers meet on the same fields. */

type Model = Record<string, fc.Arbitrary<unknown>>

/** Every field may be absent, but those of `required`. */
export const some = (model: Model, required: string[] = []) => fc.record(model, { requiredKeys: required })
const oneOf = <T>(...values: T[]) => fc.constantFrom(...values)
const listBy = (item: fc.Arbitrary<unknown>, key: (item: never) => unknown, maxLength: number) =>
  fc.uniqueArray(item, { maxLength, selector: key as (item: unknown) => unknown })
const texts = (names: string[], values: unknown[]) =>
  fc.dictionary(fc.constantFrom(...names), fc.constantFrom(...values), { maxKeys: names.length })

export const metadata = some({
  labels: texts(['a', 'b'], ['1', '2', '']),
  annotations: texts(['n', 'o'], ['1', '']),
  finalizers: fc.uniqueArray(oneOf('x.io/a', 'x.io/b'), { maxLength: 2 }),
})

const quantity = oneOf<unknown>('1', '1000m', '100m', '0.5', '64Mi', '0.5Gi', 1)
const resources = some({
  limits: fc.dictionary(oneOf('cpu', 'memory'), quantity, { maxKeys: 2 }),
  requests: fc.dictionary(oneOf('cpu', 'memory'), oneOf('1m', '0.01'), { maxKeys: 2 }),
})
const sources = oneOf<unknown>(
  { fieldRef: { fieldPath: 'metadata.name' } },
  { secretKeyRef: { name: 's', key: 'k', optional: false } },
)
const name = oneOf('A', 'B', 'C')
const variable = fc.oneof(
  some({ name, value: oneOf('1', '2', '') }, ['name']),
  fc.record({ name, valueFrom: sources }),
)
export const env = listBy(variable, (one: { name: string }) => one.name, 3)
const port = some(
  { containerPort: oneOf(80, 81), protocol: oneOf('TCP', 'UDP'), hostIP: oneOf('', '1.2.3.4') },
  ['containerPort'],
)
const probe = some(
  {
    httpGet: some({ port: oneOf<unknown>(80, 'http'), path: oneOf('/x') }, ['port']),
    periodSeconds: oneOf(5, 0),
    initialDelaySeconds: oneOf(0, 3),
  },
  ['httpGet'],
)
const container = (names: string[]) =>
  some(
    {
      name: oneOf(...names),
      image: oneOf('nginx', 'nginx:1', 'r.io:5000/x/y', `a@sha256:${'a'.repeat(64)}`),
      env,
      ports: listBy(
        port,
        (one: { containerPort: number; protocol?: string }) => `${one.containerPort}${one.protocol ?? 'TCP'}`,
        2,
      ),
      resources,
      args: fc.array(oneOf('a', 'b'), { maxLength: 2 }),
      livenessProbe: probe,
      securityContext: some({ runAsNonRoot: fc.boolean(), readOnlyRootFilesystem: fc.boolean() }),
      tty: fc.boolean(),
      imagePullPolicy: oneOf('Always'),
    },
    ['name', 'image'],
  )
const byName = (one: { name: string }) => one.name
const volume = fc.oneof(
  fc.record({ name: oneOf('v', 'w') }),
  fc.record({ name: oneOf('v', 'w'), secret: fc.constant({ secretName: 's' }) }),
  fc.record({ name: oneOf('v', 'w'), emptyDir: some({ sizeLimit: quantity }) }),
)
const podSpec = some(
  {
    containers: fc.uniqueArray(container(['a', 'b']), {
      minLength: 1,
      maxLength: 2,
      selector: byName as (one: unknown) => unknown,
    }),
    volumes: listBy(volume, byName, 2),
    nodeSelector: texts(['x', 'y'], ['1', '2']),
    hostNetwork: fc.boolean(),
    terminationGracePeriodSeconds: oneOf(0, 5),
    serviceAccountName: oneOf('account'),
    tolerations: fc.constant([{ key: 'a', operator: 'Exists' }]),
    securityContext: some({ fsGroup: fc.constant(1) }),
    affinity: oneOf({}),
    imagePullSecrets: oneOf([{ name: 'x' }], [{ name: 'x' }, { name: 'y' }]),
  },
  ['containers'],
)

export const deploymentSpec = some(
  {
    replicas: oneOf(0, 1, 2),
    paused: fc.boolean(),
    minReadySeconds: oneOf(0, 1),
    revisionHistoryLimit: oneOf(0, 3),
    selector: fc.constant({ matchLabels: { app: 'x' } }),
    strategy: oneOf<unknown>(
      {},
      { type: 'RollingUpdate' },
      { rollingUpdate: { maxSurge: 1 } },
      { rollingUpdate: { maxUnavailable: '10%' } },
    ),
    template: fc.record({
      metadata: some(
        { labels: oneOf<unknown>({ app: 'x' }, { app: 'x', v: '1' }), annotations: texts(['n'], ['1']) },
        ['labels'],
      ),
      spec: podSpec,
    }),
  },
  ['selector', 'template'],
)

/** What only touches a Deployment here and there; with nulls where a patch may have them. */
export const deploymentPart = (nulls: unknown[]) =>
  some({
    replicas: oneOf(0, 1, 2, ...nulls),
    paused: fc.boolean(),
    template: some({
      metadata: some({ annotations: texts(['n', 'm'], ['1', ...nulls]) }),
      spec: some({
        containers: fc.array(some({ name: fc.constant('a'), env, resources }, ['name']), { maxLength: 1 }),
        nodeSelector: texts(['x'], ['1', ...nulls]),
        terminationGracePeriodSeconds: oneOf(7, ...nulls),
      }),
    }),
  })

export const deploymentStatus = some({
  replicas: oneOf(0, 3),
  conditions: listBy(
    some(
      { type: oneOf('Available', 'Progressing'), status: oneOf('True', 'False'), reason: oneOf('', 'Why') },
      ['type', 'status'],
    ),
    (one: { type: string }) => one.type,
    2,
  ),
})

export const configData = { data: texts(['a', 'b', 'c'], ['1', '2', '']), immutable: fc.constant(false) }

const value = oneOf('1', '2', '3')
/** The spec of a `Gadget`: a field of every sort that a structural schema can describe. */
export const gadgetSpec = some({
  map: texts(['a', 'b', 'c'], ['1', '2']),
  atomicMap: texts(['a', 'b'], ['1', '2']),
  object: some({ a: value, b: fc.integer({ min: 0, max: 2 }), c: some({ d: value }) }),
  set: fc.uniqueArray(oneOf('a', 'b', 'c', 'd'), { maxLength: 4 }),
  list: fc.array(value, { maxLength: 2 }),
  entries: listBy(
    some({ key: oneOf('a', 'b', 'c'), part: oneOf('x', 'y'), value, more: some({ z: value }) }, ['key']),
    (one: { key: string; part?: string }) => `${one.key}/${one.part ?? 'x'}`,
    4,
  ),
  free: fc.dictionary(oneOf('a', 'b'), oneOf<unknown>('1', {}, [1, 2], { c: { d: 1 } }, { c: 2 }), {
    maxKeys: 2,
  }),
  either: oneOf<unknown>(1, 'x'),
  any: oneOf<unknown>(1, { x: 1 }, [1]),
  maybe: oneOf('x', null),
})
export const gadgetStatus = some({
  a: value,
  conditions: listBy(
    some({ type: oneOf('x', 'y'), status: value }, ['type']),
    (one: { type: string }) => one.type,
    2,
  ),
})
