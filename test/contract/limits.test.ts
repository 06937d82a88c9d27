import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { embeddedLimits, embeddedSkips } from './skips.ts'

const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8')

test('the README tells each limit of the embedded API, and that nothing else is left out', () => {
  for (const limit of embeddedLimits) expect(readme).toContain(`- ${limit}.`)
  expect(embeddedSkips).toEqual({})
  expect(readme).toContain('No test of the contract is skipped for it')
})
