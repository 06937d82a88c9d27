import fc from 'fast-check'
import type { KubeObject } from '../../shared/kinds/object.ts'
import { type Answer, type Api, types } from '../contract/api.ts'
import {
  configData,
  deploymentPart,
  deploymentSpec,
  deploymentStatus,
  env,
  gadgetSpec,
  gadgetStatus,
  metadata,
  some,
} from './bodies.ts'
import { gadgetGroup } from './gadgets.ts'

/** One write to one object. */
export interface Write {
  verb: 'apply' | 'put' | 'merge' | 'json' | 'strategic'
  manager: string
  force?: boolean
  subresource?: '' | 'status'
  body: unknown
}

export interface Kind {
  apiVersion: string
  kind: string
  path(namespace: string): string
  write: fc.Arbitrary<Write>
}

const writeOf = (
  verb: Write['verb'],
  managers: string[],
  body: fc.Arbitrary<unknown>,
  more: Record<string, fc.Arbitrary<unknown>> = {},
) =>
  fc.record({
    verb: fc.constant(verb),
    manager: fc.constantFrom(...managers),
    body,
    ...more,
  }) as fc.Arbitrary<Write>
const force = { force: fc.boolean() }
const status = { subresource: fc.constant('status') }
const appliers = ['one', 'two', 'three']
const updaters = ['one', 'four']

const pointers = [
  '/metadata/labels',
  '/metadata/labels/a',
  '/metadata/finalizers/0',
  '/metadata/finalizers/-',
  '/metadata/finalizers/-1',
  '/spec/replicas',
  '/spec/template/spec/containers/0/env/0',
  '/spec/template/spec/nodeSelector',
  '/spec/object/a',
  '/spec/entries/0/value',
  '/data/a',
  '/data',
]
const operations = fc.array(
  fc.record({
    op: fc.constantFrom('add', 'remove', 'replace', 'test', 'copy', 'move'),
    path: fc.constantFrom(...pointers),
    from: fc.constantFrom(...pointers),
    value: fc.constantFrom<unknown>('1', 'x.io/q', 2, null, { x: '1' }, { name: 'Z', value: '1' }),
  }),
  { minLength: 1, maxLength: 2 },
)
const container = some(
  {
    name: fc.constantFrom('a', 'b', 'd'),
    image: fc.constantFrom('n:1', 'n:2'),
    env,
    $patch: fc.constantFrom('delete', 'delete', 'replace'),
  },
  ['name'],
)
const strategic = some({
  metadata: some({
    labels: fc.dictionary(fc.constantFrom('a', 'b'), fc.constantFrom('2', null)),
    finalizers: fc.uniqueArray(fc.constantFrom('x.io/a', 'x.io/d'), { maxLength: 2 }),
  }),
  spec: some({
    replicas: fc.constantFrom(2, null),
    strategy: fc.constantFrom<unknown>(
      { $retainKeys: ['type'], type: 'Recreate' },
      { rollingUpdate: { maxSurge: 2 } },
    ),
    template: some({
      spec: some({
        containers: fc.uniqueArray(container, { maxLength: 2, selector: ({ name }) => name }),
        tolerations: fc.constantFrom<unknown>([], [{ key: 'z', operator: 'Exists' }], null),
      }),
    }),
  }),
})

