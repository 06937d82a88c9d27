import { describe, expect, it } from 'vitest'
import { seededRandom, virtualClock } from '../support/clock.ts'
import { type Candidate, candidate } from './candidates.ts'
import { leaseWire } from './lease-wire.ts'

/**
 * Three processes, a bad network and crashes, on a virtual clock. A failed run tells its seed; run it alone with
 * SEED=<n>.
 */

const seeds = process.env.SEED ? [Number(process.env.SEED)] : [1, 2, 3, 4, 5, 6]
const samples = 4_000
const stepMs = 50

function leaders(candidates: Candidate[]): string[] {
  return candidates.filter(({ elector }) => elector.isLeader()).map(({ name }) => name)
}

describe.each(seeds)('three candidates, seed %i', (seed) => {
  it(`never lead together in ${samples} samples with crashes, lost messages and outages`, async () => {
    const clock = virtualClock({ seed })
    const wire = leaseWire(clock)
    const random = seededRandom(seed * 7919)
    const candidates = ['a', 'b', 'c'].map((name) => candidate(clock, wire, name))
    const crashAt = [1_300, 2_600]
    let led = 0
    const terms = new Set<string>()
    for (let sample = 0; sample < samples; sample++) {
      if (sample % 40 === 0) for (const one of candidates) one.trouble = troubleBy(random)
      if (crashAt.includes(sample)) {
        const victim = candidates.find(({ elector }) => elector.isLeader()) ?? candidates[0]
        victim?.kill()
        // A new process comes in its place; the old one may still believe, until its deadline.
        candidates.push(candidate(clock, wire, `${victim?.name}'`))
      }
      await clock.advance(stepMs)
      const now = leaders(candidates)
      expect(now.length, `seed ${seed}, sample ${sample}: ${now}`).toBeLessThan(2)
      led += now.length
      for (const name of now) terms.add(name)
    }
    // Or it would be an empty truth.
    expect(led / samples).toBeGreaterThan(0.3)
    expect(terms.size).toBeGreaterThan(1)
    for (const one of candidates) one.trouble = {}
    await clock.advance(17_000)
    expect(leaders(candidates).length).toBe(1)
  })
})

function troubleBy(random: () => number): Candidate['trouble'] {
  const dice = random()
  if (dice < 0.15) return { lost: random() < 0.5 ? 'there' : 'back' }
  if (dice < 0.25) return { status: random() < 0.5 ? 503 : 429 }
  if (dice < 0.6) return { thereMs: random() * 4_000, backMs: random() * 4_000 }
  return { thereMs: random() * 20, backMs: random() * 20 }
}
