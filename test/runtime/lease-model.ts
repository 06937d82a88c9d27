import * as policy from '../../shared/runtime/lease.ts'

/**
 * The election as a small machine whose every run can be explored: some processes that act by the real policy
 * functions, one Lease that compares and swaps, and an adversary that decides at each step who acts, which message
 * arrives, which is lost or comes late, who crashes, and when time goes on. Nothing is fair: a process may stand still
 * for ever, which covers an API outage, a starved timer and a dead elector.
 */
export interface Model {
  processes: ProcessModel[]
  /** The rules to act by: the real ones, or with one of them spoiled. */
  rules: Rules
  /** How many crashes (each followed by a new process of the same identity) the adversary has. */
  crashes: number
  /** How many shutdowns with a release, each followed by a new process. */
  releases: number
  /** How many given-up writes may still arrive later. */
  lateWrites: number
  /** Whether a read is answered in no time; keeps the states of three processes few enough to see all. */
  promptReads?: boolean
  /** Whether the server takes a write whatever version it was based on (which the real one never does). */
  unconditional?: boolean
  /** Whether a process releases while its tasks still run (which ours never does). */
  careless?: boolean
}

export interface ProcessModel {
  settings: policy.LeaseSettings
  /** Of its monotonic clock, in ms, and how fast it runs. */
  offsetMs: number
  rate: number
  /** Of its wall clock, in ms; undefined for one that stands still. */
  wallOffsetMs: number | undefined
}

export type Rules = Pick<
  typeof policy,
  'saw' | 'decide' | 'attempted' | 'wrote' | 'refused' | 'released' | 'isLeading' | 'stopTimeoutMs'
>

export interface Explored {
  states: number
  depth: number
  /** False when the exploration was cut at `statesMax`. */
  complete: boolean
  /** Each broken promise, with the shortest run that leads to it. */
  violation?: { promise: string; run: string[] }
  /** The most ticks that it took from any state, once nothing failed any more, until somebody led. */
  slowestTakeoverTicks: number
  /** How many of the states had a leader; if none had, nothing was shown. */
  led: number
}

interface Write {
  lease: policy.Lease
  sentMs: number
}

interface Proc {
  election: policy.ElectionState
  /** What it waits for: the answer of a read, a write on its way, the answer of a write. */
  waits?:
    | { for: 'read'; lease: policy.Lease | undefined }
    | { for: 'write'; write: Write }
    | { for: 'result'; stored: policy.Lease | undefined; sentMs: number }
  /** Its tasks may run up to then, in global ms. */
  busyUntilMs: number
}

interface State {
  nowMs: number
  lease: policy.Lease | undefined
  version: number
  procs: Proc[]
  late: policy.Lease[]
  crashes: number
  releases: number
  /** How this state was reached. */
  via?: { from: State; action: string }
}

const tickMs = 1_000
const never = Number.NEGATIVE_INFINITY

/** Explores all states, breadth first, until all are seen, a promise is broken or there are `statesMax`. */
export function explore(model: Model, statesMax: number): Explored {
  const start: State = {
    nowMs: 0,
    lease: undefined,
    version: 1,
    procs: model.processes.map(() => newProcess()),
    late: [],
    crashes: model.crashes,
    releases: model.releases,
  }
  const seen = new Set([keyOf(start, model)])
  let frontier = [start]
  const result: Explored = { states: 1, depth: 0, complete: true, slowestTakeoverTicks: 0, led: 0 }
  while (frontier.length > 0) {
    const next: State[] = []
    for (const state of frontier) {
      const promise = brokenPromise(state, model)
      if (promise) return { ...result, complete: false, violation: { promise, run: runTo(state) } }
      if (leaders(state, model).length > 0) result.led++
      result.slowestTakeoverTicks = Math.max(result.slowestTakeoverTicks, takeoverTicks(state, model))
      for (const successor of successors(state, model)) {
        const key = keyOf(successor, model)
        if (seen.has(key)) continue
        seen.add(key)
        next.push(successor)
      }
      if (seen.size > statesMax) return { ...result, states: seen.size, complete: false }
    }
    frontier = next
    result.states = seen.size
    if (next.length > 0) result.depth++
  }
  return result
}

const newProcess = (): Proc => ({ election: policy.initialElection, busyUntilMs: never })

function localMs({ offsetMs, rate }: ProcessModel, nowMs: number): number {
  return offsetMs + nowMs * rate
}

function wallOf({ wallOffsetMs }: ProcessModel, nowMs: number): Date {
  const start = Date.UTC(2026, 0, 1)
  return new Date(wallOffsetMs === undefined ? start : start + wallOffsetMs + nowMs)
}

function leaders({ procs, nowMs }: State, { processes, rules }: Model): number[] {
  return processes.flatMap((process, i) =>
    procs[i] && rules.isLeading(procs[i].election, localMs(process, nowMs)) ? [i] : [],
  )
}

/** The promise that a state breaks, if any. */
function brokenPromise(state: State, model: Model): string | undefined {
  const leading = leaders(state, model)
  if (leading.length > 1) return 'never two believers'
  const [leader] = leading
  const busy = state.procs.some(({ busyUntilMs }, i) => i !== leader && busyUntilMs > state.nowMs)
  return leader !== undefined && busy ? 'no takeover before the old tasks have stopped' : undefined
}

