import { expect, test } from 'vitest'
import { run } from './suite.ts'

test('a seed that is run again makes the same requests and the same events, in the same order', async () => {
  const traceOf = async (seed: number) => {
    const world = await run(seed)
    await world.stop()
    return world.state.trace
  }
  const [first, again, other] = [await traceOf(7), await traceOf(7), await traceOf(8)]
  expect(first.length).toBeGreaterThan(100)
  expect(again).toEqual(first)
  expect(other).not.toEqual(first)
}, 60_000)
