/**
 * What the embedded server does not do, or does otherwise, by the name of the test that shows it on the real one. This is the whole
 * list; the README repeats it.
 */
export const embeddedSkips: Record<string, string> = {}

/**
 * What the embedded server leaves out that no test of the contract asks for, for whoever wants to know what it is not. The README
 * repeats this list too.
 */
export const embeddedLimits: readonly string[] = [
  'Kinds: namespaces, ConfigMaps, Secrets, Events (both groups), Deployments, Leases, CRDs and what they define; no pods, no ReplicaSets, no Services, no RBAC',
  'One token, which may do everything; no service accounts, no authorization, no admission but that of namespaces',
  'Bodies in JSON, YAML and (of built-in kinds but CRDs) protobuf, answers in JSON only; no CBOR',
  'Deployments get ready by a stand-in; the names of the ReplicaSets in its messages have other hashes',
  'No conversion between the versions of a CRD but of the apiVersion; no webhooks',
  'CEL rules are evaluated, not costed, and a CRD whose schema is not structural is not refused',
  'OpenAPI v3 has no descriptions of built-in kinds; there is no OpenAPI v2; columns have descriptions of our own',
  'No warnings about pod templates (such as one port in two containers); no storageVersionHash in discovery',
  'No conditions on a namespace that waits for its content',
  'Managed fields of an Event made in the core group are named as events.k8s.io names them',
  'Built-in objects are written with their fields in another order',
  'Integers beyond 2^53 are rounded, as JSON in JavaScript is',
  'Of a pod template these are not validated: affinity, sysctls, and the fields of rarer volumes',
]

/** What the contract cannot show on the real server of the tests. */
export const realSkips: Record<string, string> = {
  'its rollout ends: observed, counted, and told in conditions':
    'the control plane of the tests runs no Deployment controller, so that a test can write a status of its own',
}
