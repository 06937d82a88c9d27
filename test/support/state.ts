import { mutantKinds } from '../../shared/kinds/mutants.ts'
import { deployments, type StoredObject, secrets } from '../../shared/kinds/object.ts'
import type { KubeClient } from '../../shared/kube/client.ts'

/** All that the operator may touch, without what differs from run to run: times, uids, versions, the token itself. */
export async function stateOf(admin: KubeClient): Promise<unknown[]> {
  const all: StoredObject[] = []
  for (const resource of [...mutantKinds, deployments, secrets])
    all.push(...(await admin.list(resource, {})).items)
  return all.map((object) => plain(object)).sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1))
}

const different = new Set([
  'uid',
  'resourceVersion',
  'creationTimestamp',
  'managedFields',
  'generation',
  'observedGeneration',
  'lastTransitionTime',
  'lastUpdateTime',
  'token',
  'deployment.kubernetes.io/revision',
])

function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .filter(([name]) => !different.has(name))
      .map(([name, inner]) => [name, plain(inner)]),
  )
}