function* successors(state: State, model: Model): Generator<State> {
  yield after(state, model, 'a second passes', (next) => {
    next.nowMs += tickMs
  })
  for (const [i, proc] of state.procs.entries()) yield* stepsOf(state, model, i, proc)
  for (const [i, lease] of state.late.entries())
    yield after(state, model, 'a late write arrives', (next) => {
      next.late = state.late.toSpliced(i, 1)
      put(next, lease, model)
    })
}

function* stepsOf(state: State, model: Model, i: number, proc: Proc): Generator<State> {
  const step = (what: string, change: (next: State) => void) => after(state, model, `${i} ${what}`, change)
  const { waits } = proc
  if (!waits)
    yield step('reads the Lease', (next) => {
      const reading: Proc = { ...proc, waits: { for: 'read', lease: state.lease } }
      next.procs[i] = reading
      if (model.promptReads) answered(next, model, i, reading)
    })
  else {
    if (waits.for === 'write')
      yield step('has its write arrive', (next) => {
        const stored = put(next, waits.write.lease, model)
        next.procs[i] = { ...proc, waits: { for: 'result', stored, sentMs: waits.write.sentMs } }
      })
    else yield step('gets its answer', (next) => answered(next, model, i, proc))
    yield step('loses its request', (next) => {
      next.procs[i] = idle(proc)
      if (waits.for === 'write' && state.late.length < model.lateWrites)
        next.late = [...state.late, waits.write.lease]
    })
  }
  if (state.crashes > 0)
    yield step('crashes and comes anew', (next) => {
      next.crashes--
      next.procs[i] = newProcess()
    })
  if (state.releases > 0) yield* releaseOf(state, model, i, proc)
}

function* releaseOf(state: State, model: Model, i: number, proc: Proc): Generator<State> {
  const process = model.processes[i]
  if (!process) return
  const lease = model.rules.released(proc.election, process.settings, wallOf(process, state.nowMs))
  if (!lease) return
  yield after(state, model, `${i} shuts down, releases and comes anew`, (next) => {
    next.releases--
    next.late = [...state.late, lease]
    // Its tasks have stopped before it releases; a careless one leaves them running.
    const busyUntilMs = model.careless ? proc.busyUntilMs : never
    next.procs[i] = { ...newProcess(), busyUntilMs }
  })
}

/** What a process does with an answer: the same steps as the elector. */
function answered(next: State, model: Model, i: number, proc: Proc): void {
  const { rules } = model
  const process = model.processes[i]
  const { waits } = proc
  if (!process || !waits || waits.for === 'write') return
  const now = localMs(process, next.nowMs)
  if (waits.for === 'result') {
    const { stored, sentMs } = waits
    const election = stored
      ? rules.wrote(proc.election, stored, sentMs, process.settings)
      : rules.refused(proc.election)
    next.procs[i] = { ...idle(proc), election }
    return
  }
  const election = rules.saw(proc.election, waits.lease, now, process.settings)
  const step = rules.decide(election, process.settings, now, wallOf(process, next.nowMs))
  next.procs[i] =
    step.kind === 'wait'
      ? { ...idle(proc), election }
      : {
          ...proc,
          election: rules.attempted(election, step),
          waits: { for: 'write', write: { lease: step.lease, sentMs: now } },
        }
}

function idle({ election, busyUntilMs }: Proc): Proc {
  return { election, busyUntilMs }
}

/** The server's compare-and-swap; undefined is a conflict. */
function put(next: State, lease: policy.Lease, model: Model): policy.Lease | undefined {
  const fits =
    next.lease === undefined || next.lease.metadata?.resourceVersion === lease.metadata?.resourceVersion
  if (!fits && !model.unconditional) return undefined
  next.version++
  next.lease = { ...lease, metadata: { ...lease.metadata, resourceVersion: `v${next.version}` } }
  return next.lease
}

function after(state: State, model: Model, action: string, change: (next: State) => void): State {
  const next: State = { ...state, procs: [...state.procs], via: { from: state, action } }
  change(next)
  for (const [i, process] of model.processes.entries()) noteBusy(state, next, model, process, i)
  return next
}

/** A task runs while its process believes, and for its stop time after that. */
function noteBusy(state: State, next: State, model: Model, process: ProcessModel, i: number): void {
  const before = state.procs[i]
  const now = next.procs[i]
  if (!before || !now) return
  const stopMs = model.rules.stopTimeoutMs(process.settings) / process.rate
  const local = localMs(process, next.nowMs)
  if (model.rules.isLeading(now.election, local)) {
    const leftMs = (now.election.beliefUntilMs - local) / process.rate
    const busyUntilMs = next.nowMs + leftMs + stopMs
    if (busyUntilMs !== now.busyUntilMs) next.procs[i] = { ...now, busyUntilMs }
  } else if (
    now.busyUntilMs === before.busyUntilMs &&
    model.rules.isLeading(before.election, localMs(process, state.nowMs)) &&
    next.nowMs === state.nowMs
  )
    next.procs[i] = { ...now, busyUntilMs: next.nowMs + stopMs }
}

