import { isDns1123Label, isDns1123Subdomain, mutantKindOf, mutantKinds } from '../kinds/mutants.ts'
import { apiVersionOf, type Ref, type Resource } from '../kinds/object.ts'
import { attributeError } from './event.ts'

/** A subject taken apart: which object of which resource. */
export interface Subject {
  group: string
  version: string
  plural: string
  namespace: string
  name: string
}

/** `/apis/<group>/<version>/namespaces/…`; the core group's has no group part, as Knative's ApiServerSource sends it. */
const form = /^\/apis\/(?:([a-z0-9.-]+)\/)?(v[a-z0-9]+)\/namespaces\/([^/]+)\/([a-z0-9]+)\/([^/]+)$/

/**
 * Takes a subject apart. Throws an `UnreadableEvent` when it is not exactly of the form
 * `/apis/<group>/<version>/namespaces/<namespace>/<plural>/<name>` with names that Kubernetes allows, so that nothing
 * a stranger sends can bend the path of a request to the API.
 */
export function parseSubject(subject: string | undefined): Subject {
  if (subject === undefined || subject === '') throw attributeError('subject', 'is missing')
  const [, group = '', version = '', namespace = '', plural = '', name = ''] = form.exec(subject) ?? []
  if (!isDns1123Label(namespace) || !isDns1123Subdomain(name))
    throw attributeError('subject', 'is not the path of a namespaced object')
  return { group, version, plural, namespace, name }
}

/** Whether a subject names an object of that resource. */
export function isOf(subject: Subject, resource: Resource): boolean {
  return (
    subject.group === resource.group &&
    subject.version === resource.version &&
    subject.plural === resource.plural
  )
}

/** The subject (and partition key) of one of our objects. Throws a TypeError for a kind that is not ours. */
export function subjectOf(ref: Ref): string {
  const kind = mutantKindOf(ref)
  if (!kind || !ref.namespace) throw new TypeError(`No subject for a ${ref.kind} of ${ref.apiVersion}`)
  return `/apis/${apiVersionOf(kind)}/namespaces/${ref.namespace}/${kind.plural}/${ref.name}`
}

/** The ref of an object of ours that a subject names; undefined for another kind. */
export function refOfSubject(subject: Subject): (Ref & { namespace: string }) | undefined {
  const kind = mutantKinds.find((candidate) => isOf(subject, candidate))
  return (
    kind && {
      apiVersion: apiVersionOf(kind),
      kind: kind.kind,
      namespace: subject.namespace,
      name: subject.name,
    }
  )
}
