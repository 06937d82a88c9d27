import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, describe, expect, test } from 'vitest'
import { pingType } from '../../shared/cloudevents/envelope.ts'
import type { CloudEvent } from '../../shared/cloudevents/event.ts'
import { disordered } from '../../shared/cloudevents/replay.ts'
import { readTape, tapeLine } from '../../shared/cloudevents/tape.ts'
import { mutantKinds } from '../../shared/kinds/mutants.ts'
import { simulation } from '../simulation/world.ts'
import { base, mutant } from '../support/builders.ts'
import { stateOf } from '../support/state.ts'

/**
 * However a tape comes (in any order, with repeats and losses), after one resync the objects are the same, and then
 * nothing is written. What does not hold is shrunk, and the tape that shows it stands in the failure.
 */

const folder = join(import.meta.dirname, 'tapes')
const tapes = readdirSync(folder).map(
  (file) => [file, readTape(readFileSync(join(folder, file), 'utf8'))] as const,
)
const namespace = 'default'
const runs = Number(process.env.RUNS ?? 4)

const ping: CloudEvent = { specversion: '1.0', id: 'resync', source: '/cron', type: pingType, extensions: {} }

/** The objects that a tape is about. */
function objectsOf(tape: readonly CloudEvent[]) {
  const named = tape.flatMap(({ extensions: { kind, name } }) => {
    const ours = mutantKinds.find((one) => one.kind === kind)
    return ours && name ? [[`${kind}/${name}`, mutant(ours, name)] as const] : []
  })
  return [...new Map(named).values()].map((object) =>
    object
      .in(namespace)
      .on(base(`of-${object.kind.kind.toLowerCase()}-${object.name}`))
      .with('red', 2)
      .with('blue'),
  )
}

/** Plays it against the functions in a world where its objects are new; gives how that ends. */
async function ended(played: readonly CloudEvent[], tape: readonly CloudEvent[]) {
  // Of pods that get ready only a watcher would tell.
  const world = await simulation(1, { rollout: false })
  for (const object of objectsOf(tape)) await world.admin.create(object.kind, object.object())
  for (const event of played) world.accept(event)
  await world.advance(1_000)
  world.accept({ ...ping })
  await world.advance(1_000)
  const { broken } = world.held
  const state = await stateOf(world.admin)
  world.state.writes.length = 0
  for (const event of played.slice(0, 20)) world.accept(event)
  world.accept({ ...ping, id: 'again' })
  await world.advance(1_000)
  const { writes } = world.state
  await world.stop()
  return { state, writes, broken }
}

describe.each(tapes)('%s', (_, tape) => {
  let wanted: unknown[] | undefined
  afterAll(() => {
    wanted = undefined
  })

  test('is about something, and read as it was written', () => {
    expect(objectsOf(tape).length).toBeGreaterThan(0)
    expect(tape.length).toBeGreaterThan(2)
  })

  test('shuffled, repeated and with losses ends in the same objects after one resync, and then writes nothing', async () => {
    wanted = (await ended(tape, tape)).state
    const disorder = fc.record({
      shuffle: fc.boolean(),
      repeat: fc.constantFrom(0, 0.3, 1),
      drop: fc.constantFrom(0, 0.3, 0.8),
      seed: fc.nat(1_000_000),
    })
    const property = fc.asyncProperty(disorder, async (bent) => {
      const { played } = disordered(tape, bent)
      const end = await ended(played, tape)
      expect(end).toEqual({ state: wanted, writes: [], broken: [] })
    })
    const result = await fc.check(property, {
      examples: [[{ shuffle: true, repeat: 0.3, drop: 0.8, seed: 1 }]],
      numRuns: tape.length > 100 ? Math.ceil(runs / 4) : runs,
    })
    if (!result.failed) return
    const [bent] = result.counterexample ?? []
    const shown = bent ? await shrunk(disordered(tape, bent).played, tape, wanted ?? []) : []
    throw new Error(`The tape that shows it:\n${shown.map(tapeLine).join('')}`, {
      cause: result.errorInstance,
    })
  }, 120_000)
})

/** Leaves out events as long as what is left still shows it: halves, then quarters, and so on. */
async function shrunk(played: CloudEvent[], tape: readonly CloudEvent[], wanted: unknown[]) {
  const shows = async (events: CloudEvent[]) => {
    const { state, writes, broken } = await ended(events, tape)
    return writes.length > 0 || broken.length > 0 || JSON.stringify(state) !== JSON.stringify(wanted)
  }
  let left = played
  for (let length = Math.ceil(left.length / 2); length > 0; length = Math.floor(length / 2))
    for (let from = 0; from < left.length; ) {
      const fewer = left.toSpliced(from, length)
      if (await shows(fewer)) left = fewer
      else from += length
    }
  return left
}
