import type { Clock } from '../clock.ts'
import { isExpired, isForbidden, isKubeError } from './errors.ts'

export interface RetryDelayLimits {
  backoffFirstMs: number
  backoffMaxMs: number
  /** How often what is not allowed is tried again, in ms. */
  deniedRetryMs: number
}

/**
 * How long to wait after each failure of something that goes on for ever, in ms: half to all of a delay that doubles up
 * to its limit (the half is chance, so that many who failed together do not come back together); never less than the
 * server asked for; a steady short time where access was denied, since a person gives it at any moment; and nothing
 * before the first new list after a 410.
 */
export function retryDelay(clock: Clock, limits: RetryDelayLimits) {
  let failures = 0
  return {
    next(error: unknown): number {
      if (isForbidden(error)) return limits.deniedRetryMs * (0.9 + clock.random() / 10)
      const backoffMs = Math.min(limits.backoffFirstMs * 2 ** failures, limits.backoffMaxMs)
      const isFirst = failures === 0
      failures = Math.min(failures + 1, 30)
      if (isExpired(error) && isFirst) return 0
      const askedMs = isKubeError(error) ? (error.retryAfterSeconds ?? 0) * 1_000 : 0
      return Math.max(askedMs * (1 + clock.random() / 10), backoffMs * (0.5 + clock.random() / 2))
    },
    /** To be called when it has worked. */
    reset(): void {
      failures = 0
    },
  }
}
