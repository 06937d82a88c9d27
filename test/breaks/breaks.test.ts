import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { breaks } from './breaks.ts'

const repository = fileURLToPath(new URL('../../', import.meta.url))

test.each(breaks.map((one) => [`${one.promise}: ${one.what}`, one] as const))(
  '%s: still says what to break',
  (_, { file, find, replace }) => {
    expect(readFileSync(repository + file, 'utf8').split(find)).toHaveLength(2)
    expect(replace).not.toBe(find)
  },
)

test('no two breaks are called the same', () => {
  const names = breaks.map(({ promise, what }) => `${promise}: ${what}`)
  expect(new Set(names).size).toBe(names.length)
})
