import { realCluster } from '../control-plane/cluster.ts'
import { runtimeContract } from './runtime-contract.ts'

const roles = '/apis/rbac.authorization.k8s.io/v1/namespaces'

runtimeContract('a real API server', {
  client: () => realCluster.client(),
  newNamespace: () => realCluster.newNamespace(),
  async deniedConfigMaps(namespace) {
    const token = await realCluster.tokenFor(namespace, 'reader')
    const admin = realCluster.client()
    const metadata = { name: 'reader', namespace }
    return {
      client: realCluster.client({ token }),
      async allow() {
        const rules = [
          {
            apiGroups: [''],
            resources: ['configmaps'],
            resourceNames: ['settings'],
            verbs: ['list', 'watch'],
          },
        ]
        const role = { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'Role', metadata, rules }
        await admin.request('POST', `${roles}/${namespace}/roles`, { body: role })
        const binding = {
          apiVersion: 'rbac.authorization.k8s.io/v1',
          kind: 'RoleBinding',
          metadata,
          roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'reader' },
          subjects: [{ kind: 'ServiceAccount', name: 'reader', namespace }],
        }
        await admin.request('POST', `${roles}/${namespace}/rolebindings`, { body: binding })
      },
    }
  },
})
