import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { CloudEvent } from '../../shared/cloudevents/event.ts'
import { disordered } from '../../shared/cloudevents/replay.ts'
import { readTape, tapeLine } from '../../shared/cloudevents/tape.ts'
import type { Transport } from '../../shared/kube/client.ts'
import { ended, type Playing, shrunk, wishesOf } from './play.ts'

/**
 * However a tape comes (in any order, with repeats and losses, one after the other or all at once, while the objects
 * change), after one resync the children are what the specs ask for, and then nothing is written. What is wanted is worked
 * out here, not by the code under test. What does not hold is shrunk, and the tape that shows it stands in the failure.
 */

const folder = join(import.meta.dirname, 'tapes')
const tapes = readdirSync(folder).map(
  (file) => [file, readTape(readFileSync(join(folder, file), 'utf8'))] as const,
)
const runs = Number(process.env.RUNS ?? 12)
/** `REPLAY_SEED=n npm run test:replay` plays as a failure says that it was played. */
const seed = Number(process.env.REPLAY_SEED ?? 20_261_201)

/** Throws, with the tape that shows it, when there is a disorder of the tape that does not end well. */
async function holds(tape: CloudEvent[], broken?: Playing['broken']): Promise<void> {
  const disorder = fc.record({
    shuffle: fc.boolean(),
    repeat: fc.constantFrom(0, 0.3, 1),
    drop: fc.constantFrom(0, 0.3, 0.8),
    seed: fc.nat(1_000_000),
    isApart: fc.boolean(),
  })
  const property = fc.asyncProperty(disorder, async ({ isApart, ...bent }) => {
    const { played } = disordered(tape, bent)
    expect(await ended(played, { about: tape, isApart, broken })).toEqual({
      wrong: [],
      writes: [],
      broken: [],
    })
  })
  const result = await fc.check(property, {
    seed,
    examples: [
      [{ shuffle: false, repeat: 0, drop: 0, seed: 1, isApart: true }],
      [{ shuffle: true, repeat: 0.3, drop: 0.8, seed: 1, isApart: false }],
    ],
    numRuns: tape.length > 100 ? Math.max(2, Math.ceil(runs / 4)) : runs,
  })
  if (!result.failed) return
  const [bent] = result.counterexample ?? []
  const shown = bent ? await shrunk(disordered(tape, bent).played, { isApart: bent.isApart, broken }) : []
  throw new Error(`REPLAY_SEED=${seed}; the tape that shows it:\n${shown.map(tapeLine).join('')}`, {
    cause: result.errorInstance,
  })
}

describe.each(tapes)('%s', (_, tape) => {
  test('is about something, and read as it was written', () => {
    expect(wishesOf(tape).length).toBeGreaterThan(0)
    expect(tape.length).toBeGreaterThan(2)
  })

  test('shuffled, repeated and with losses ends in what the specs ask for after one resync, and then writes nothing', async () => {
    await holds(tape)
  }, 120_000)
})

/** Deletes nothing, and says that it did. */
const keepsAll = (under: Transport): Transport => ({
  ...under,
  fetch: async (url, init) => {
    if (init.method !== 'DELETE') return under.fetch(url, init)
    return Response.json({ kind: 'Status', apiVersion: 'v1', status: 'Success' })
  },
})

test('the tape in the message of a failure is a small one, and shows it again from a file', async () => {
  const tape = readTape(readFileSync(join(folder, 'samples.jsonl'), 'utf8'))
  const failure: unknown = await holds(tape, keepsAll).catch((error: unknown) => error)
  const { message } = failure as Error
  const scratch = mkdtempSync(join(tmpdir(), 'shown-'))
  const file = join(scratch, 'tape.jsonl')
  writeFileSync(file, message.slice(message.indexOf('\n') + 1))
  const read = readTape(readFileSync(file, 'utf8'))
  rmSync(scratch, { recursive: true })
  expect(read).toHaveLength(1)
  const { wrong } = await ended(read, { broken: keepsAll, isApart: true })
  expect(wrong).toEqual([expect.stringMatching(/-blue 1 -/), '1 Deployments more than asked for'])
  expect(await ended(read, { isApart: true })).toEqual({ wrong: [], writes: [], broken: [] })
}, 60_000)
