import { expect, it } from 'vitest'
import { settingsOf, type WatcherSettings } from '../../shared/watching/settings.ts'

const defaults: WatcherSettings = { logLevel: 'info', foldWithinMs: 50, concurrency: 32, paused: false }
const current: WatcherSettings = { logLevel: 'debug', foldWithinMs: 5, concurrency: 3, paused: true }

it('what is absent is as by default, whatever it was before', () => {
  expect(settingsOf({}, defaults, current)).toEqual({ settings: defaults, problems: [] })
})

it('each setting is read from its text', () => {
  const data = { logLevel: 'warn', foldWithinMs: ' 0\n', concurrency: '7', paused: 'true' }
  expect(settingsOf(data, defaults, current)).toEqual({
    settings: { logLevel: 'warn', foldWithinMs: 0, concurrency: 7, paused: true },
    problems: [],
  })
})

it.each([
  ['logLevel', 'loud'],
  ['logLevel', ''],
  ['foldWithinMs', '-1'],
  ['foldWithinMs', '60001'],
  ['foldWithinMs', '1e3'],
  ['concurrency', '0'],
  ['concurrency', '1001'],
  ['concurrency', '3.5'],
  ['paused', 'yes'],
  ['paused', 'True'],
] as const)('%s: %j is named as a problem, and stays as it is', (key, text) => {
  const { settings, problems } = settingsOf({ [key]: text }, defaults, current)
  expect(settings).toEqual({ ...defaults, [key]: current[key] })
  expect(problems).toEqual([expect.stringMatching(new RegExp(`^${key} is not `))])
})

it.each(['pause', 'constructor', '__proto__'])('a key %s is named as a problem', (key) => {
  const data = Object.fromEntries([[key, 'true']])
  const { settings, problems } = settingsOf(data, defaults, current)
  expect(settings).toEqual(defaults)
  expect(problems).toEqual([expect.stringContaining(`${key} is no setting; there are logLevel, `)])
})
