import type { MutantKind } from '../kinds/mutants.ts'
import { mutantKindOf, ownerLabel } from '../kinds/mutants.ts'
import { controllerOf, deployments, isObject, type KubeObject } from '../kinds/object.ts'
import { apiServerSourceType, objectTypes } from './envelope.ts'
import { attributeError, type CloudEvent } from './event.ts'
import { isOf, parseSubject, type Subject } from './subject.ts'

/**
 * What an event means for the function of one kind: the object to reconcile; `nothing` for an event that is none of
 * its business but not wrong; `foreign` for a kind that it does not handle.
 */
export type Target = { namespace: string; name: string } | 'nothing' | 'foreign'

const hints = new Set<string>([objectTypes.applied, objectTypes.deleted, objectTypes.resync])

/**
 * Finds the object that an event asks the function of `kind` to reconcile: our own events, and those of Knative's
 * ApiServerSource (in resource mode a child leads to its controller). Our own outcome events are `nothing`, or a
 * function whose Trigger lets everything through would run in a circle. Throws an `UnreadableEvent` for a malformed
 * subject, or one that contradicts the extension `kind`.
 */
export function targetOf(event: CloudEvent, kind: MutantKind): Target {
  if (event.type === objectTypes.reconciled) return 'nothing'
  const isSource = apiServerSourceType.test(event.type)
  if (!isSource && !hints.has(event.type)) return 'foreign'
  const subject = parseSubject(event.subject)
  if (isOf(subject, kind)) return named(event, kind, subject)
  if (isSource && isOf(subject, deployments)) return ownerOf(event, kind, subject)
  return 'foreign'
}

function named(event: CloudEvent, kind: MutantKind, { namespace, name }: Subject): Target {
  // A Trigger filters on the extension: if it says something else, the event came to the wrong function.
  if (event.extensions.kind !== undefined && event.extensions.kind !== kind.kind)
    throw attributeError('kind', 'does not match the subject')
  return { namespace, name }
}

/** The owner of a Deployment whose whole content an ApiServerSource in resource mode sends; a reference tells none. */
function ownerOf(event: CloudEvent, kind: MutantKind, { namespace }: Subject): Target {
  if (!isObject(event.data) || event.data.kind !== deployments.kind) return 'nothing'
  const child = event.data as KubeObject
  const controller = controllerOf(child)
  // A child whose owner reference was stripped still has the label.
  const name = controller ? controller.name : child.metadata?.labels?.[ownerLabel]
  if (controller && mutantKindOf(controller) !== kind) return 'nothing'
  return name === undefined ? 'nothing' : checked({ namespace, name })
}

/** The name came out of data: it must not bend a path any more than a subject may. */
function checked(target: { namespace: string; name: string }): Target {
  const { namespace, name } = parseSubject(`/apis/v1/namespaces/${target.namespace}/any/${target.name}`)
  return { namespace, name }
}
