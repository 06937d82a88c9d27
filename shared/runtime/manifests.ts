import type { KubeObject } from '../kinds/object.ts'
import type { KubernetesConfig } from './config.ts'
import { labelsFilePath } from './pod-info.ts'

/** What the manifests of an app are made from: its configuration, and how it is to be run. */
export interface ManifestOptions {
  name: string
  namespace: string
  image: string
  /** The app's own, as the process would load it. */
  config: KubernetesConfig
  command?: readonly string[] | undefined
  args?: readonly string[] | undefined
  env?: Readonly<Record<string, string>> | undefined
  labels?: Readonly<Record<string, string>> | undefined
  /** Default 2. */
  replicas?: number | undefined
  /** Where the app listens. Default 8080. */
  port?: number | undefined
  resources?: KubeObject | undefined
  shutdown?: Partial<ShutdownTimes> | undefined
}

/** All in seconds. */
export interface ShutdownTimes {
  /** Before SIGTERM, so that load balancers have heard. Default 5. */
  preStop: number
  /** Between SIGTERM and the end of accepting. Default 2. */
  grace: number
  /** For requests in flight and the runtime's own shutdown. Default 20. */
  timeout: number
  /** Left over before the kubelet kills. Default 5. */
  buffer: number
}

interface Rule {
  namespace: string
  apiGroups: string[]
  resources: string[]
  resourceNames?: string[]
  verbs: string[]
}

const defaultShutdown: ShutdownTimes = { preStop: 5, grace: 2, timeout: 20, buffer: 5 }
/** The longest `terminationGracePeriodSeconds` that we ask for; sums beyond it stay at it. */
const gracePeriodSecondsMax = 2 ** 31 - 1

/**
 * The objects that run an app: ServiceAccount, Role and RoleBinding (only what the configuration needs; none when it
 * needs nothing), Deployment, Service, PodDisruptionBudget. Pure; `kubectl apply` takes them as they are.
 */
export function manifests(options: ManifestOptions): KubeObject[] {
  const { name, namespace } = options
  const meta = { name, namespace, labels: labelsOf(options) }
  return [
    {
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      metadata: meta,
      automountServiceAccountToken: options.config.enabled,
    },
    ...access(options),
    deployment(options),
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: meta,
      spec: { selector: selectorOf(options), ports: [{ name: 'http', port: 80, targetPort: 'http' }] },
    },
    {
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      metadata: meta,
      spec: { maxUnavailable: 1, selector: { matchLabels: selectorOf(options) } },
    },
  ]
}

function selectorOf({ name }: ManifestOptions): Record<string, string> {
  return { 'app.kubernetes.io/name': name }
}

function labelsOf(options: ManifestOptions): Record<string, string> {
  return { ...options.labels, ...selectorOf(options) }
}

/** What the runtime does with the API, and no more. */
function rulesFor({ config, namespace }: ManifestOptions): Rule[] {
  if (!config.enabled) return []
  const { leaderElection: election, configMaps, events } = config
  const target = config.namespace || namespace
  const rules: Rule[] = []
  if (election.enabled)
    rules.push({
      namespace: target,
      apiGroups: ['coordination.k8s.io'],
      resources: ['leases'],
      resourceNames: [election.leaseName],
      // The Lease is created with PUT, which carries its name: so `create` can be limited to it, too.
      verbs: ['get', 'create', 'update'],
    })
  if (configMaps.watch.length > 0)
    rules.push({
      namespace: target,
      apiGroups: [''],
      resources: ['configmaps'],
      resourceNames: [...configMaps.watch],
      verbs: ['list', 'watch'],
    })
  // An event stands in the namespace of its pod, and a name cannot limit what is created with POST.
  if (events)
    rules.push({ namespace, apiGroups: ['events.k8s.io'], resources: ['events'], verbs: ['create'] })
  return rules
}

function access(options: ManifestOptions): KubeObject[] {
  const { name, namespace } = options
  const byNamespace = Map.groupBy(rulesFor(options), (rule) => rule.namespace)
  return [...byNamespace].flatMap(([where, rules]) => {
    const metadata = { name, namespace: where, labels: labelsOf(options) }
    return [
      {
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'Role',
        metadata,
        rules: rules.map(({ namespace: _, ...rule }) => rule),
      },
      {
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'RoleBinding',
        metadata,
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name },
        subjects: [{ kind: 'ServiceAccount', name, namespace }],
      },
    ]
  })
}

function deployment(options: ManifestOptions): KubeObject {
  const { name, namespace } = options
  const times = { ...defaultShutdown, ...options.shutdown }
  const { preStop, grace, timeout, buffer } = times
  const podinfo = { name: 'podinfo', mountPath: labelsFilePath.slice(0, labelsFilePath.lastIndexOf('/')) }
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name, namespace, labels: labelsOf(options) },
    spec: {
      replicas: options.replicas ?? 2,
      selector: { matchLabels: selectorOf(options) },
      template: {
        metadata: { labels: labelsOf(options) },
        spec: {
          serviceAccountName: name,
          terminationGracePeriodSeconds: Math.min(preStop + grace + timeout + buffer, gracePeriodSecondsMax),
          securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
          containers: [container(options, times, podinfo)],
          volumes: [
            {
              name: podinfo.name,
              downwardAPI: { items: [{ path: 'labels', fieldRef: { fieldPath: 'metadata.labels' } }] },
            },
          ],
        },
      },
    },
  }
}

function container(options: ManifestOptions, { preStop }: ShutdownTimes, podinfo: KubeObject): KubeObject {
  const { name, image, command, args, port = 8080 } = options
  const probe = (path: string, failureThreshold: number, periodSeconds: number) => ({
    httpGet: { path, port: 'http' },
    failureThreshold,
    periodSeconds,
    timeoutSeconds: 3,
  })
  return {
    name,
    image,
    ...(command && { command: [...command] }),
    ...(args && { args: [...args] }),
    ports: [{ name: 'http', containerPort: port }],
    env: [
      { name: 'PORT', value: String(port) },
      ...Object.entries(options.env ?? {}).map(([key, value]) => ({ name: key, value })),
      ...downwardEnv,
    ],
    ...(options.resources && { resources: options.resources }),
    startupProbe: probe('/startupz', 30, 1),
    livenessProbe: probe('/livez', 3, 10),
    readinessProbe: probe('/readyz', 2, 5),
    ...(preStop > 0 && { lifecycle: { preStop: { sleep: { seconds: preStop } } } }),
    securityContext: {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    },
    volumeMounts: [{ ...podinfo, readOnly: true }],
  }
}

const downwardEnv = Object.entries({
  POD_NAME: 'metadata.name',
  POD_NAMESPACE: 'metadata.namespace',
  POD_UID: 'metadata.uid',
  NODE_NAME: 'spec.nodeName',
  POD_IP: 'status.podIP',
  POD_SERVICE_ACCOUNT: 'spec.serviceAccountName',
}).map(([name, fieldPath]) => ({ name, valueFrom: { fieldRef: { fieldPath } } }))
