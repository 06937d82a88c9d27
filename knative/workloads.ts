import type { KubeObject } from '../shared/kinds/object.ts'
import {
  type FunctionName,
  functionNames,
  head,
  image,
  labelsOf,
  leaseName,
  type ProcessName,
  port,
} from './names.ts'

/** The processes: a Knative Service for each function, a Deployment for the watcher. */

/** A request lives no longer than the try of the Trigger that sends it; a function answers well before. */
const requestTimeoutSeconds = 30
/** One node process; its work is waiting for the API server. */
const concurrency = 20

/** What the CRDs of a small cluster give a function; the resync alone holds pages of objects. */
const memory: Record<ProcessName, { request: string; limit: string }> = {
  watcher: { request: '96Mi', limit: '512Mi' },
  mutation: { request: '96Mi', limit: '256Mi' },
  'mutant-deployment': { request: '96Mi', limit: '256Mi' },
  resync: { request: '96Mi', limit: '384Mi' },
  'dead-letter': { request: '64Mi', limit: '192Mi' },
}

const maxScale: Record<FunctionName, number> = {
  mutation: 10,
  'mutant-deployment': 10,
  // One look at everything at a time.
  resync: 1,
  'dead-letter': 2,
}

const securityContext = {
  allowPrivilegeEscalation: false,
  capabilities: { drop: ['ALL'] },
  readOnlyRootFilesystem: true,
  runAsNonRoot: true,
  seccompProfile: { type: 'RuntimeDefault' },
}

export function workloads(): KubeObject[] {
  return [...functionNames.map(functionService), watcherDeployment(), watcherBudget()]
}

function functionService(name: FunctionName): KubeObject {
  const service = head('serving.knative.dev/v1', 'Service', name, name)
  return {
    ...service,
    metadata: {
      ...service.metadata,
      // Without this label Knative gives the function a public address.
      labels: { ...labelsOf(name), 'networking.knative.dev/visibility': 'cluster-local' },
    },
    spec: {
      template: {
        metadata: {
          labels: labelsOf(name),
          annotations: {
            'autoscaling.knative.dev/min-scale': '0',
            'autoscaling.knative.dev/max-scale': String(maxScale[name]),
            // How long without a request before it is stopped.
            'autoscaling.knative.dev/window': '30s',
          },
        },
        spec: {
          serviceAccountName: name,
          enableServiceLinks: false,
          containerConcurrency: concurrency,
          timeoutSeconds: requestTimeoutSeconds,
          containers: [
            {
              name,
              image,
              args: [name],
              env: commonEnv,
              ports: [{ containerPort: port }],
              readinessProbe: { httpGet: { path: '/readyz' } },
              livenessProbe: { httpGet: { path: '/livez' } },
              resources: resources(name),
              securityContext,
            },
          ],
        },
      },
    },
  }
}

function watcherDeployment(): KubeObject {
  const name = 'watcher'
  const labels = labelsOf(name)
  const selector = { matchLabels: { 'app.kubernetes.io/name': name } }
  return {
    ...head('apps/v1', 'Deployment', name, name),
    spec: {
      // One works, the other waits to take over.
      replicas: 2,
      selector,
      template: {
        metadata: { labels },
        spec: {
          serviceAccountName: name,
          enableServiceLinks: false,
          // preStop, DRAIN_SECONDS and what is told last, with something to spare.
          terminationGracePeriodSeconds: 45,
          topologySpreadConstraints: [
            {
              maxSkew: 1,
              topologyKey: 'kubernetes.io/hostname',
              whenUnsatisfiable: 'ScheduleAnyway',
              labelSelector: selector,
              // During a rollout the old pods, soon gone, do not count.
              matchLabelKeys: ['pod-template-hash'],
            },
          ],
          containers: [watcherContainer(name)],
          volumes: [
            {
              name: 'podinfo',
              downwardAPI: { items: [{ path: 'labels', fieldRef: { fieldPath: 'metadata.labels' } }] },
            },
          ],
        },
      },
    },
  }
}

function watcherContainer(name: 'watcher'): object {
  const probe = (path: string) => ({ httpGet: { path, port: 'http' } })
  return {
    name,
    image,
    args: [name],
    env: [
      ...commonEnv,
      { name: 'PORT', value: String(port) },
      { name: 'LEASE_NAME', value: leaseName },
      ...podEnv,
    ],
    ports: [{ name: 'http', containerPort: port }],
    startupProbe: { ...probe('/livez'), periodSeconds: 1, failureThreshold: 30 },
    livenessProbe: probe('/livez'),
    readinessProbe: probe('/readyz'),
    // Whoever scrapes it by its endpoints has then forgotten the pod.
    lifecycle: { preStop: { sleep: { seconds: 2 } } },
    resources: resources(name),
    securityContext,
    volumeMounts: [{ name: 'podinfo', mountPath: '/etc/podinfo', readOnly: true }],
  }
}

function watcherBudget(): KubeObject {
  return {
    ...head('policy/v1', 'PodDisruptionBudget', 'watcher', 'watcher'),
    spec: {
      minAvailable: 1,
      selector: { matchLabels: { 'app.kubernetes.io/name': 'watcher' } },
      // A watcher that does not work keeps no node from being drained.
      unhealthyPodEvictionPolicy: 'AlwaysAllow',
    },
  }
}

/** No CPU limit: Knative takes a container's CPU limit for its request, and scaling out would stop early. */
function resources(name: ProcessName): object {
  const { request, limit } = memory[name]
  return { requests: { cpu: '50m', memory: request }, limits: { memory: limit } }
}

const commonEnv = [
  // The name in the source of every event: `/clusters/NAME/watcher`.
  { name: 'CLUSTER_NAME', value: 'default' },
  { name: 'LOG_LEVEL', value: 'info' },
]

/** The Downward API. Not for the functions: Knative refuses `fieldRef` unless its feature is on. */
const podEnv = Object.entries({
  POD_NAME: 'metadata.name',
  POD_NAMESPACE: 'metadata.namespace',
  POD_UID: 'metadata.uid',
  POD_IP: 'status.podIP',
  POD_SERVICE_ACCOUNT: 'spec.serviceAccountName',
  NODE_NAME: 'spec.nodeName',
}).map(([name, fieldPath]) => ({ name, valueFrom: { fieldRef: { fieldPath } } }))
