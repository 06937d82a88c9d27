import { type Clock, withTimeout } from '../clock.ts'
import { leases } from '../kinds/object.ts'
import type { CallOptions, KubeClient } from '../kube/client.ts'
import { isConflict } from '../kube/errors.ts'
import type { Logger } from '../log.ts'
import { type Belief, belief as beliefOf } from './belief.ts'
import type { Leadership } from './leadership.ts'
import * as policy from './lease.ts'

/**
 * Campaigns for a Lease. The rules are in `lease.ts`; this file is their rim: it reads, writes, waits and tells.
 *
 * `run` campaigns until its signal is aborted and never throws for trouble with the API: such trouble is counted,
 * logged once per outage, and tried again after a retry period. If `run` ends or dies, belief still ends at its
 * deadline. `stop` ends belief at once and releases the Lease, if it is this process's own.
 */
export interface Elector extends Leadership {
  readonly identity: string
  readonly leaseName: string
  state(): ElectorReport
  run(signal: AbortSignal): Promise<void>
  /** Ends the campaign. With `release: false` the Lease is left to expire, because the work may still be going on. */
  stop(options?: { release?: boolean }): Promise<void>
}

export interface ElectorReport {
  leading: boolean
  /** Who held the Lease when it was last seen; empty when nobody did or it was never seen. */
  holder: string
  /** Whether the last round got through to the API. False before the first. */
  reachable: boolean
}

/** What is counted about a Lease. */
export interface LeaseMetrics {
  acquired(): void
  lost(): void
  error(): void
  conflict(): void
}

export interface ElectorOptions extends policy.LeaseSettings {
  client: KubeClient
  clock: Clock
  log: Logger
  /** Default true. */
  releaseOnShutdown?: boolean | undefined
  metrics?: LeaseMetrics | undefined
  /** Asked before each try to lead (again); a process with a stuck task should not. Default: always. */
  mayCampaign?: (() => boolean) | undefined
}

/** How long the release may take at shutdown, in ms: the successor waits for it, and so does the process's end. */
const releaseTimeoutMs = 2_000
/** How often a release that met a conflict is tried: somebody may have labelled the Lease meanwhile. */
const releaseTries = 3

/** Makes an elector; it does nothing before `run`. Throws a RangeError when an option is not valid. */
export function elector(options: ElectorOptions): Elector {
  const problems = policy.timingProblems(options)
  if (options.leaseName === '') problems.push('leaseName must not be empty')
  if (options.identity === '') problems.push('identity must not be empty')
  if (problems.length > 0) throw new RangeError(`Cannot elect a leader: ${problems.join('; ')}`)
  const { leaseName, log, metrics } = options
  const belief = beliefOf(options.clock, log, ({ leading }) => {
    if (leading) metrics?.acquired()
    else metrics?.lost()
    log.info({ lease: leaseName, identity: options.identity }, leading ? 'leading' : 'no longer leading')
  })
  const election = electionOf(options, belief)
  const stopping = new AbortController()
  let running: Promise<void> = Promise.resolve()
  let stopped: Promise<void> | undefined

  async function stop(mayRelease: boolean): Promise<void> {
    stopping.abort(new Error('The elector was stopped'))
    await running
    belief.set(policy.refused(belief.state()))
    if (mayRelease && options.releaseOnShutdown !== false) await election.release()
  }

  return {
    identity: options.identity,
    leaseName,
    isLeader: belief.isLeader,
    subscribe: belief.subscribe,
    state: () => ({
      leading: belief.isLeader(),
      holder: policy.holderOf(belief.state().lease),
      reachable: election.reachable(),
    }),
    run(signal) {
      running = election.campaign(AbortSignal.any([signal, stopping.signal]))
      return running
    },
    stop({ release = true } = {}) {
      stopped ??= stop(release)
      return stopped
    },
  }
}

