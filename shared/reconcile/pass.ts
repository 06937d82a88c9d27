import type { Clock } from '../clock.ts'
import {
  fieldManager,
  type MutantKind,
  type MutantStatus,
  ownerLabel,
  ownerLabelValue,
  pausedAnnotation,
} from '../kinds/mutants.ts'
import { deployments, type ObjectMeta, type Ref, type StoredObject } from '../kinds/object.ts'
import type { CallOptions, KubeClient } from '../kube/client.ts'
import { isConflict, isKubeError, isNotFound, KubeError } from '../kube/errors.ts'
import type { Logger } from '../log.ts'
import { type Act, bringAbout, isNamespaceGone, prune, type Stop } from './act.ts'
import type { AdoptionSettings } from './adoption.ts'
import { concurrently } from './concurrently.ts'
import { type Desired, desiredOf } from './desired.ts'
import { childrenToPrune, namesOutOfSight, planAll, type VariantPlan } from './plan.ts'
import { eventsFor, type ObjectEvent } from './problems.ts'
import { isSameStatus, statesByLabel, statusOf, variantStatusOf } from './status.ts'
import { ensureToken, type TokenFinding } from './token.ts'

/** One look at one object: read, plan, act, report, and prove that the object has not changed meanwhile. */

export interface PassContext extends AdoptionSettings {
  client: KubeClient
  clock: Clock
  log: Logger
  signal: AbortSignal
  /** Why the object is looked at: who was refused is tried again, and no Kubernetes Event is told, only at a resync. */
  cause: 'change' | 'resync'
  record(event: ObjectEvent, call: CallOptions): Promise<void>
}

export interface PassResult {
  /** `raced`: the world changed under the pass, so begin anew. `settled`: what could be done is done. */
  end: 'settled' | 'raced'
  ref?: Ref
  summary?: string
  /** What is wrong with the object. */
  problem?: string
  /** Trouble with the API server, in the order it came; then try again later. */
  troubles: KubeError[]
}

/** Of one object at a time; the API server has others to serve. */
const childrenAtOnce = 4

/**
 * Runs one pass. Throws what a failed read throws.
 *
 * The children are listed *before* the object is read, so that the list never shows a child of a newer spec than the
 * one read: it would be pruned.
 */
export async function runPass(
  kind: MutantKind,
  target: { namespace: string; name: string },
  context: PassContext,
  wrote: (line: string) => void,
): Promise<PassResult> {
  const call = { signal: context.signal }
  const labelSelector = `${ownerLabel}=${ownerLabelValue(target.name)}`
  const children = await context.client.list(deployments, {
    namespace: target.namespace,
    labelSelector,
    ...call,
  })
  const parent = await context.client.get(kind, target, call)
  const nothing: PassResult = { end: 'settled', troubles: [] }
  // What a deleted object owns, the garbage collector removes.
  if (!parent || parent.metadata.deletionTimestamp) return nothing
  const { namespace, name, uid } = parent.metadata
  if (!namespace || !uid) return { ...nothing, problem: 'The object has no namespace or no uid' }

  const run = newRun(kind, parent, context, wrote)
  const outcomes = await actOn(run, children.items)
  if (run.stopped === 'namespace gone') return nothing
  if (run.stopped === 'raced') return { ...nothing, end: 'raced', troubles: run.troubles }

  const status = statusOf({
    parent,
    desired: run.desired,
    variants: outcomes.plans.map(variantStatusOf),
    secret: outcomes.token.secret,
    secretProblem: outcomes.token.problem,
    isSecretLeaving: outcomes.token.isLeaving,
    now: context.clock.now(),
  })
  const end = await settle(run, status)
  const problem = run.desired.problem ?? status.conditions?.find(({ type }) => type === 'Stalled')?.message
  return {
    end,
    ref: { apiVersion: parent.apiVersion ?? '', kind: kind.kind, namespace, name, uid },
    summary: status.summary ?? '',
    troubles: run.troubles,
    ...(problem !== undefined && { problem }),
  }
}

interface Run {
  kind: MutantKind
  parent: StoredObject
  desired: Desired
  context: PassContext
  act: Act
  call: CallOptions
  wrote(line: string): void
  /** How many writes this pass has made. */
  writes: number
  stopped?: Stop
  troubles: KubeError[]
}

function newRun(
  kind: MutantKind,
  parent: StoredObject,
  context: PassContext,
  wrote: (line: string) => void,
): Run {
  const { client, adoption, legacyManagers, clock } = context
  const call = { signal: context.signal }
  const desired = desiredOf(kind, parent)
  const tell = (line: string) => {
    run.writes++
    wrote(line)
  }
  const act: Act = {
    client,
    desired,
    call,
    settings: { adoption, legacyManagers, now: clock.now() },
    wrote: tell,
    stop: (why) => {
      run.stopped = run.stopped === 'namespace gone' ? run.stopped : why
    },
    trouble: (error) => run.troubles.push(error),
  }
  const run: Run = { kind, parent, desired, context, act, call, wrote: tell, writes: 0, troubles: [] }
  return run
}

