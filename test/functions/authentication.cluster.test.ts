import { expect, it } from 'vitest'
import { authentication } from '../../functions/authentication.ts'
import { systemClock } from '../../shared/clock.ts'
import { kubeClient } from '../../shared/kube/client.ts'
import { createLog } from '../../shared/log.ts'
import { realCluster } from '../control-plane/cluster.ts'

const log = createLog({ name: 'test', level: 'silent' })

/** A token that the real API server signs, as Eventing asks it to for a Trigger's account. */
async function tokenFor(namespace: string, audience: string): Promise<string> {
  const path = `/api/v1/namespaces/${namespace}/serviceaccounts/trigger/token`
  const spec = { audiences: [audience], expirationSeconds: 600 }
  const { body } = await realCluster.client().request('POST', path, { body: { spec } })
  return (body as { status: { token: string } }).status.token
}

it("tokens are verified with the cluster's own keys, read as a service account without any role", async () => {
  const namespace = await realCluster.newNamespace()
  await realCluster.kubectl(['create', 'serviceaccount', 'trigger', '-n', namespace])
  await realCluster.kubectl(['create', 'serviceaccount', 'function', '-n', namespace])
  const transport = realCluster.transport(await realCluster.tokenFor(namespace, 'function'))
  const client = kubeClient({ transport, clock: systemClock, userAgent: 'test' })
  const check = await authentication({ client, clock: systemClock, log }, 'mutantops/mutation')

  const judge = async (audience: string) => check?.(`Bearer ${await tokenFor(namespace, audience)}`)
  expect(await judge('mutantops/mutation')).toBeUndefined()
  expect(await judge('mutantops/resync')).toMatchObject({ status: 401 })
  expect(await check?.(`Bearer ${realCluster.adminToken}`)).toMatchObject({ status: 401 })
})
