/** Whether this process leads, and since or until when; what leader tasks and handlers are given. */
export interface Leadership {
  /** Whether this process leads at this very moment. Reads the deadline itself, so a late timer cannot make it lie. */
  isLeader(): boolean
  /** Calls `listener` at each change, and once at once when this process leads already. Returns how to stop it. */
  subscribe(listener: (change: LeadershipChange) => void): () => void
}

export interface LeadershipChange {
  leading: boolean
  /**
   * When it changed, on the monotonic clock in ms. For an end it is the moment up to which this process believed,
   * which may be past when the timer that noticed it was late.
   */
  atMs: number
}

/** A leadership that never changes: of a process that may lead without a cluster, or of one that may not lead. */
export function fixedLeadership(leading: boolean): Leadership {
  return {
    isLeader: () => leading,
    subscribe(listener) {
      if (leading) listener({ leading, atMs: 0 })
      return () => {}
    },
  }
}

/** Resolves when this process leads; rejects with `signal.reason` when the signal is aborted first. */
export function untilLeader(leadership: Leadership, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason)
    if (leadership.isLeader()) return resolve()
    const onAbort = () => {
      unsubscribe()
      reject(signal?.reason)
    }
    const unsubscribe = leadership.subscribe((change) => {
      if (!change.leading) return
      unsubscribe()
      signal?.removeEventListener('abort', onAbort)
      resolve()
    })
    signal?.addEventListener('abort', onAbort, { once: true })
  })
}

/**
 * The changes as a stream, beginning with the present state: true while this process leads. A slow reader gets the
 * newest state, not each one between. Ends when `signal` is aborted.
 */
export async function* leadershipChanges(
  leadership: Leadership,
  signal: AbortSignal,
): AsyncGenerator<boolean, void> {
  let changed = Promise.withResolvers<void>()
  const onChange = () => changed.resolve()
  const unsubscribe = leadership.subscribe(onChange)
  signal.addEventListener('abort', onChange, { once: true })
  try {
    let told: boolean | undefined
    while (!signal.aborted) {
      changed = Promise.withResolvers<void>()
      const leading = leadership.isLeader()
      if (leading !== told) {
        told = leading
        yield leading
      } else await changed.promise
    }
  } finally {
    unsubscribe()
    signal.removeEventListener('abort', onChange)
  }
}
