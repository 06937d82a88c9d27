import { isObject, type KubeObject } from '../kinds/object.ts'

/**
 * Who may lead: the rules of the election as pure functions on plain values. The elector reads and writes the Lease
 * and asks these functions what an answer means and what to do next; a test explores all their runs.
 *
 * Flow of a round: read the Lease -> `saw` -> `decide` -> (`attempted`, PUT) -> `wrote` or `refused`.
 *
 * Guarantees, if all monotonic clocks run at the same rate: at no instant do two processes believe that they lead,
 * and the tasks of the last leader had their stop time before the next one can believe.
 * Why: belief ends `renewDeadline` after the last successful write was *sent*. Whoever takes over has held that very
 * record, unchanged, for `leaseDuration` (longer than `renewDeadline`) since it *received* it, and its write carries
 * the resourceVersion it saw, so that a renewal in between makes it fail.
 *
 * Limits: a virtual machine that is paused (its monotonic clock too) can believe too long; whoever empties, rewrites
 * or deletes the Lease by hand while another process starts can bring two leaders for up to one retry period.
 */

/** The election's three times, in seconds. Valid when {@link timingProblems} is empty. */
export interface Timing {
  /** How long a record must stay unchanged before others may take the Lease; written into it, so a whole number. */
  leaseDurationSeconds: number
  /** How long a holder believes after it sent its last successful write. */
  renewDeadlineSeconds: number
  /** How often a holder renews and the others look. */
  retryPeriodSeconds: number
}

export interface LeaseSettings extends Timing {
  namespace: string
  leaseName: string
  identity: string
}

/** A `coordination.k8s.io/v1` Lease. The fields of its spec are read with care: anybody may have written them. */
export interface Lease extends KubeObject {
  spec?: LeaseSpec
}

export interface LeaseSpec {
  holderIdentity?: string
  leaseDurationSeconds?: number
  acquireTime?: string
  renewTime?: string
  leaseTransitions?: number
  [field: string]: unknown
}

/** What one process knows. Times are this process's monotonic clock, in ms. */
export interface ElectionState {
  /** The Lease as last read or written; undefined when it did not exist. */
  lease: Lease | undefined
  /** The record of another holder, and since when this process has seen it unchanged. */
  rival: { record: string; sinceMs: number; durationMs: number } | undefined
  /**
   * The acquisition that this process tried last. The acquire time marks a record as this process's own, so that two
   * processes that were given the same identity by mistake do not take each other's record for theirs.
   */
  attempt: { version: string; acquireTime: string } | undefined
  /** This process leads before this moment and not from it on. */
  beliefUntilMs: number
}

/** What to do next: write `lease` (PUT), or look again, at the latest after `waitMs`. */
export type Step = { kind: 'create' | 'acquire' | 'renew'; lease: Lease } | { kind: 'wait'; waitMs: number }

/** A longer duration in somebody's record is taken for this one, in ms. */
export const leaseDurationMaxMs = 3600_000
/** No stop of a task may take longer, in ms. */
const stopTimeoutMaxMs = 10_000
/** The greatest `leaseTransitions` that the API takes. */
const transitionsMax = 2 ** 31 - 1
/** The resourceVersion of a Lease that is to be created: with it a lost race is a 409, without it a 422. */
const versionOfAbsent = '1'

export const initialElection: ElectionState = {
  lease: undefined,
  rival: undefined,
  attempt: undefined,
  beliefUntilMs: Number.NEGATIVE_INFINITY,
}

/** What is wrong with the times, each as a sentence; empty when they are valid. */
export function timingProblems(timing: Timing): string[] {
  const { leaseDurationSeconds: lease, renewDeadlineSeconds: renew, retryPeriodSeconds: retry } = timing
  const problems: string[] = []
  if (!(retry > 0)) problems.push('retryPeriodSeconds must be greater than 0')
  if (!(renew > 1.2 * retry))
    problems.push('renewDeadlineSeconds must be greater than 1.2 × retryPeriodSeconds')
  if (!(lease > renew)) problems.push('leaseDurationSeconds must be greater than renewDeadlineSeconds')
  if (!(lease * 1000 <= leaseDurationMaxMs))
    problems.push('leaseDurationSeconds must not be greater than 3600')
  if (!Number.isInteger(lease)) problems.push('leaseDurationSeconds must be a whole number')
  return problems
}

