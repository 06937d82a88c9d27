import { type Clock, withTimeout } from '../../clock.ts'
import { mutantKindOf } from '../../kinds/mutants.ts'
import {
  apiVersionOf,
  customResourceDefinitions,
  isObject,
  type KubeObject,
  namespaces,
  type Resource,
} from '../../kinds/object.ts'
import type { KubeClient } from '../../kube/client.ts'

/** Not the operator's own manager: what the user applied stays told apart from what was reconciled. */
const fieldManager = 'mutantops-install'
const establishedWithinMs = 30_000
const pollMs = 50

/**
 * Applies namespaces and CustomResourceDefinitions (server-side, with force) and waits until the CRDs are served.
 * Throws a KubeError when the API refuses one, a TimeoutError when one does not become Established in time.
 */
export async function install(client: KubeClient, objects: KubeObject[], clock: Clock): Promise<void> {
  await Promise.all(
    objects.map((object) => client.apply(resourceOf(object), object, { fieldManager, force: true })),
  )
  const definitions = objects.filter(({ kind }) => kind === customResourceDefinitions.kind)
  await Promise.all(definitions.map((definition) => untilEstablished(client, definition, clock)))
}

/**
 * Applies a sample in `namespace`, unless it names one itself or is there already: what the user has made of it stays.
 * As kubectl's own manager, so that a `kubectl apply --server-side` of the user's meets no conflict.
 */
export async function applySample(
  client: KubeClient,
  sample: KubeObject,
  namespace: string,
): Promise<{ namespace: string; wasThere: boolean }> {
  const kind = mutantKindOf({ apiVersion: sample.apiVersion ?? '', kind: sample.kind ?? '' })
  if (!kind) throw new Error(`A sample is a ${sample.kind}, which is none of ours`)
  const metadata = { namespace, ...sample.metadata }
  const target = { namespace: metadata.namespace, name: metadata.name ?? '' }
  const wasThere = (await client.getMetadata(kind, target)) !== undefined
  if (!wasThere) await client.apply(kind, { ...sample, metadata }, { fieldManager: 'kubectl' })
  return { namespace: metadata.namespace, wasThere }
}

function resourceOf(object: KubeObject): Resource {
  const found = [namespaces, customResourceDefinitions].find(
    (resource) => resource.kind === object.kind && apiVersionOf(resource) === object.apiVersion,
  )
  if (!found) throw new Error(`Cannot install a ${object.apiVersion} ${object.kind}`)
  return found
}

async function untilEstablished(client: KubeClient, definition: KubeObject, clock: Clock): Promise<void> {
  const name = definition.metadata?.name ?? ''
  await withTimeout(clock, establishedWithinMs, `Establishing ${name}`, async (signal) => {
    while (!isEstablished(await client.get(customResourceDefinitions, { name }, { signal })))
      await clock.sleep(pollMs, signal)
  })
}

function isEstablished(definition: KubeObject | undefined): boolean {
  const status = definition?.status
  const conditions = isObject(status) && Array.isArray(status.conditions) ? status.conditions : []
  return conditions.some((condition) => condition.type === 'Established' && condition.status === 'True')
}
