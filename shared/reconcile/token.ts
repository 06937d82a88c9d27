import { randomBytes } from 'node:crypto'
import { fieldManager, isDns1123Subdomain, type MutantStatus } from '../kinds/mutants.ts'
import {
  controllerOf,
  type KubeObject,
  type OwnerReference,
  type StoredObject,
  secrets,
} from '../kinds/object.ts'
import type { CallOptions, KubeClient } from '../kube/client.ts'
import { isConflict, isKubeError } from '../kube/errors.ts'
import { messageLengthMax } from './child-state.ts'
import { shortened } from './values.ts'

/** The token Secret of a Mutation (spec section 2, "Secret"). */

export interface TokenFinding {
  /** The Secret's name, once it is surely ours. */
  secret?: string
  problem?: string
  /** The Secret of a former object of the same name is there still: it will be collected, so try again. */
  isLeaving?: boolean
  created?: boolean
}

const tokenBytes = 32

/**
 * Makes the Secret once; what is there and ours is never rewritten, so the token stays. Known from the status it costs
 * one read of its metadata; unknown, it is created at once. Throws what the client throws, but for what is wrong with
 * the Secret itself. The token goes nowhere but into the request.
 */
export async function ensureToken(
  client: KubeClient,
  parent: StoredObject,
  owner: OwnerReference,
  call: CallOptions,
): Promise<TokenFinding> {
  const { namespace } = parent.metadata
  const name = `${parent.metadata.name}-token`
  if (!isDns1123Subdomain(name))
    return { problem: `The Secret for the token would be called "${name}", which is too long` }
  if ((parent.status as MutantStatus | undefined)?.secret === name) {
    const known = await client.getMetadata(secrets, { namespace, name }, call)
    if (known) return findingOf(known, owner)
  }
  try {
    await client.create(secrets, tokenSecret(name, namespace ?? '', owner), { ...call, fieldManager })
    return { secret: name, created: true }
  } catch (error) {
    if (isKubeError(error) && error.code === 422)
      return {
        problem: `The Secret "${name}" was refused: ${shortened(error.status?.message ?? '', messageLengthMax)}`,
      }
    if (!isConflict(error)) throw error
    const known = await client.getMetadata(secrets, { namespace, name }, call)
    // Gone between the two: who took the name has let go of it.
    return known ? findingOf(known, owner) : { problem: leavingMessage(name), isLeaving: true }
  }
}

function findingOf(known: KubeObject, owner: OwnerReference): TokenFinding {
  const name = known.metadata?.name ?? ''
  const controller = controllerOf(known)
  const isOurs = controller?.uid === owner.uid
  if (isOurs && !known.metadata?.deletionTimestamp) return { secret: name }
  if (isOurs || (controller?.kind === owner.kind && controller.name === owner.name))
    return { problem: leavingMessage(name), isLeaving: true }
  const whose = controller
    ? `is controlled by ${controller.kind} "${controller.name}"`
    : 'was not made for this object'
  return { problem: `The Secret "${name}" ${whose}, so it is left alone: delete it to have one made` }
}

const leavingMessage = (name: string) => `The former Secret "${name}" is being deleted; a new one follows`

function tokenSecret(name: string, namespace: string, owner: OwnerReference): KubeObject {
  const token = randomBytes(tokenBytes).toString('base64url')
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name, namespace, ownerReferences: [owner] },
    type: 'Opaque',
    data: { token: Buffer.from(token).toString('base64') },
  }
}
