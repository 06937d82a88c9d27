import { expect, test } from 'vitest'
import { run } from './suite.ts'

test('a seed that is run again makes the same requests and the same events, in the same order', async () => {
  const traceOf = async (seed: number) => {
    const { world } = await run(seed)
    await world.stop()
    return world.state.trace
  }
  let requests = 0
  for (const seed of [7, 8, 9, 10]) {
    const [first, again, other] = [await traceOf(seed), await traceOf(seed), await traceOf(seed + 1)]
    expect(again).toEqual(first)
    expect(other).not.toEqual(first)
    requests += first.length
  }
  expect(requests).toBeGreaterThan(100)
}, 60_000)
