import { fileURLToPath } from 'node:url'
import { expect } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { namespace as ownNamespace } from '../../knative/names.ts'
import type { KubeObject } from '../../shared/kinds/object.ts'
import { realCluster } from '../control-plane/cluster.ts'

/** What `kubectl apply -k` would install, for tests on the real API server. */

const knative = fileURLToPath(new URL('../../knative/', import.meta.url))
const rightsKinds = ['ServiceAccount', 'ClusterRole', 'ClusterRoleBinding', 'Role', 'RoleBinding']

/**
 * The objects of the folder `knative/FOLDER` as kubectl's own kustomize builds them. In `home` instead of our own
 * namespace, where a test needs accounts that no other test on the cluster gives rights to.
 */
export async function kustomized(folder: string, home = ownNamespace): Promise<KubeObject[]> {
  const { stdout, stderr, code } = await realCluster.kubectl(['kustomize', `${knative}${folder}`])
  expect({ folder, stderr, code }).toEqual({ folder, stderr: '', code: 0 })
  const text = stdout.replaceAll(`namespace: ${ownNamespace}\n`, `namespace: ${home}\n`)
  return parseAllDocuments(text).map((document) => document.toJS())
}

/** Applies the accounts, roles and bindings among the objects; those that name no namespace go to `namespace`. */
export async function applyRights(objects: KubeObject[], namespace = ownNamespace): Promise<void> {
  const items = objects.filter(({ kind }) => rightsKinds.includes(kind ?? ''))
  const list = JSON.stringify({ apiVersion: 'v1', kind: 'List', items })
  const { stderr, code } = await realCluster.kubectl(
    ['apply', '--server-side', '--force-conflicts', '-n', namespace, '-f', '-'],
    list,
  )
  expect({ stderr, code }).toEqual({ stderr: '', code: 0 })
}
