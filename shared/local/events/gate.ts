/** Lets a limited number in at once; the others wait in order. */
export interface Gate {
  /**
   * Takes a place, waiting for one if there is none; gives back how to leave it, which may be called twice. Rejects
   * with `signal.reason` when that is aborted first.
   */
  enter(signal?: AbortSignal): Promise<() => void>
  /** How many are inside. */
  inside(): number
  /** How many wait. */
  waiting(): number
}

/** Makes a {@link Gate} with `size` places; `Infinity` for no limit. */
export function gate(size: number): Gate {
  let inside = 0
  let waiting: (() => void)[] = []

  function leave(): void {
    const next = waiting.shift()
    // The place is handed over, so the number stays as it is.
    if (next) next()
    else inside--
  }

  function turn(signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const onTurn = () => {
        signal?.removeEventListener('abort', onAbort)
        resolve()
      }
      const onAbort = () => {
        waiting = waiting.filter((other) => other !== onTurn)
        reject(signal?.reason)
      }
      signal?.addEventListener('abort', onAbort, { once: true })
      waiting.push(onTurn)
    })
  }

  return {
    async enter(signal) {
      signal?.throwIfAborted()
      if (inside < size) inside++
      else await turn(signal)
      let left = false
      return () => {
        if (!left) leave()
        left = true
      }
    },
    inside: () => inside,
    waiting: () => waiting.length,
  }
}
