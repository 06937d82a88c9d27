import type { KubeObject } from '../shared/kinds/object.ts'
import { functionNames, head, port } from './names.ts'

/**
 * Who may open a connection to our pods: no way leads to a function but through Knative. (Whoever asks Knative's gateway
 * gets in with it; for those there is the overlay `oidc`.) The kubelet's probes need no rule, since no policy holds back
 * what comes from a pod's own node. Nothing is said of what our pods open: the addresses of an API server and of a broker
 * are each cluster's own, and a policy that guesses them wrong stops everything.
 */

/**
 * Where Knative's activator and autoscaler run, and the gateways of its networking layers. One that runs elsewhere must
 * be added, and in a service mesh, where the sender's own sidecar asks the pod, the senders' namespaces.
 */
const knativeNamespaces = [
  'knative-serving',
  'knative-serving-ingress',
  'kourier-system',
  'contour-internal',
  'istio-system',
  'istio-ingress',
  'envoy-gateway-system',
]

/** queue-proxy: requests (HTTP/1, HTTP/2, TLS), its probes and drain, and what the autoscaler reads. */
const queueProxyPorts = [8012, 8013, 8112, 8022, 9090, 9091]

const nameLabel = 'app.kubernetes.io/name'

export function networkPolicies(): KubeObject[] {
  return [
    policy('default-deny', {}, []),
    policy(
      'functions',
      { matchExpressions: [{ key: nameLabel, operator: 'In', values: [...functionNames] }] },
      [{ from: [namespaces(knativeNamespaces)], ports: queueProxyPorts.map((one) => ({ port: one })) }],
    ),
    // What it answers, health and metrics, is no secret; which namespace asks for metrics is each cluster's own.
    policy('watcher', { matchLabels: { [nameLabel]: 'watcher' } }, [
      { from: [{ namespaceSelector: {} }], ports: [{ port }] },
    ]),
  ]
}

function namespaces(values: string[]): object {
  return {
    namespaceSelector: { matchExpressions: [{ key: 'kubernetes.io/metadata.name', operator: 'In', values }] },
  }
}

function policy(name: string, podSelector: object, ingress: object[]): KubeObject {
  return {
    ...head('networking.k8s.io/v1', 'NetworkPolicy', name),
    spec: { podSelector, policyTypes: ['Ingress'], ...(ingress.length > 0 && { ingress }) },
  }
}