/** How long a task may take to stop after belief has ended, in ms: over before another can lead, with a margin. */
export function stopTimeoutMs(timing: Timing): number {
  const gapMs = (timing.leaseDurationSeconds - timing.renewDeadlineSeconds) * 1000
  return Math.min(stopTimeoutMaxMs, gapMs - gapMs / 5)
}

/**
 * How long to wait between two looks, in ms: up to 20 % less than the retry period and never more, so that a takeover
 * and a handover stay within one. `random` is from 0 to 1.
 */
export function retryWaitMs(timing: Timing, random: number): number {
  return timing.retryPeriodSeconds * 1000 * (0.8 + 0.15 * random)
}

/** Whether the state means that this process leads at `nowMs`. */
export function isLeading(state: ElectionState, nowMs: number): boolean {
  return nowMs < state.beliefUntilMs
}

/** The state after the Lease was read (undefined: there is none); `nowMs` is when the answer was received. */
export function saw(
  state: ElectionState,
  lease: Lease | undefined,
  nowMs: number,
  settings: LeaseSettings,
): ElectionState {
  const rival = rivalAfter(state, lease, nowMs, settings)
  const ours = lease !== undefined && isOurs(state, lease, settings)
  return { ...state, lease, rival, beliefUntilMs: ours ? state.beliefUntilMs : Number.NEGATIVE_INFINITY }
}

function rivalAfter(
  state: ElectionState,
  lease: Lease | undefined,
  nowMs: number,
  settings: LeaseSettings,
): ElectionState['rival'] {
  // A holder whose Lease was deleted under it may still believe: its time runs on.
  if (lease === undefined) return state.rival
  if (holderOf(lease) === '' || isOurs(state, lease, settings)) return undefined
  const record = recordOf(lease)
  if (state.rival?.record === record) return state.rival
  return { record, sinceMs: nowMs, durationMs: durationMsOf(lease, settings) }
}

/**
 * What to do about the Lease as last seen. `nowMs` is the monotonic clock; `wallNow` only stamps what is written and
 * is never compared with anybody's stamp.
 */
export function decide(state: ElectionState, settings: LeaseSettings, nowMs: number, wallNow: Date): Step {
  const { lease, rival } = state
  if (lease && isOurs(state, lease, settings))
    return { kind: 'renew', lease: renewed(lease, settings, wallNow) }
  const leftMs = rival ? rival.sinceMs + rival.durationMs - nowMs : 0
  if (leftMs > 0) return { kind: 'wait', waitMs: leftMs }
  const acquireTime = acquireTimeFor(state, wallNow)
  if (!lease) return { kind: 'create', lease: created(settings, acquireTime) }
  return { kind: 'acquire', lease: acquired(lease, settings, acquireTime) }
}

/** The state before a step's write is sent: remembers an acquisition, whose answer may get lost. */
export function attempted(state: ElectionState, step: Step): ElectionState {
  if (step.kind !== 'create' && step.kind !== 'acquire') return state
  const acquireTime = step.lease.spec?.acquireTime ?? ''
  return { ...state, attempt: { version: versionOf(state.lease), acquireTime } }
}

/** The state after a write succeeded: belief counts from `sentMs`, the moment it was sent. */
export function wrote(state: ElectionState, stored: Lease, sentMs: number, timing: Timing): ElectionState {
  const beliefUntilMs = sentMs + timing.renewDeadlineSeconds * 1000
  return { ...state, lease: stored, rival: undefined, beliefUntilMs }
}

/** The state after a write met a conflict: somebody else wrote, so belief ends at once. */
export function refused(state: ElectionState): ElectionState {
  return { ...state, beliefUntilMs: Number.NEGATIVE_INFINITY }
}