/** Writes the children and the Secret, each apart from the others' failures; then what nobody wants is deleted. */
async function actOn(
  run: Run,
  children: StoredObject[],
): Promise<{ plans: VariantPlan[]; token: TokenFinding }> {
  const { desired, parent, act } = run
  const previous = parent.status as MutantStatus | undefined
  const first = planAll(desired, children, previous, {
    ...act.settings,
    generation: parent.metadata.generation ?? 0,
    isResync: run.context.cause === 'resync',
  })
  const [plans, token] = await Promise.all([
    concurrently(childrenAtOnce, first, (plan) => bringAbout(act, plan)),
    tokenOf(run),
  ])
  if (!run.stopped && !desired.paused && desired.problem === undefined) {
    const all = [...children, ...(await childrenOutOfSight(run, children))]
    const unwanted = childrenToPrune(desired, all, statesByLabel(plans.map(variantStatusOf)))
    await concurrently(childrenAtOnce, unwanted, (child) => prune(act, child))
  }
  return { plans, token }
}

async function childrenOutOfSight(run: Run, children: StoredObject[]): Promise<StoredObject[]> {
  const { desired, parent, context, call } = run
  const names = namesOutOfSight(desired, children, parent.status as MutantStatus | undefined)
  const found = await concurrently(childrenAtOnce, names, (name) =>
    context.client.get(deployments, { namespace: desired.namespace, name }, call),
  )
  return found.filter((child) => child !== undefined)
}

async function tokenOf(run: Run): Promise<TokenFinding> {
  const { kind, parent, desired, context, call } = run
  const known = (parent.status as MutantStatus | undefined)?.secret
  const asKnown: TokenFinding = known === undefined ? {} : { secret: known }
  if (!kind.hasSecret) return {}
  if (desired.paused) return asKnown
  try {
    const { created, ...token } = await ensureToken(context.client, parent, desired.owner, call)
    if (created) run.wrote(`create Secret ${parent.metadata.namespace}/${token.secret}`)
    if (token.isLeaving)
      run.troubles.push(new KubeError(token.problem ?? '', { code: 409, reason: 'Conflict' }))
    return token
  } catch (error) {
    if (!isKubeError(error)) throw error
    if (isNamespaceGone(error)) run.act.stop('namespace gone')
    else run.troubles.push(error)
    return asKnown
  }
}

/** Reports, and proves by the resourceVersion or by one more read that all this was done for the newest spec. */
async function settle(run: Run, status: MutantStatus): Promise<'settled' | 'raced'> {
  const before = run.parent.status as MutantStatus | undefined
  if (isSameStatus(before, status)) return run.writes > 0 ? prove(run) : 'settled'
  const { apiVersion = '', metadata } = run.parent
  const { name, namespace = '', uid, resourceVersion } = metadata
  const body = {
    apiVersion,
    kind: run.kind.kind,
    metadata: { name, namespace, uid, resourceVersion },
    status,
  }
  try {
    await run.context.client.replace(run.kind, body, { subresource: 'status', fieldManager, ...run.call })
    run.wrote(`report ${run.kind.kind} ${namespace}/${name}`)
  } catch (error) {
    if (isConflict(error)) return 'raced'
    if (!isKubeError(error)) throw error
    if (isNotFound(error)) await explainNotFound(run, error)
    else run.troubles.push(error)
    return 'settled'
  }
  await tell(run, before, status)
  return 'settled'
}

/** The same answer comes when the object is gone and when its definition has no status to write to. */
async function explainNotFound(
  { kind, parent, context, call, troubles }: Run,
  cause: KubeError,
): Promise<void> {
  const { namespace, name } = parent.metadata
  if (!(await context.client.getMetadata(kind, { namespace, name }, call))) return
  const definition = `${kind.plural}.${kind.group}`
  const message = `The CustomResourceDefinition ${definition} has no status subresource: apply the one of this version`
  troubles.push(new KubeError(message, { code: cause.code, reason: cause.reason, cause }))
}

async function prove({ kind, parent, context, call }: Run): Promise<'settled' | 'raced'> {
  const { namespace, name } = parent.metadata
  const now = await context.client.getMetadata(kind, { namespace, name }, call)
  return !now || isSameSpec(parent.metadata, now.metadata) ? 'settled' : 'raced'
}

/** Whether nothing of an object has changed that a pass looks at. Its status, others' labels and the like may have. */
function isSameSpec(before: ObjectMeta, after: ObjectMeta): boolean {
  const paused = ({ annotations }: ObjectMeta) => annotations?.[pausedAnnotation]
  return (
    before.uid === after.uid &&
    before.generation === after.generation &&
    before.deletionTimestamp === after.deletionTimestamp &&
    paused(before) === paused(after)
  )
}

/** Records what a person must see. A Kubernetes Event that gets lost is no reason to do the work again. */
async function tell(
  { kind, parent, context, call }: Run,
  before: MutantStatus | undefined,
  status: MutantStatus,
) {
  const { namespace, name, uid } = parent.metadata
  const ref: Ref = { apiVersion: parent.apiVersion ?? '', kind: kind.kind, name, uid }
  for (const event of eventsFor(namespace === undefined ? ref : { ...ref, namespace }, before, status)) {
    try {
      await context.record(context.cause === 'resync' ? { ...event, once: true } : event, call)
    } catch (error) {
      context.log.warn({ ref, reason: event.reason, err: error }, 'Kubernetes Event not recorded')
    }
  }
}
