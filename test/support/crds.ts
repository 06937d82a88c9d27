import { customResourceDefinitions } from '../../knative/crds.ts'
import { systemClock, withTimeout } from '../../shared/clock.ts'
import { customResourceDefinitions as definitions, type KubeObject } from '../../shared/kinds/object.ts'
import type { KubeClient } from '../../shared/kube/client.ts'

const establishedTimeoutMs = 20_000
const pollMs = 50

/** Applies both CRDs and waits until the server serves them. May be called any number of times, by anybody. */
export async function installCrds(client: KubeClient): Promise<void> {
  await Promise.all(customResourceDefinitions().map((definition) => installCrd(client, definition)))
}

/** Applies one CRD and waits until it is Established. */
export async function installCrd(client: KubeClient, definition: KubeObject): Promise<void> {
  const name = definition.metadata?.name ?? ''
  await client.apply(definitions, definition, { fieldManager: 'test', force: true })
  await withTimeout(systemClock, establishedTimeoutMs, `establishing ${name}`, async (signal) => {
    while (!isEstablished(await client.get(definitions, { name }, { signal })))
      await systemClock.sleep(pollMs, signal)
  })
}

function isEstablished(definition: KubeObject | undefined): boolean {
  const status = definition?.status as { conditions?: { type: string; status: string }[] } | undefined
  return status?.conditions?.some((c) => c.type === 'Established' && c.status === 'True') === true
}
