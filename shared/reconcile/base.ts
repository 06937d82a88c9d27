import { isDns1123Subdomain } from '../kinds/mutants.ts'
import { apiVersionOf, deployments, isObject, type KubeObject } from '../kinds/object.ts'
import { isEmptySelector, mismatchOf } from './selector.ts'
import { isDeeperThan, mapIn, withoutNulls } from './values.ts'

/** The Deployment in an object's spec: what of it is used, and what is wrong with it. */

export interface Base {
  deployment: KubeObject
  /** The beginning of the children's names. */
  name: string
  /** What is wrong, for people; then nothing may be applied or pruned. */
  problem?: string
}

const defaultName = 'mutant'
/** A Deployment is some fifteen deep; what is far deeper is no Deployment and could exhaust the stack. */
const depthMax = 100

/** Set by the server or by us, never by a base: `kubectl get -o yaml` puts them into what people paste. */
const serverFields = [
  'ownerReferences',
  'uid',
  'resourceVersion',
  'creationTimestamp',
  'deletionTimestamp',
  'deletionGracePeriodSeconds',
  'managedFields',
  'generation',
  'selfLink',
]

/** The Deployment controller writes this on every Deployment: applying another value would be a fight without end. */
const revisionAnnotation = 'deployment.kubernetes.io/revision'

/** Reads the base out of `spec.deployment`, whatever stands there. Never throws. */
export function baseOf(raw: unknown): Base {
  if (!isObject(raw)) return broken('spec.deployment is missing')
  if (isDeeperThan(depthMax, raw)) return broken(`spec.deployment is nested more than ${depthMax} deep`)
  const deployment = sanitised(withoutNulls(raw) as KubeObject)
  const name = mapIn(deployment, 'metadata').name ?? defaultName
  const base = { deployment, name: typeof name === 'string' && name !== '' ? name : defaultName }
  const problem = problemOf(deployment, name)
  return problem === undefined ? base : { ...base, problem: `spec.deployment ${problem}` }
}

function broken(problem: string): Base {
  return { deployment: {}, name: defaultName, problem }
}

function sanitised({ status: _, ...deployment }: KubeObject): KubeObject {
  if (!isObject(deployment.metadata)) return deployment
  const metadata: Record<string, unknown> = { ...deployment.metadata }
  for (const field of serverFields) delete metadata[field]
  if (isObject(metadata.annotations)) {
    const { [revisionAnnotation]: __, ...annotations } = metadata.annotations
    metadata.annotations = annotations
  }
  return { ...deployment, metadata }
}

/** Spec section 2, "Base validation", in words that follow "spec.deployment". */
function problemOf(deployment: KubeObject, name: unknown): string | undefined {
  const { apiVersion, kind, metadata } = deployment
  if (apiVersion !== undefined && apiVersion !== apiVersionOf(deployments))
    return `has apiVersion ${shown(apiVersion)}; it must be apps/v1`
  if (kind !== undefined && kind !== deployments.kind) return `has kind ${shown(kind)}; it must be Deployment`
  if (metadata !== undefined && !isObject(metadata)) return 'has a metadata that is not a map'
  if (name !== '' && (typeof name !== 'string' || !isDns1123Subdomain(name)))
    return `has metadata.name ${shown(name)}, which is no name for a Deployment`
  for (const field of ['labels', 'annotations'] as const)
    if (metadata?.[field] !== undefined && !isObject(metadata[field]))
      return `has metadata.${field} that are not a map`
  return selectorProblem(deployment) ?? containersProblem(deployment)
}

function selectorProblem(deployment: KubeObject): string | undefined {
  const spec = mapIn(deployment, 'spec')
  if (!isObject(spec.selector) || isEmptySelector(spec.selector)) return 'has no spec.selector'
  const mismatch = mismatchOf(spec.selector, mapIn(mapIn(mapIn(spec, 'template'), 'metadata'), 'labels'))
  return mismatch && `has a spec.selector that does not match its template's labels: it ${mismatch}`
}

function containersProblem(deployment: KubeObject): string | undefined {
  const { containers } = mapIn(mapIn(mapIn(deployment, 'spec'), 'template'), 'spec')
  if (!Array.isArray(containers) || containers.length === 0) return 'has no containers'
  for (const [index, container] of containers.entries())
    for (const field of ['name', 'image'] as const) {
      const value = isObject(container) ? container[field] : undefined
      if (typeof value !== 'string' || value === '')
        return `has a container (number ${index + 1}) without ${field}`
    }
  return undefined
}

function shown(value: unknown): string {
  return JSON.stringify(value).slice(0, 100)
}
