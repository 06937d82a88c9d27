import { statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { makeFolder } from '../shared/folder.ts'
import { newFolder } from './support/folder.ts'

it('a folder is made with those above it, and may be there already', () => {
  const path = join(newFolder(), 'a', 'b')
  makeFolder(path, 0o700)
  makeFolder(path)
  expect(statSync(path).mode & 0o777).toBe(0o700)
})

it.each([
  ['', 'a file has that name'],
  ['/below', 'a file has that name'],
])('where a file stands in its way it says so (%j)', (below, why) => {
  const file = join(newFolder(), 'file')
  writeFileSync(file, '')
  expect(() => makeFolder(file + below)).toThrow(`Cannot make the folder ${file}: ${why}`)
})

it.runIf(process.platform === 'linux')(
  'where nothing can be made it says so, and does not ask for ever',
  () => {
    expect(() => makeFolder('/proc/none/here')).toThrow('Cannot make the folder /proc/none: ')
  },
)
