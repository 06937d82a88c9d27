import { mutantDeployments, mutations } from '../shared/kinds/mutants.ts'
import type { KubeObject, Resource } from '../shared/kinds/object.ts'
import { configMaps, deployments, events, leases, secrets } from '../shared/kinds/object.ts'
import {
  clusterName,
  head,
  labelsOf,
  leaseName,
  namespace,
  type ProcessName,
  processNames,
  settingsName,
} from './names.ts'

/** A ServiceAccount for each process, and no right more than it uses. */

interface Rule {
  apiGroups: string[]
  resources: string[]
  resourceNames?: string[]
  verbs: string[]
}

function rule(resource: Resource, verbs: string[], subresource?: string): Rule {
  const name = subresource ? `${resource.plural}/${subresource}` : resource.plural
  return { apiGroups: [resource.group], resources: [name], verbs }
}

/** What a reconciler does to the kind it is for; `finalizers` is asked for by blockOwnerDeletion on the children. */
function ownerRules(kind: Resource): Rule[] {
  return [rule(kind, ['get']), rule(kind, ['update'], 'status'), rule(kind, ['update'], 'finalizers')]
}

/** Apply creates as well as changes, so it needs both verbs. */
const childRules = [rule(deployments, ['get', 'list', 'create', 'patch', 'delete'])]
/** A Kubernetes Event is made once, and a repeat raises its series. */
const recordRules = [rule(events, ['create', 'get', 'update'])]

/** Rights in all namespaces or, with the overlay `namespaced`, in those that have the kustomization `tenant`. */
const objectRules: Record<ProcessName, Rule[]> = {
  watcher: [
    rule(mutantDeployments, ['list', 'watch']),
    rule(mutations, ['list', 'watch']),
    rule(deployments, ['list', 'watch']),
  ],
  mutation: [
    ...ownerRules(mutations),
    ...childRules,
    // Never list: no process can see what Secrets there are.
    rule(secrets, ['get', 'create']),
    ...recordRules,
  ],
  'mutant-deployment': [...ownerRules(mutantDeployments), ...childRules, ...recordRules],
  resync: [rule(mutantDeployments, ['list']), rule(mutations, ['list']), rule(deployments, ['list'])],
  'dead-letter': [rule(mutantDeployments, ['get']), rule(mutations, ['get']), ...recordRules],
}

/** Rights in our own namespace. The Lease is created by PUT, which lets `create` name it too. */
const ownRules: Partial<Record<ProcessName, Rule[]>> = {
  watcher: [
    { ...rule(leases, ['get', 'create', 'update']), resourceNames: [leaseName] },
    rule(events, ['create']),
    // By a field selector, so that the name can be held.
    { ...rule(configMaps, ['list', 'watch']), resourceNames: [settingsName] },
  ],
}

/** ServiceAccounts, roles and bindings of all processes. */
export function rbac(): KubeObject[] {
  return processNames.flatMap((process) => [
    head('v1', 'ServiceAccount', process, process),
    ...clusterRole(process, objectRules[process]),
    ...(ownRules[process] ? role(process, ownRules[process]) : []),
  ])
}

/**
 * The same rights in one namespace only, which `kubectl apply -n NAMESPACE -k knative/tenant` names. For the overlay
 * `namespaced`, whose processes have no rights in all of them.
 */
export function tenantRbac(): KubeObject[] {
  return processNames.flatMap((process) => {
    const name = clusterName(process)
    const metadata = { name, labels: labelsOf(process) }
    return [
      { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'Role', metadata, rules: objectRules[process] },
      { ...binding('Role', name, process), kind: 'RoleBinding', metadata },
    ]
  })
}

function clusterRole(process: ProcessName, rules: Rule[]): KubeObject[] {
  const metadata = { name: clusterName(process), labels: labelsOf(process) }
  return [
    { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', metadata, rules },
    { ...binding('ClusterRole', clusterName(process), process), kind: 'ClusterRoleBinding', metadata },
  ]
}

function role(process: ProcessName, rules: Rule[]): KubeObject[] {
  return [
    { ...head('rbac.authorization.k8s.io/v1', 'Role', process, process), rules },
    {
      ...head('rbac.authorization.k8s.io/v1', 'RoleBinding', process, process),
      ...binding('Role', process, process),
    },
  ]
}

function binding(kind: 'Role' | 'ClusterRole', name: string, process: ProcessName): KubeObject {
  return {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind, name },
    subjects: [{ kind: 'ServiceAccount', name: process, namespace }],
  }
}