const deploymentWrite = fc.oneof(
  {
    weight: 4,
    arbitrary: writeOf('apply', appliers, some({ metadata, spec: deploymentSpec }, ['spec']), force),
  },
  { weight: 3, arbitrary: writeOf('apply', appliers, some({ metadata, spec: deploymentPart([]) }), force) },
  {
    weight: 1,
    arbitrary: writeOf('apply', appliers, some({ metadata, status: deploymentStatus }, ['status']), {
      ...force,
      ...status,
    }),
  },
  {
    weight: 2,
    arbitrary: writeOf(
      'put',
      updaters,
      some({ metadata, spec: deploymentSpec, status: deploymentStatus }, ['spec']),
    ),
  },
  { weight: 2, arbitrary: writeOf('merge', updaters, some({ metadata, spec: deploymentPart([null]) })) },
  {
    weight: 1,
    arbitrary: writeOf(
      'merge',
      updaters,
      some({ metadata, status: deploymentStatus, spec: deploymentPart([]) }),
      status,
    ),
  },
  { weight: 2, arbitrary: writeOf('strategic', updaters, strategic) },
  { weight: 1, arbitrary: writeOf('json', updaters, operations) },
)
const mapWrite = fc.oneof(
  { weight: 3, arbitrary: writeOf('apply', appliers, some({ metadata, ...configData }), force) },
  { weight: 1, arbitrary: writeOf('put', updaters, some({ metadata, ...configData })) },
  { weight: 1, arbitrary: writeOf('merge', updaters, some({ metadata, ...configData })) },
  { weight: 1, arbitrary: writeOf('json', updaters, operations) },
)
const gadgetWrite = fc.oneof(
  {
    weight: 5,
    arbitrary: writeOf('apply', appliers, some({ metadata, spec: gadgetSpec, status: gadgetStatus }), force),
  },
  {
    weight: 1,
    arbitrary: writeOf(
      'apply',
      appliers,
      some({ metadata, spec: gadgetSpec, status: gadgetStatus }, ['status']),
      { ...force, ...status },
    ),
  },
  {
    weight: 2,
    arbitrary: writeOf('put', updaters, some({ metadata, spec: gadgetSpec, status: gadgetStatus })),
  },
  {
    weight: 1,
    arbitrary: writeOf('merge', updaters, some({ metadata, spec: gadgetSpec, status: gadgetStatus })),
  },
  {
    weight: 1,
    arbitrary: writeOf(
      'merge',
      updaters,
      some({ spec: gadgetSpec, status: gadgetStatus }, ['status']),
      status,
    ),
  },
  { weight: 1, arbitrary: writeOf('json', updaters, operations) },
)

const kind = (apiVersion: string, name: string, plural: string, write: fc.Arbitrary<Write>): Kind => ({
  apiVersion,
  kind: name,
  path: (namespace) =>
    `/${apiVersion.includes('/') ? 'apis' : 'api'}/${apiVersion}/namespaces/${namespace}/${plural}`,
  write,
})

export const kinds: Kind[] = [
  kind('apps/v1', 'Deployment', 'deployments', deploymentWrite),
  kind('v1', 'ConfigMap', 'configmaps', mapWrite),
  kind(`${gadgetGroup}/v1`, 'Gadget', 'gadgets', gadgetWrite),
]

const mediaTypes = { merge: types.merge, json: types.jsonPatch, strategic: types.strategic }

/** Sends the write about `live`, or about an object of this name that is to be made. */
export function send(
  api: Api,
  kind: Kind,
  base: string,
  name: string,
  live: KubeObject | undefined,
  write: Write,
): Promise<Answer> {
  const { verb, manager, force = false, subresource = '', body } = write
  const path = `${base}/${name}${subresource && `/${subresource}`}`
  if (verb === 'merge' || verb === 'json' || verb === 'strategic')
    return api.patch(`${path}?fieldManager=${manager}`, body, mediaTypes[verb])
  const { metadata = {}, ...rest } = body as KubeObject
  const object = { apiVersion: kind.apiVersion, kind: kind.kind, ...rest, metadata: { ...metadata, name } }
  if (verb === 'apply') return api.apply(path, object, `fieldManager=${manager}&force=${force}`)
  if (!live) return api.post(`${base}?fieldManager=${manager}`, object)
  const { resourceVersion } = live.metadata ?? {}
  return api.put(`${path}?fieldManager=${manager}`, {
    ...object,
    metadata: { ...object.metadata, ...(resourceVersion && { resourceVersion }) },
  })
}
