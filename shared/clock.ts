/**
 * Time and chance come through this door: everything that waits, stamps or jitters is handed a {@link Clock}, so
 * that a test can hand in a virtual, seeded one. Bare timers, dates and random numbers are banned elsewhere (a test
 * holds the sources to it).
 */
export interface Clock {
  /** The wall clock, for stamps that people and other machines read. It may jump. */
  now(): Date
  /** Milliseconds on a clock that never goes back, from an arbitrary start. For every duration and deadline. */
  monotonicMs(): number
  /**
   * Waits `ms` milliseconds. Rejects with `signal.reason` as soon as `signal` is aborted (also when it already
   * is).
   */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
  /** A number from 0 (included) to 1 (excluded). Not for secrets. */
  random(): number
}

/** The longest wait a Node timer can hold, in ms; a longer one would fire at once. */
const longestTimerMs = 2 ** 31 - 1

/** The process's own clock. */
export const systemClock: Clock = {
  now: () => new Date(),
  monotonicMs: () => performance.now(),
  random: () => Math.random(),
  sleep: (ms, signal) =>
    new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason)
      const onAbort = () => {
        clearTimeout(timer)
        reject(signal?.reason)
      }
      const timer = setTimeout(
        () => {
          signal?.removeEventListener('abort', onAbort)
          resolve()
        },
        Math.min(ms, longestTimerMs),
      )
      signal?.addEventListener('abort', onAbort, { once: true })
    }),
}

/** What {@link withTimeout} aborts with when the time is up. */
export class TimeoutError extends Error {
  override readonly name = 'TimeoutError'
}

/**
 * Runs `work` with a signal that is aborted after `ms` milliseconds or when `parent` is.
 *
 * Returns what `work` returns. Throws a {@link TimeoutError} naming `what` when the time ran out first, and
 * `parent.reason` when the parent was aborted first, even if `work` ignores its signal; what `work` does after
 * that is its own affair, and its late rejection is swallowed.
 */
export async function withTimeout<T>(
  clock: Clock,
  ms: number,
  what: string,
  work: (signal: AbortSignal) => Promise<T>,
  parent?: AbortSignal,
): Promise<T> {
  parent?.throwIfAborted()
  const controller = new AbortController()
  const stopTimer = new AbortController()
  const onParentAbort = () => controller.abort(parent?.reason)
  parent?.addEventListener('abort', onParentAbort, { once: true })
  const aborted = new Promise<never>((_, reject) => {
    controller.signal.addEventListener('abort', () => reject(controller.signal.reason), { once: true })
  })
  clock.sleep(ms, stopTimer.signal).then(
    () => controller.abort(new TimeoutError(`${what} took longer than ${ms} ms`)),
    () => {},
  )
  try {
    return await Promise.race([work(controller.signal), aborted])
  } finally {
    aborted.catch(() => {})
    // A reason at hand: to make the default one, with its stack, is the dearest part of a request.
    stopTimer.abort('over')
    parent?.removeEventListener('abort', onParentAbort)
  }
}

/** What `promise` gives; throws `signal.reason` as soon as `signal` is aborted, though `promise` goes on. */
export async function untilAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  // Whatever comes of it later has been given up.
  if (signal.aborted) promise.catch(() => {})
  signal.throwIfAborted()
  let onAbort = () => {}
  const aborted = new Promise<never>((_, reject) => {
    onAbort = () => reject(signal.reason)
    signal.addEventListener('abort', onAbort, { once: true })
  })
  try {
    return await Promise.race([promise, aborted])
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}
