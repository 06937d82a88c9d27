import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll } from 'vitest'

const folders: string[] = []
afterAll(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
})

/** A new empty folder, gone when the tests of the file have ended. */
export function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'mutantops-test-'))
  folders.push(folder)
  return folder
}
