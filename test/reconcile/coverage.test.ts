import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { FieldsV1, KubeObject } from '../../shared/kinds/object.ts'
import {
  coverageOf,
  fieldsAsApplied,
  fieldsOfBoth,
  fieldsWithout,
  holdersOf,
} from '../../shared/reconcile/coverage.ts'

/** As kube-apiserver 1.36 recorded it for an apply of {@link applied}. */
const recorded: FieldsV1 = {
  'f:metadata': {
    'f:annotations': {},
    'f:labels': { 'f:app': {} },
    'f:ownerReferences': { 'k:{"uid":"1111"}': {} },
    'f:finalizers': { 'v:"a/b"': {} },
  },
  'f:spec': {
    'f:replicas': {},
    'f:selector': {},
    'f:strategy': { 'f:rollingUpdate': {} },
    'f:template': {
      'f:metadata': { 'f:labels': { 'f:app': {} } },
      'f:spec': {
        'f:nodeSelector': {},
        'f:tolerations': {},
        'f:containers': {
          'k:{"name":"main"}': {
            '.': {},
            'f:name': {},
            'f:image': {},
            'f:ports': {
              'k:{"containerPort":80,"protocol":"TCP"}': { '.': {}, 'f:containerPort': {} },
              'k:{"containerPort":80,"protocol":"UDP"}': { '.': {}, 'f:containerPort': {}, 'f:protocol': {} },
            },
            'f:env': { 'k:{"name":"A"}': { '.': {}, 'f:name': {}, 'f:value': {} } },
          },
        },
      },
    },
  },
}

function applied(): KubeObject {
  const metadata = {
    name: 'web',
    namespace: 'shop',
    uid: 'u',
    annotations: {},
    labels: { app: 'web' },
    ownerReferences: [{ apiVersion: 'v1', kind: 'X', name: 'x', uid: '1111', controller: true }],
    finalizers: ['a/b'],
  }
  const container = {
    name: 'main',
    image: 'nginx',
    command: [],
    ports: [{ containerPort: 80 }, { containerPort: 80, protocol: 'UDP' }],
    env: [{ name: 'A', value: '1' }],
    resources: { claims: [] },
  }
  const pod = { nodeSelector: {}, tolerations: [{ key: 'x' }], containers: [container], initContainers: [] }
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata,
    spec: {
      replicas: 0,
      selector: { matchLabels: { app: 'web' } },
      strategy: { rollingUpdate: {} },
      template: { metadata: { labels: { app: 'web' } }, spec: pod },
    },
  }
}

/** The recorded fields without one, as when somebody else has taken it: the server keeps no empty holder. */
function without(...path: string[]): FieldsV1 {
  return fieldsWithout(
    recorded,
    path.reduceRight<FieldsV1>((inner, key) => ({ [key]: inner }), {}),
  )
}

const main = ['f:spec', 'f:template', 'f:spec', 'f:containers', 'k:{"name":"main"}']

describe('coverageOf', () => {
  it('is whole for what the server recorded of an apply', () => {
    expect(coverageOf(applied(), recorded)).toEqual({ missing: [], covered: recorded })
  })

  it.each([
    ['.spec.replicas', ['f:spec', 'f:replicas']],
    ['.metadata.labels', ['f:metadata', 'f:labels']],
    ['.metadata.labels.app', ['f:metadata', 'f:labels', 'f:app']],
    ['.metadata.annotations', ['f:metadata', 'f:annotations']],
    ['.metadata.ownerReferences[0]', ['f:metadata', 'f:ownerReferences', 'k:{"uid":"1111"}']],
    ['.metadata.finalizers[0]', ['f:metadata', 'f:finalizers', 'v:"a/b"']],
    ['.spec.selector', ['f:spec', 'f:selector']],
    ['.spec.strategy', ['f:spec', 'f:strategy']],
    ['.spec.template.spec.tolerations', ['f:spec', 'f:template', 'f:spec', 'f:tolerations']],
    ['.spec.template.spec.containers[name="main"].image', [...main, 'f:image']],
    ['.spec.template.spec.containers[0]', main],
    [
      '.spec.template.spec.containers[name="main"].env[name="A"].value',
      [...main, 'f:env', 'k:{"name":"A"}', 'f:value'],
    ],
    [
      '.spec.template.spec.containers[name="main"].ports[0]',
      [...main, 'f:ports', 'k:{"containerPort":80,"protocol":"TCP"}'],
    ],
    [
      '.spec.template.spec.containers[name="main"].ports[1]',
      [...main, 'f:ports', 'k:{"containerPort":80,"protocol":"UDP"}'],
    ],
  ])('tells that %s was taken', (path, keys) => {
    expect(coverageOf(applied(), without(...keys)).missing.some((missing) => path.startsWith(missing))).toBe(
      true,
    )
  })

  it('covers nothing of an object that we never applied', () => {
    expect(coverageOf(applied(), undefined).missing).toEqual(['.metadata', '.spec'])
  })

  it('owns only what is applied when a manager owns more', () => {
    const more = fieldsOfBoth(recorded, { 'f:metadata': { 'f:labels': { '.': {}, 'f:theirs': {} } } })
    const { covered } = coverageOf(applied(), more)
    expect(covered).toEqual(recorded)
    expect(fieldsWithout(more, covered)).toEqual({
      'f:metadata': { 'f:labels': { '.': {}, 'f:theirs': {} } },
    })
  })

  it('owns nothing of a part in which nothing is shared', () => {
    const { covered } = coverageOf(applied(), {
      'f:spec': { 'f:paused': {} },
      'f:metadata': { 'f:labels': { 'f:x': {} } },
    })
    expect(covered).toEqual({})
  })

  it('never throws, whatever was applied and recorded', () => {
    const key = fc.oneof(
      fc.constantFrom('.', 'f:a', 'f:metadata', 'k:{"a":1}', 'k:{', 'v:"x"', 'i:0', 'v:'),
      fc.string(),
    )
    const { node: fields } = fc.letrec<{ node: FieldsV1 }>((tie) => ({
      node: fc.oneof({ maxDepth: 5 }, fc.constant({}), fc.dictionary(key, tie('node'), { maxKeys: 4 })),
    }))
    fc.assert(
      fc.property(fc.jsonValue(), fields, (value, node) => {
        const object = {
          metadata: { labels: value },
          spec: value,
          a: [value, value],
        } as unknown as KubeObject
        const { covered } = coverageOf(object, node)
        // What is covered is a part of what was given: taking it away and putting it back loses nothing.
        fieldsOfBoth(fieldsWithout(node, covered), covered)
        fieldsAsApplied(node)
        expect(coverageOf(object, covered).covered).toEqual(covered)
      }),
    )
  })
})

describe('holdersOf', () => {
  it('names the managers that own a field in our place', () => {
    const image = {
      'f:spec': {
        'f:template': { 'f:spec': { 'f:containers': { 'k:{"name":"main"}': { '.': {}, 'f:image': {} } } } },
      },
    }
    const entries = [
      { manager: 'rival', operation: 'Apply', fieldsV1: image },
      { manager: 'kubectl-edit', operation: 'Update', fieldsV1: { 'f:spec': { 'f:paused': {} } } },
      { manager: 'controller', operation: 'Update', subresource: 'status', fieldsV1: recorded },
    ]
    expect(holdersOf(applied(), '.spec.template.spec.containers[name="main"].image', entries)).toEqual([
      'rival',
    ])
  })
})
