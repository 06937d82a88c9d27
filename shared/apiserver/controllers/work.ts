import type { Clock } from '../../clock.ts'

/** Work that is done once per name, after whoever asked for it has gone on. */
export interface Work {
  /** Asks for `name`; a name that waits already is not put in twice. */
  add(name: string): void
  stop(): void
}

/**
 * Runs `act` for each name added, in order, outside of the caller's turn and `delayMs` later. `act` is expected not to throw;
 * if it does, `onError` is told and the rest goes on.
 */
export function workFor(
  clock: Clock,
  options: { delayMs: number; act(name: string): void; onError?: (error: unknown) => void },
): Work {
  const names = new Set<string>()
  const stopped = new AbortController()
  let isRunning = false
  async function run(): Promise<void> {
    if (options.delayMs > 0) await clock.sleep(options.delayMs, stopped.signal)
    else await Promise.resolve()
    for (const name of names) {
      if (stopped.signal.aborted) return
      names.delete(name)
      try {
        options.act(name)
      } catch (error) {
        options.onError?.(error)
      }
    }
  }
  return {
    add(name) {
      names.add(name)
      if (isRunning || stopped.signal.aborted) return
      isRunning = true
      run()
        .catch(() => {})
        .finally(() => {
          isRunning = false
          const [next] = names
          if (next !== undefined) this.add(next)
        })
    },
    stop: () => stopped.abort(),
  }
}