/** The rounds of one elector over its Lease. */
function electionOf(options: ElectorOptions, belief: Belief) {
  const { client, clock, metrics } = options
  const trouble = troubleOf(options)
  const noteHolder = holderNotes(options)
  // Three requests fit into the renew deadline, so that one that hangs does not end the term.
  const call = { timeoutMs: (options.renewDeadlineSeconds * 1000) / 3, retries: 0 }

  /** One look and, if called for, one write. Returns how long to wait before the next, in ms. */
  async function round(signal: AbortSignal): Promise<number> {
    await look(options, belief, { ...call, signal })
    noteHolder(belief.state())
    const step = policy.decide(belief.state(), options, clock.monotonicMs(), clock.now())
    const retryMs = policy.retryWaitMs(options, clock.random())
    if (step.kind === 'wait') return Math.min(step.waitMs, retryMs)
    if (!belief.isLeader() && options.mayCampaign?.() === false) return retryMs
    belief.set(policy.attempted(belief.state(), step))
    const sentMs = clock.monotonicMs()
    try {
      const stored = await client.replace<policy.Lease>(leases, step.lease, { ...call, signal })
      belief.set(policy.wrote(belief.state(), stored, sentMs, options))
      return retryMs
    } catch (error) {
      if (!isConflict(error)) throw error
      metrics?.conflict()
      belief.set(policy.refused(belief.state()))
      // A holder whose Lease was only touched looks again soon; whoever lost a race has time.
      return step.kind === 'renew' ? retryMs / 10 : retryMs
    }
  }

  async function campaign(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      let waitMs: number
      try {
        waitMs = await round(signal)
        trouble.over()
      } catch (error) {
        if (signal.aborted) return
        trouble.met(error)
        waitMs = policy.retryWaitMs(options, clock.random())
      }
      await clock.sleep(waitMs, signal).catch(() => {})
    }
  }

  return { campaign, release: () => release(options, belief), reachable: trouble.reachable }
}

async function look(options: ElectorOptions, belief: Belief, call: CallOptions): Promise<void> {
  const target = { namespace: options.namespace, name: options.leaseName }
  const lease = await options.client.get<policy.Lease>(leases, target, call)
  belief.set(policy.saw(belief.state(), lease, options.clock.monotonicMs(), options))
}

/** Empties the Lease, if it is this process's own. Throws nothing: else it runs out by itself. */
async function release(options: ElectorOptions, belief: Belief): Promise<void> {
  const { client, clock, log, leaseName } = options
  async function tryIt(signal: AbortSignal): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      await look(options, belief, { retries: 0, signal })
      const lease = policy.released(belief.state(), options, clock.now())
      if (!lease) return
      try {
        await client.replace(leases, lease, { retries: 0, signal })
        return
      } catch (error) {
        if (!isConflict(error) || attempt === releaseTries) throw error
      }
    }
  }
  // Whoever never tried to take the Lease cannot own it.
  if (belief.state().attempt === undefined) return
  try {
    await withTimeout(clock, releaseTimeoutMs, 'Releasing the Lease', tryIt)
  } catch (error) {
    log.warn({ lease: leaseName, err: error }, 'lease not released')
  }
}

/** Logs whom this one waits for, whenever that is somebody else than before. */
function holderNotes({ log, namespace, leaseName, identity }: ElectorOptions) {
  let told = ''
  return ({ lease }: policy.ElectionState): void => {
    const holder = policy.holderOf(lease)
    if (holder !== told && holder !== '' && holder !== identity)
      log.info({ lease: `${namespace}/${leaseName}`, holder }, 'another holds the lease')
    told = holder
  }
}

/** Counts each failed round, and logs once per outage. */
function troubleOf({ log, leaseName, metrics }: ElectorOptions) {
  let reached: boolean | undefined
  return {
    reachable: () => reached === true,
    met(error: unknown): void {
      metrics?.error()
      if (reached !== false) log.warn({ lease: leaseName, err: error }, 'cannot campaign for the lease')
      reached = false
    },
    over(): void {
      if (reached === false) log.info({ lease: leaseName }, 'campaigning for the lease again')
      reached = true
    },
  }
}
