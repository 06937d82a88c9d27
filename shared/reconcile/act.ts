import { fieldManager, handoffManager } from '../kinds/mutants.ts'
import { deployments, type KubeObject, type StoredObject } from '../kinds/object.ts'
import type { CallOptions, JsonPatchOperation, KubeClient } from '../kube/client.ts'
import { isConflict, isKubeError, isNotFound, isServerTrouble, type KubeError } from '../kube/errors.ts'
import type { Desired, DesiredVariant } from './desired.ts'
import {
  type Observed,
  type PlanSettings,
  planVariant,
  refusedAt,
  type Step,
  type VariantPlan,
} from './plan.ts'

/** Carrying out what was planned for the children, one request after the other. */

/** Why a pass must begin anew, or has nothing to do here. */
export type Stop = 'raced' | 'namespace gone'

export interface Act {
  client: KubeClient
  desired: Desired
  settings: PlanSettings
  call: CallOptions
  /** Told of each write that was made: `apply Deployment shop/web-red`. */
  wrote(line: string): void
  /** The world has changed under this pass. */
  stop(why: Stop): void
  /** Trouble with the API server, not with what was sent. */
  trouble(error: KubeError): void
}

/** From "taken over" to "applied" it is four; more means that somebody else is at work on it. */
const stepsMax = 6

/**
 * A resourceVersion that no living object has. Apply does not look at it when the object is missing (201) and refuses
 * a stale one when it lives (409), in the very transaction: an apply that only creates. Without it an apply without
 * force would take a Deployment whose fields happen to be equal to ours (tried on 1.36).
 */
const neverTheVersion = '1'

/** Brings one variant to what it should be, step by step; answers where that ended. Throws only when called off. */
export async function bringAbout(act: Act, first: VariantPlan): Promise<VariantPlan> {
  const { desired, settings } = act
  const { variant } = first
  let plan = first
  for (let steps = 0; plan.step; steps++) {
    if (steps === stepsMax) return raced(act, plan)
    const { step } = plan
    try {
      const observed = await take(act, step, variant)
      if (observed === undefined) return raced(act, plan)
      // What was applied is as wanted, whatever the server made of it: planning it again could apply for ever.
      if (typeof observed !== 'string' && (step.do === 'apply' || step.do === 'create'))
        return { variant, child: observed }
      plan = planVariant(desired, variant, observed, settings)
    } catch (error) {
      return await failed(act, plan, error)
    }
  }
  return plan
}

/** Takes one step. Answers what is known of the child then, or undefined when it is another than the plan's. */
async function take(act: Act, step: Step, variant: DesiredVariant): Promise<Observed | undefined> {
  switch (step.do) {
    case 'create':
      return create(act, step.object)
    case 'look':
      return (await act.client.get(deployments, targetOf(act, variant), act.call)) ?? 'unlisted'
    case 'take over':
      return takeOver(act, step.child, step.managedFields)
    case 'hand off':
      return apply(act, step.object, 'hand off', { fieldManager: handoffManager })
    case 'apply':
      return apply(act, step.object, 'apply', { fieldManager, force: true })
  }
}

const targetOf = ({ desired }: Act, { name }: DesiredVariant) => ({ namespace: desired.namespace, name })

async function create(act: Act, object: KubeObject): Promise<Observed> {
  const only = { ...object, metadata: { ...object.metadata, resourceVersion: neverTheVersion } }
  try {
    const made = await act.client.apply(deployments, only, { ...act.call, fieldManager })
    act.wrote(lineOf('apply', object))
    return made.object
  } catch (error) {
    if (isConflict(error)) return 'taken'
    throw error
  }
}

async function apply(
  act: Act,
  object: KubeObject,
  verb: string,
  options: { fieldManager: string; force?: boolean },
): Promise<Observed | undefined> {
  try {
    const answer = await act.client.apply(deployments, object, { ...act.call, ...options })
    act.wrote(lineOf(verb, object))
    return answer.object
  } catch (error) {
    if (isConflict(error)) return undefined
    throw error
  }
}

async function takeOver(
  act: Act,
  child: StoredObject,
  managedFields: unknown[],
): Promise<Observed | undefined> {
  const { namespace, name, resourceVersion } = child.metadata
  const operations: JsonPatchOperation[] = [
    { op: 'replace', path: '/metadata/resourceVersion', value: resourceVersion },
    { op: 'add', path: '/metadata/managedFields', value: managedFields },
  ]
  try {
    const taken = await act.client.patchJson(deployments, { namespace, name }, operations, {
      ...act.call,
      fieldManager,
    })
    act.wrote(lineOf('take over', child))
    return taken
  } catch (error) {
    if (isConflict(error) || isNotFound(error)) return undefined
    throw error
  }
}

/** Deletes a child that no variant wants; another one that has got its name meanwhile stays. */
export async function prune(act: Act, child: StoredObject): Promise<void> {
  const { namespace, name, uid } = child.metadata
  try {
    const existed = await act.client.delete(
      deployments,
      { namespace, name },
      { ...act.call, uid, propagation: 'Background' },
    )
    if (existed) act.wrote(lineOf('delete', child))
  } catch (error) {
    if (!isKubeError(error)) throw error
    if (!isConflict(error)) act.trouble(error)
  }
}

function lineOf(verb: string, { metadata }: KubeObject): string {
  return `${verb} Deployment ${metadata?.namespace}/${metadata?.name}`
}

function raced(act: Act, { variant, child }: VariantPlan): VariantPlan {
  act.stop('raced')
  return { variant, ...(child && { child }) }
}

async function failed(act: Act, plan: VariantPlan, error: unknown): Promise<VariantPlan> {
  if (!isKubeError(error)) throw error
  const { step: _, ...kept } = plan
  if (isNamespaceGone(error)) {
    act.stop('namespace gone')
    return kept
  }
  if (isRefusal(error)) {
    if (plan.child && !(await isStill(act, plan.child))) return raced(act, plan)
    const message = `${refusedAt(plan)}${error.status?.message ?? error.message}`
    return { ...kept, verdict: { state: 'Failed', message } }
  }
  act.trouble(error)
  const message = 'The API server did not take it yet; it is tried again'
  return { ...kept, verdict: { state: 'Progressing', message } }
}

/**
 * Whether a child is the one that was planned for. The server checks the new object before it compares uids, so that a
 * change meant for a Deployment that is gone can be refused for what another one of its name is like.
 */
async function isStill(act: Act, { metadata: { namespace, name, uid } }: StoredObject): Promise<boolean> {
  const now = await act.client.getMetadata(deployments, { namespace, name }, act.call)
  return now?.metadata.uid === uid
}

/** Whether the API server refused the object itself, so that the same request would only be refused again. */
function isRefusal(error: KubeError): boolean {
  if (isServerTrouble(error)) return false
  return ![401, 404, 408, 409].includes(error.code)
}

/** A namespace that is being deleted takes nothing new (403); one that is gone is not found. */
export function isNamespaceGone(error: KubeError): boolean {
  const causes = error.status?.details?.causes ?? []
  if (error.code === 403) return causes.some(({ reason }) => reason === 'NamespaceTerminating')
  return error.code === 404 && error.status?.details?.kind === 'namespaces'
}
