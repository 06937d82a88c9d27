import { systemClock } from '../../shared/clock.ts'

const pollMs = 10

/** Waits until `check` no longer throws; after `withinMs` (default 10 s) throws what it threw last. */
export async function eventually<T>(check: () => T | Promise<T>, withinMs = 10_000): Promise<T> {
  const deadlineMs = systemClock.monotonicMs() + withinMs
  for (;;) {
    try {
      return await check()
    } catch (error) {
      if (systemClock.monotonicMs() > deadlineMs) throw error
    }
    await systemClock.sleep(pollMs)
  }
}
