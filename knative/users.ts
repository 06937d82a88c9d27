import { mutantKinds } from '../shared/kinds/mutants.ts'
import type { KubeObject } from '../shared/kinds/object.ts'
import { labelsOf } from './names.ts'

/** What is for the people who use the operator: roles that add to Kubernetes' own, and the guard on their requests. */

const groups = [...new Set(mutantKinds.map(({ group }) => group))]
const resources = mutantKinds.map(({ plural }) => plural)
const guardName = 'mutants-need-deployments.mutantops.neiam.org'

/**
 * Who has the built-in role view in a namespace sees our objects there. Who has edit or admin changes them too; both may
 * make Deployments anyway.
 */
export function userRoles(): KubeObject[] {
  return [
    aggregated('mutantops-view', ['view'], ['get', 'list', 'watch']),
    aggregated(
      'mutantops-edit',
      ['edit', 'admin'],
      ['create', 'update', 'patch', 'delete', 'deletecollection'],
    ),
  ]
}

function aggregated(name: string, to: string[], verbs: string[]): KubeObject {
  const aggregation = to.map((role) => [`rbac.authorization.k8s.io/aggregate-to-${role}`, 'true'])
  return {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRole',
    metadata: { name, labels: { ...labelsOf(), ...Object.fromEntries(aggregation) } },
    rules: [{ apiGroups: groups, resources, verbs }],
  }
}

/**
 * Optional: the operator makes Deployments for whoever may write our objects, so this asks that the requester may create
 * Deployments in that namespace. Only a new or changed spec is asked about: the garbage collector, say, takes finalizers
 * off and may create nothing.
 */
export function requesterGuard(): KubeObject[] {
  const api = 'admissionregistration.k8s.io/v1'
  const metadata = { name: guardName, labels: labelsOf() }
  const policy = {
    apiVersion: api,
    kind: 'ValidatingAdmissionPolicy',
    metadata,
    spec: {
      failurePolicy: 'Fail',
      matchConstraints: {
        resourceRules: [
          { apiGroups: groups, apiVersions: ['*'], operations: ['CREATE', 'UPDATE'], resources },
        ],
      },
      matchConditions: [
        {
          name: 'the-spec-is-new-or-changed',
          expression: "request.operation == 'CREATE' || object.spec != oldObject.spec",
        },
      ],
      validations: [
        {
          expression:
            "authorizer.group('apps').resource('deployments').namespace(request.namespace).check('create').allowed()",
          message: 'Only who may create Deployments in this namespace may have the operator create them',
          reason: 'Forbidden',
        },
      ],
    },
  }
  const binding = {
    apiVersion: api,
    kind: 'ValidatingAdmissionPolicyBinding',
    metadata,
    spec: { policyName: guardName, validationActions: ['Deny'] },
  }
  return [policy, binding]
}
