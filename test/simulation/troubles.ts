import type { Trouble } from '../../shared/apiserver/faults.ts'

export interface Request {
  method: string
  isWatch: boolean
}

/** What a request meets at an API server in trouble: mostly nothing. A late one is at most `latencyMaxMs` late. */
export function troublesOf(
  random: () => number,
  latencyMaxMs: number,
  { method, isWatch }: Request,
): Trouble[] {
  const chance = (probability: number) => random() < probability
  if (isWatch) {
    if (chance(0.3)) return [{ cutAfterEvents: Math.floor(random() * 4) }]
    return chance(0.2) ? [{ stallAfterEvents: Math.floor(random() * 4) }] : []
  }
  const met: Trouble[] = chance(0.2) ? [{ latencyMs: random() * latencyMaxMs }] : []
  if (chance(0.08)) met.push({ status: [429, 500, 503, 504][Math.floor(random() * 4)] ?? 500 })
  if (chance(0.08)) met.push({ reset: method !== 'GET' && random() < 0.5 ? 'after' : 'before' })
  return met
}