/** How many ticks it takes until somebody leads when from now on every process gets a whole round each tick. */
function takeoverTicks(state: State, model: Model): number {
  const limit = 50
  let now: State = { ...state, procs: state.procs.map(idle), late: [], crashes: 0, releases: 0 }
  for (let ticks = 0; ticks < limit; ticks++) {
    if (leaders(now, model).length > 0) return ticks
    for (const i of model.processes.keys()) now = wholeRound(now, model, i)
    if (leaders(now, model).length > 0) return ticks
    now = after(now, model, 'a second passes', (next) => {
      next.nowMs += tickMs
    })
  }
  return limit
}

function wholeRound(state: State, model: Model, i: number): State {
  return after(state, model, `${i} does a round`, (next) => {
    const proc = next.procs[i]
    if (!proc) return
    answered(next, model, i, { ...proc, waits: { for: 'read', lease: next.lease } })
    const asked = next.procs[i]
    if (asked?.waits?.for !== 'write') return
    const { lease, sentMs } = asked.waits.write
    const stored = put(next, lease, model)
    answered(next, model, i, { ...asked, waits: { for: 'result', stored, sentMs } })
  })
}

function runTo(state: State): string[] {
  const run: string[] = []
  for (let at: State | undefined = state; at?.via; at = at.via.from) run.unshift(at.via.action)
  return run
}

/**
 * A state as text, alike for states that behave alike: times count from now, as far as anybody still compares them;
 * versions and stamps are numbered in the order in which they are met, because only their being equal matters; and
 * processes with the same settings are put in an order of their state, because it does not matter which is which.
 */
function keyOf(state: State, model: Model): string {
  const { procs, nowMs } = state
  const order = orderOf(state, model)
  const ranks = new Map(order.map((i, rank) => [model.processes[i]?.settings.identity, rank]))
  const names = new Map<string, number>()
  const name = (text: string | undefined) => {
    if (text === undefined) return '-'
    const known = names.get(text) ?? names.size
    names.set(text, known)
    return known
  }
  const leaseKey = (lease: policy.Lease | undefined) => {
    if (!lease) return '-'
    const { holderIdentity, leaseDurationSeconds, acquireTime, renewTime } = lease.spec ?? {}
    const version = name(lease.metadata?.resourceVersion)
    return `${version}:${ranks.get(holderIdentity)}:${leaseDurationSeconds}:${name(acquireTime)}:${name(renewTime)}`
  }
  const parts = [leaseKey(state.lease), state.crashes, state.releases]
  for (const i of order) {
    const [process, proc] = [model.processes[i], procs[i]]
    if (!process || !proc) continue
    const { rival, attempt, lease } = proc.election
    parts.push('|', timesKey(process, proc, nowMs))
    // The Lease as it was seen last is read again before it counts, but for a release.
    if (state.releases > 0) parts.push(leaseKey(lease))
    if (attempt) parts.push(`a${name(attempt.version)},${name(attempt.acquireTime)}`)
    if (rival) {
      // By its stamps, so that it is seen whether the Lease still has this record.
      const [holder, , acquired, renewed] = JSON.parse(rival.record) as string[]
      parts.push(`r${ranks.get(holder)}:${name(acquired)}:${name(renewed)}`)
    }
    const { waits } = proc
    if (waits?.for === 'read') parts.push(leaseKey(waits.lease))
    if (waits?.for === 'write') parts.push(leaseKey(waits.write.lease))
    if (waits?.for === 'result') parts.push(leaseKey(waits.stored))
  }
  parts.push(...state.late.map((lease) => `L${leaseKey(lease)}`))
  return parts.join(' ')
}

/** Puts processes that are alike in an order that does not depend on which of them is which. */
function orderOf({ procs, nowMs }: State, { processes }: Model): number[] {
  const keys = processes.map((process, i) => {
    const { identity: _, ...timing } = process.settings
    const times = procs[i] ? timesKey(process, procs[i], nowMs) : ''
    return `${JSON.stringify(timing)} ${process.rate} ${process.wallOffsetMs === undefined} ${times}`
  })
  return [...keys.keys()].sort((a, b) => ((keys[a] ?? '') < (keys[b] ?? '') ? -1 : 1))
}

function timesKey(process: ProcessModel, { election, waits, busyUntilMs }: Proc, nowMs: number): string {
  const local = localMs(process, nowMs)
  const left = (untilMs: number) => Math.max(0, untilMs - local)
  const age = (sentMs: number) => Math.min(local - sentMs, process.settings.renewDeadlineSeconds * 1000)
  const { rival, beliefUntilMs } = election
  const request =
    waits?.for === 'write'
      ? `W${age(waits.write.sentMs)}`
      : waits?.for === 'result'
        ? `S${age(waits.sentMs)}`
        : (waits?.for ?? '')
  const rivalLeft = rival ? left(rival.sinceMs + rival.durationMs) : ''
  return `${left(beliefUntilMs)},${Math.max(0, busyUntilMs - nowMs)},${rivalLeft},${request}`
}
