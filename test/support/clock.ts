import type { Clock } from '../../shared/clock.ts'

/** A clock that moves only when the test says so; its random numbers come from a seed. */
export interface VirtualClock extends Clock {
  /**
   * Moves on by `ms`, waking each sleeper at its moment, in order, and letting what it wakes run before the next: until
   * `rest` resolves (default {@link settle}).
   */
  advance(ms: number, rest?: () => Promise<void>): Promise<void>
  /** Moves the wall clock alone, as NTP or a person would. */
  jumpWallClock(ms: number): void
  /** How many sleepers wait. */
  sleepers(): number
}

interface Sleeper {
  atMs: number
  wake: () => void
}

/** How many turns of the microtask queue are given to what a sleeper woke. */
const turns = 50

/** Lets everything that waits for nothing but promises run. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < turns; turn++) await Promise.resolve()
  await new Promise<void>((resolve) => setImmediate(resolve))
}

export function virtualClock(options: { startMs?: number; seed?: number } = {}): VirtualClock {
  const wallStartMs = options.startMs ?? Date.UTC(2026, 0, 1)
  const random = seededRandom(options.seed ?? 1)
  let nowMs = 0
  let wallOffsetMs = 0
  let sleepers: Sleeper[] = []

  return {
    now: () => new Date(wallStartMs + wallOffsetMs + nowMs),
    monotonicMs: () => nowMs,
    random,
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        if (signal?.aborted) return reject(signal.reason)
        const onAbort = () => {
          sleepers = sleepers.filter((other) => other !== sleeper)
          reject(signal?.reason)
        }
        const sleeper: Sleeper = {
          atMs: nowMs + Math.max(0, ms),
          wake: () => {
            signal?.removeEventListener('abort', onAbort)
            resolve()
          },
        }
        signal?.addEventListener('abort', onAbort, { once: true })
        sleepers.push(sleeper)
      }),
    async advance(ms, rest = settle) {
      const endMs = nowMs + ms
      await rest()
      for (;;) {
        const next = sleepers.reduce<Sleeper | undefined>(
          (first, s) => (!first || s.atMs < first.atMs ? s : first),
          undefined,
        )
        if (!next || next.atMs > endMs) break
        sleepers = sleepers.filter((other) => other !== next)
        nowMs = Math.max(nowMs, next.atMs)
        next.wake()
        await rest()
      }
      nowMs = endMs
    },
    jumpWallClock: (ms) => {
      wallOffsetMs += ms
    },
    sleepers: () => sleepers.length,
  }
}

/** A small seeded generator (mulberry32), from 0 to 1. */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
