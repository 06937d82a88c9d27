import type { Clock } from '../clock.ts'
import type { Logger } from '../log.ts'
import type { Leadership, LeadershipChange } from './leadership.ts'

/** Work that only the leader does. */
export interface LeaderTask {
  name: string
  /**
   * Works until `signal` is aborted, then ends soon. One that returns before waits for the next term; one that throws
   * is run again in the same term, after a backoff.
   */
  run(signal: AbortSignal): Promise<void>
}

export interface LeaderTasksOptions {
  leadership: Leadership
  tasks: readonly LeaderTask[]
  clock: Clock
  log: Logger
  /** How long tasks may take to end once a term is over, in ms (see `stopTimeoutMs` in `lease.ts`). */
  stopTimeoutMs: number
  /** Told of a task that did not end in time. What it still does is no longer waited for. */
  onAbandoned?: ((name: string) => void) | undefined
}

export interface LeaderTasks {
  /** The tasks that were abandoned and have not ended yet. */
  stuck(): string[]
  /** Ends the tasks and starts no more. Resolves when all have ended or were abandoned; `abandoned` names those. */
  stop(): Promise<{ abandoned: string[] }>
}

/** What a task's signal is aborted with. */
export class TermEnded extends Error {
  override readonly name = 'TermEnded'
}

const firstBackoffMs = 1_000
const backoffMaxMs = 30_000

/**
 * Runs each task once per term, from the moment this process leads until its belief ends. The stop time counts from
 * the end of belief, not from when it was noticed, so that a task is abandoned before another process can lead. A
 * task whose earlier run is stuck is not started beside it.
 */
export function leaderTasks(options: LeaderTasksOptions): LeaderTasks {
  const runs = runsOf(options)
  let term: AbortController | undefined
  let ended: Promise<string[]> = Promise.resolve([])
  let stopped: Promise<{ abandoned: string[] }> | undefined

  function begin(): void {
    term = new AbortController()
    for (const task of options.tasks) runs.start(task, term.signal)
  }

  function end(atMs: number): void {
    term?.abort(new TermEnded('This process no longer leads'))
    term = undefined
    ended = runs.endBy(atMs + options.stopTimeoutMs)
    ended.catch(() => {})
  }

  const unsubscribe = options.leadership.subscribe((change: LeadershipChange) => {
    if (change.leading) begin()
    else end(change.atMs)
  })

  return {
    stuck: runs.stuck,
    stop() {
      unsubscribe()
      if (term) end(options.clock.monotonicMs())
      stopped ??= ended.then((abandoned) => ({ abandoned }))
      return stopped
    },
  }
}

/** Each task's present run, which may be one of an earlier term. */
function runsOf(options: LeaderTasksOptions) {
  const { clock, log } = options
  const runs = new Map<string, Promise<void>>()
  const stuck = new Set<string>()

  function start(task: LeaderTask, signal: AbortSignal): void {
    const before = runs.get(task.name) ?? Promise.resolve()
    const run = before
      .then(() => runInTerm(task, signal, options))
      .finally(() => {
        stuck.delete(task.name)
        if (runs.get(task.name) === run) runs.delete(task.name)
      })
    runs.set(task.name, run)
  }

  /** Waits for all to end, at the latest until `untilMs`; gives the names of those that are stuck then. */
  async function endBy(untilMs: number): Promise<string[]> {
    const timer = new AbortController()
    const leftMs = Math.max(0, untilMs - clock.monotonicMs())
    await Promise.race([Promise.all(runs.values()), clock.sleep(leftMs, timer.signal).catch(() => {})])
    timer.abort()
    for (const name of runs.keys()) {
      if (stuck.has(name)) continue
      stuck.add(name)
      log.error({ task: name }, 'leader task abandoned: it did not end in time')
      options.onAbandoned?.(name)
    }
    return [...stuck]
  }

  return { start, endBy, stuck: () => [...stuck] }
}

async function runInTerm(
  task: LeaderTask,
  signal: AbortSignal,
  { clock, log }: LeaderTasksOptions,
): Promise<void> {
  for (let failures = 0; !signal.aborted; failures++) {
    try {
      await task.run(signal)
      return
    } catch (error) {
      if (signal.aborted) return
      log.error({ task: task.name, err: error }, 'leader task failed')
      await clock.sleep(Math.min(firstBackoffMs * 2 ** failures, backoffMaxMs), signal).catch(() => {})
    }
  }
}
