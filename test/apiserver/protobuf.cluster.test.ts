import { describe, expect, it } from 'vitest'
import { builtInResources } from '../../shared/apiserver/built-in.ts'
import { fromProtobuf } from '../../shared/apiserver/http/protobuf.ts'
import { schemaFor } from '../../shared/apiserver/schema.ts'
import {
  configMaps,
  deployments,
  events,
  type KubeObject,
  leases,
  pathOf,
  type Resource,
  type StoredObject,
  secrets,
} from '../../shared/kinds/object.ts'
import { realCluster } from '../control-plane/cluster.ts'

/** What the real server writes in protobuf is read here as what it writes in JSON. */

const protobuf = 'application/vnd.kubernetes.protobuf'
const marks = { labels: { a: 'b', empty: '' }, annotations: { note: 'ä' } }
const probe = {
  httpGet: { path: '/', port: 'http', httpHeaders: [{ name: 'A', value: 'b' }] },
  periodSeconds: 5,
}
const selectorOf = (app: string) => ({
  matchLabels: { app },
  matchExpressions: [{ key: 'x', operator: 'Exists' }],
})

const objects: [Resource, KubeObject][] = [
  [
    configMaps,
    { data: { a: 'b', empty: '' }, binaryData: { c: 'AAEC/w==' }, immutable: false } as KubeObject,
  ],
  [secrets, { type: 'Opaque', data: { token: 'c2VjcmV0', none: '' } } as KubeObject],
  [
    leases,
    {
      spec: {
        holderIdentity: 'h',
        leaseDurationSeconds: 15,
        renewTime: '2026-01-02T03:04:05.678901Z',
        leaseTransitions: 0,
      },
    } as KubeObject,
  ],
  [
    events,
    {
      eventTime: '2026-01-02T03:04:05.000001Z',
      reportingController: 'x.org/y',
      reportingInstance: 'i',
      action: 'A',
      reason: 'R',
      type: 'Normal',
      note: 'n',
      regarding: { kind: 'Pod', namespace: 'default', name: 'p' },
      series: { count: 2, lastObservedTime: '2026-01-02T03:04:06.000000Z' },
    } as KubeObject,
  ],
  [
    deployments,
    {
      spec: {
        replicas: 0,
        paused: true,
        strategy: { rollingUpdate: { maxSurge: '30%', maxUnavailable: 2 } },
        selector: selectorOf('all'),
        template: {
          metadata: { labels: { app: 'all', x: 'y' } },
          spec: {
            volumes: [
              { name: 'host', hostPath: { path: '/x' } },
              { name: 'config', configMap: { name: 'c', items: [{ key: 'k', path: 'p', mode: 420 }] } },
              { name: 'empty', emptyDir: { sizeLimit: '1Gi' } },
              {
                name: 'all',
                projected: {
                  sources: [
                    { serviceAccountToken: { path: 't', expirationSeconds: 3600 } },
                    { secret: { name: 's' } },
                    { downwardAPI: { items: [{ path: 'l', fieldRef: { fieldPath: 'metadata.labels' } }] } },
                  ],
                },
              },
            ],
            initContainers: [{ name: 'first', image: 'i', restartPolicy: 'Always' }],
            containers: [
              {
                name: 'main',
                image: 'nginx',
                command: ['a', ''],
                env: [
                  { name: 'A', value: 'b' },
                  { name: 'B', valueFrom: { secretKeyRef: { name: 's', key: 'k', optional: true } } },
                  { name: 'C', valueFrom: { resourceFieldRef: { resource: 'limits.cpu', divisor: '1m' } } },
                ],
                envFrom: [{ prefix: 'P_', configMapRef: { name: 'c' } }],
                ports: [{ name: 'http', containerPort: 80, hostPort: 0 }],
                resources: { requests: { cpu: '100m' }, limits: { cpu: '0.5', memory: '1Gi' } },
                volumeMounts: [{ name: 'host', mountPath: '/x', readOnly: true }],
                livenessProbe: probe,
                readinessProbe: { exec: { command: ['true'] } },
                startupProbe: { tcpSocket: { port: 80 } },
                lifecycle: { preStop: { exec: { command: ['end'] } } },
                securityContext: { runAsUser: 0, runAsNonRoot: false, capabilities: { drop: ['ALL'] } },
              },
            ],
            affinity: {
              podAntiAffinity: {
                requiredDuringSchedulingIgnoredDuringExecution: [
                  { topologyKey: 'kubernetes.io/hostname', labelSelector: selectorOf('all') },
                ],
              },
            },
            tolerations: [{ key: 'k', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 0 }],
            topologySpreadConstraints: [
              {
                maxSkew: 1,
                topologyKey: 'zone',
                whenUnsatisfiable: 'ScheduleAnyway',
                labelSelector: selectorOf('all'),
              },
            ],
            hostAliases: [{ ip: '127.0.0.1', hostnames: ['x'] }],
            terminationGracePeriodSeconds: 0,
            enableServiceLinks: false,
            automountServiceAccountToken: false,
          },
        },
      },
    } as KubeObject,
  ],
]

describe('protobuf', () => {
  it.each(objects)('a $kind of many fields is read as its JSON', async (resource, body) => {
    const namespace = resource === events ? 'default' : await realCluster.newNamespace()
    const apiVersion = resource.group === '' ? resource.version : `${resource.group}/${resource.version}`
    const metadata = { ...marks, name: `all-${namespace}`, namespace }
    const whole = { ...body, apiVersion, kind: resource.kind, metadata }
    const made = await realCluster.client().create<StoredObject>(resource, whole)
    const json = await realCluster
      .client()
      .get<StoredObject>(resource, { namespace, name: made.metadata.name })
    const { baseUrl, fetch } = realCluster.transport()
    const url = `${baseUrl}${pathOf(resource, { namespace, name: made.metadata.name })}`
    const answer = await fetch(url, { method: 'GET', headers: { accept: protobuf } })
    expect(answer.headers.get('content-type')).toBe(protobuf)
    const bytes = new Uint8Array(await answer.arrayBuffer())
    const schema = schemaFor(resource)
    const rules = builtInResources().find(
      ({ kind, group }) => kind === resource.kind && group === resource.group,
    )?.rules
    if (!schema || !rules) throw new Error(`No schema of ${resource.kind}`)
    const read = fromProtobuf(bytes, schema.root)
    expect(rules.decode(read as KubeObject, 'json')).toEqual({
      ...rules.decode(json as KubeObject, 'json'),
      unknown: [],
    })
    await realCluster.client().delete(resource, { namespace, name: made.metadata.name })
  })
})