/** The Lease to write so that another may lead at once, or undefined when it is not this process's own. */
export function released(state: ElectionState, settings: LeaseSettings, wallNow: Date): Lease | undefined {
  const { lease } = state
  if (!lease || !isOurs(state, lease, settings)) return undefined
  const spec = { ...renewed(lease, settings, wallNow).spec, holderIdentity: '', leaseDurationSeconds: 1 }
  return { ...lease, spec }
}

/** The holder that a Lease names; empty when nobody holds it. */
export function holderOf(lease: Lease | undefined): string {
  const holder = specOf(lease).holderIdentity
  return typeof holder === 'string' ? holder : ''
}

/** Whether a record was written by this very process. */
function isOurs(state: ElectionState, lease: Lease, settings: LeaseSettings): boolean {
  return (
    holderOf(lease) === settings.identity &&
    state.attempt !== undefined &&
    state.attempt.acquireTime === specOf(lease).acquireTime
  )
}

/** Another try on the same version is the same acquisition: only one of the two can come through. */
function acquireTimeFor(state: ElectionState, wallNow: Date): string {
  const sameTry = state.attempt?.version === versionOf(state.lease)
  return sameTry && state.attempt ? state.attempt.acquireTime : microTime(wallNow)
}

function versionOf(lease: Lease | undefined): string {
  return lease?.metadata?.resourceVersion ?? ''
}

function specOf(lease: Lease | undefined): LeaseSpec {
  return isObject(lease?.spec) ? lease.spec : {}
}

function recordOf(lease: Lease): string {
  const spec = specOf(lease)
  return JSON.stringify([
    spec.holderIdentity,
    spec.leaseDurationSeconds,
    spec.acquireTime,
    spec.renewTime,
    spec.leaseTransitions,
  ])
}

function durationMsOf(lease: Lease, timing: Timing): number {
  const seconds = specOf(lease).leaseDurationSeconds
  const usable = typeof seconds === 'number' && seconds > 0
  return Math.min((usable ? seconds : timing.leaseDurationSeconds) * 1000, leaseDurationMaxMs)
}

function created(settings: LeaseSettings, acquireTime: string): Lease {
  const { leaseName: name, namespace } = settings
  return {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name, namespace, resourceVersion: versionOfAbsent },
    spec: { ...holding(settings), acquireTime, renewTime: acquireTime, leaseTransitions: 0 },
  }
}

function acquired(lease: Lease, settings: LeaseSettings, acquireTime: string): Lease {
  const spec = specOf(lease)
  const before = spec.leaseTransitions
  const count = typeof before === 'number' && before >= 0 ? Math.min(before + 1, transitionsMax) : 1
  return {
    ...lease,
    spec: { ...spec, ...holding(settings), acquireTime, renewTime: acquireTime, leaseTransitions: count },
  }
}

/**
 * The renew time grows with each renewal even when the wall clock stands still or is set back: two records of one
 * term are never alike, or a watching process would count a living holder's record as unchanged.
 */
function renewed(lease: Lease, settings: LeaseSettings, wallNow: Date): Lease {
  const spec = specOf(lease)
  const now = microTime(wallNow)
  const last = spec.renewTime
  const renewTime = typeof last === 'string' && last >= now ? justAfter(last, now) : now
  return { ...lease, spec: { ...spec, ...holding(settings), renewTime } }
}

function holding({ identity, leaseDurationSeconds }: LeaseSettings): LeaseSpec {
  return { holderIdentity: identity, leaseDurationSeconds }
}

/** A time as the API wants it in a MicroTime: with six fraction digits. */
export function microTime(date: Date): string {
  return `${date.toISOString().slice(0, -1)}000Z`
}

/** The microsecond after `time`, or `otherwise` when `time` cannot be read. */
function justAfter(time: string, otherwise: string): string {
  const match = /^(.+)\.(\d{3})(\d{3})Z$/.exec(time)
  const ms = match ? Date.parse(`${match[1]}.${match[2]}Z`) : Number.NaN
  if (Number.isNaN(ms)) return otherwise
  const micros = Number(match?.[3]) + 1
  const next = new Date(ms + Math.floor(micros / 1000)).toISOString().slice(0, -1)
  return `${next}${String(micros % 1000).padStart(3, '0')}Z`
}
