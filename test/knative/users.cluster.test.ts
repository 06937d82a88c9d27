import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, it } from 'vitest'
import { requesterGuard, userRoles } from '../../knative/users.ts'
import { systemClock } from '../../shared/clock.ts'
import { mutantKinds } from '../../shared/kinds/mutants.ts'
import type { KubeObject } from '../../shared/kinds/object.ts'
import { type KubeClient, kubeClient } from '../../shared/kube/client.ts'
import { realCluster } from '../control-plane/cluster.ts'
import { mutant } from '../support/builders.ts'
import { installCrds } from '../support/crds.ts'
import { eventually } from '../support/eventually.ts'

/** What knative/users.ts gives to people and asks of them, tried on a real API server. */

let namespace: string
beforeAll(async () => {
  await installCrds(realCluster.client())
  namespace = await realCluster.newNamespace()
})

async function apply(objects: object[]): Promise<void> {
  const list = { apiVersion: 'v1', kind: 'List', items: objects }
  const { stderr, code } = await realCluster.kubectl(
    ['apply', '--server-side', '--validate=strict', '-f', '-'],
    JSON.stringify(list),
  )
  expect({ stderr, code }).toEqual({ stderr: '', code: 0 })
}

async function kubectl(...args: string[]): Promise<void> {
  const { stderr, code } = await realCluster.kubectl(args)
  expect({ stderr, code }).toEqual({ stderr: '', code: 0 })
}

/** A client as a new service account that is bound to a role of this namespace. */
async function user(name: string, role: string): Promise<KubeClient> {
  const token = await realCluster.tokenFor(namespace, name)
  await kubectl('create', 'rolebinding', name, '-n', namespace, role, `--serviceaccount=${namespace}:${name}`)
  return kubeClient({ transport: realCluster.transport(token), clock: systemClock, userAgent: 'test' })
}

describe.each(mutantKinds.map((kind) => [kind.kind, kind] as const))('a %s', (_, kind) => {
  const object = (name: string) => mutant(kind, name).with('red', 1).in(namespace).object()

  it('is seen with the role view, and changed with the role edit', async () => {
    await apply(userRoles())
    const viewer = await user(`viewer-${kind.plural}`, '--clusterrole=view')
    const editor = await user(`editor-${kind.plural}`, '--clusterrole=edit')
    // The controller manager adds the rules to the built-in roles in its own time.
    await eventually(() => editor.create(kind, object('roles')))
    await eventually(() => viewer.get(kind, { namespace, name: 'roles' }))
    await expect(viewer.create(kind, object('other'))).rejects.toMatchObject({ code: 403 })
    await editor.delete(kind, { namespace, name: 'roles' })
  })

  it('is written only by who may create Deployments, where the guard is on', async () => {
    const plural = `${kind.plural}.${kind.group}`
    const names = { weak: `weak-${kind.plural}`, strong: `strong-${kind.plural}` }
    const verbs = '--verb=get,create,update,delete'
    await kubectl('create', 'role', names.weak, '-n', namespace, verbs, `--resource=${plural}`)
    await kubectl(
      'create',
      'role',
      names.strong,
      '-n',
      namespace,
      verbs,
      `--resource=${plural},deployments.apps`,
    )
    const weak = await user(names.weak, `--role=${names.weak}`)
    const strong = await user(names.strong, `--role=${names.strong}`)
    await apply(requesterGuard().map(hereOnly))
    // A policy takes effect some time after it is written.
    await eventually(async () => {
      const code = await weak.create(kind, object('probe')).then(
        () => 201,
        (error: { code?: number }) => error.code,
      )
      if (code === 403) return
      await weak.delete(kind, { namespace, name: 'probe' })
      throw new Error('The guard is not on yet')
    })

    await expect(weak.create(kind, object('shop'))).rejects.toThrow(/Only who may create Deployments/)
    const made = await strong.create(kind, object('shop'))
    const relabelled = { ...made, metadata: { ...made.metadata, labels: { team: 'a' } } }
    const live = await weak.replace(kind, relabelled)
    await expect(
      weak.replace(kind, { ...live, spec: mutant(kind, 'shop').with('blue', 2).object().spec }),
    ).rejects.toThrow(/Only who may create Deployments/)
    await weak.delete(kind, { namespace, name: 'shop' })
  })
})

describe('the folder of the guard', () => {
  it('passes server-side dry run as it stands', async () => {
    const folder = fileURLToPath(new URL('../../knative/guard', import.meta.url))
    await kubectl('apply', '--server-side', '--dry-run=server', '--validate=strict', '-k', folder)
  })
})

/** The tests beside this one use the same server. */
function hereOnly(object: KubeObject): KubeObject {
  if (object.kind !== 'ValidatingAdmissionPolicyBinding') return object
  const namespaceSelector = { matchLabels: { 'kubernetes.io/metadata.name': namespace } }
  return { ...object, spec: { ...(object.spec as object), matchResources: { namespaceSelector } } }
}
