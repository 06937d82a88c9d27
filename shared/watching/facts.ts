import { hash } from 'node:crypto'
import { apiVersion, fieldManager, mutantKindOf } from '../kinds/mutants.ts'
import { controllerOf, type KubeObject, type ManagedFieldsEntry, type StoredObject } from '../kinds/object.ts'

/** What the watcher remembers of each object: enough to tell whether a change is worth an event, and hardly more. */

export interface OwnerFacts {
  uid: string
  resourceVersion: string
  /** A digest of all of the metadata that counts; a status write leaves it as it is. */
  state: string
}

export interface ChildFacts {
  uid: string
  resourceVersion: string
  /** Which of our objects controls it: `Mutation/web`, in the child's own namespace. */
  owner: string | undefined
  /** Digests of the managed fields of our own applies, and of everybody else's (the status's among them). */
  ours: string
  others: string
  isTerminating: boolean
}

type Metadata = Pick<StoredObject, 'metadata'> & KubeObject

/** The facts of a Mutation or a MutantDeployment. */
export function ownerFacts({ metadata }: Metadata): OwnerFacts {
  const {
    uid,
    resourceVersion,
    generation,
    labels,
    annotations,
    finalizers,
    deletionTimestamp,
    ownerReferences,
  } = metadata
  return {
    uid,
    resourceVersion,
    state: digestOf([generation, labels, annotations, finalizers, deletionTimestamp, ownerReferences]),
  }
}

/** The facts of a Deployment that carries the owner label. */
export function childFacts(object: Metadata): ChildFacts {
  const { uid, resourceVersion, managedFields = [], deletionTimestamp } = object.metadata
  const controller = controllerOf(object)
  const isOurs = controller?.apiVersion === apiVersion && mutantKindOf(controller) !== undefined
  return {
    uid,
    resourceVersion,
    owner: isOurs ? `${controller.kind}/${controller.name}` : undefined,
    ours: digestOf(managedFields.filter(isOwnApply)),
    others: digestOf(managedFields.filter((entry) => !isOwnApply(entry))),
    isTerminating: deletionTimestamp !== undefined,
  }
}

function isOwnApply({ manager, operation, subresource }: ManagedFieldsEntry): boolean {
  return manager === fieldManager && operation === 'Apply' && !subresource
}

/** Twelve characters keep 72 bits: enough for any cluster, and short enough to be a string of its own in memory. */
function digestOf(value: unknown): string {
  return hash('sha1', JSON.stringify(value), 'base64').slice(0, 12)
}

/** The digest of no managed fields at all. */
export const nobody = digestOf([])
