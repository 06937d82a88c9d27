import { afterAll, describe, expect, test } from 'vitest'
import type { AdoptionSettings } from '../../shared/reconcile/adoption.ts'
import { act, giveWay, olderOperator, prepare, replacedByStranger, resumeAll, type Stage } from './acts.ts'
import { expectPeace } from './peace.ts'
import { type Simulation, simulation } from './world.ts'

/**
 * A seed decides all that goes wrong. `SEED=n npm run test:sim` runs one again; `SEEDS=n` runs so many, and they are
 * shared among as many files as there are cores on a small machine.
 */

/** How many files take a share of the seeds. */
const shares = 2

/** The seeds of one share, from 0. */
function seedsOf(share: number): number[] {
  const { SEED: one, SEEDS: count = 100 } = process.env
  const all = one ? [Number(one)] : Array.from({ length: Number(count) }, (_, n) => n + 1)
  return all.filter((_, index) => index % shares === share)
}

/** Of a story; many short ones find more than few long ones. */
const actsMax = 14

export interface Play {
  world: Simulation
  stage: Stage
}

/** A world in which a stranger now and then takes a child's name between the operator's look and its write. */
async function playOf(seed: number, adoption: AdoptionSettings): Promise<Play> {
  const world: Simulation = await simulation(seed, {
    adoption,
    beforeWrite: async (path) => {
      const name = /\/deployments\/([^/]+)$/.exec(path)?.[1]
      if (name !== undefined) await giveWay(replacedByStranger(stage, name))
    },
  })
  const { admin, clock, server } = world
  const stage: Stage = {
    admin,
    namespace: 'default',
    random: clock.random,
    strangers: new Set(),
    upsets: [
      () => server.restart({ history: clock.random() < 0.5 ? 'kept' : 'lost' }),
      () => server.compact(),
      () => clock.jumpWallClock((clock.random() - 0.5) * 7_200_000),
    ],
  }
  await prepare(stage, adoption.adoption === 'legacy')
  return { world, stage }
}

/** Plays the troubled part of a seed's story. */
export async function run(seed: number): Promise<Play> {
  const adoption: AdoptionSettings =
    seed % 3 === 0 ? { adoption: 'legacy', legacyManagers: [olderOperator] } : { adoption: 'label' }
  const play = await playOf(seed, adoption)
  const { world, stage } = play
  const { clock, state, held } = world
  let watchers = [await world.startWatcher('a'), await world.startWatcher('b')]
  await world.advance(5_000)
  state.isTroubled = true
  const acts = 3 + Math.floor(clock.random() * (actsMax - 2))
  for (let revision = 1; revision <= acts; revision++) {
    await act(stage, revision)
    const [first] = watchers
    const fate = clock.random()
    if (fate < 0.1) first?.pause()
    else if (fate < 0.3) first?.resume()
    else if (fate < 0.35) {
      first?.kill()
      watchers = [...watchers.slice(1), await world.startWatcher(`w-${revision}`)]
    }
    await world.advance(Math.ceil(clock.random() * 15_000))
    held.check()
  }
  state.isTroubled = false
  await resumeAll(stage)
  for (const [index, watcher] of watchers.entries()) {
    watcher.resume()
    // Some died by themselves.
    if (watcher.isDead()) await world.startWatcher(`late-${index}`)
  }
  return play
}

export function simulationSuite(share: number): void {
  const seeds = seedsOf(share)
  let kills = 0
  afterAll(() => {
    // Else the trouble was none.
    if (seeds.length > 1) expect(kills).toBeGreaterThan(0)
  })

  // A share may have none, when one seed is run again.
  describe.runIf(seeds.length > 0)('whatever goes wrong', () => {
    test.each(seeds)(
      'seed %i: nothing that must hold is broken, all converges within a resync of the end of the trouble, and then nothing is written',
      async (seed) => {
        const play = await run(seed)
        kills += play.world.state.kills
        await expectPeace(play)
        await play.world.stop()
      },
      120_000,
    )
  })
}
