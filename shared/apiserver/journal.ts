import { appendFileSync, existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeFolder } from '../folder.ts'
import type { StoredObject } from '../kinds/object.ts'
import type { Change } from './store.ts'

/** What a server finds in its folder: its objects, and the revision it had come to. */
export interface Recovered {
  revision: number
  objects: { storage: string; key: string; object: StoredObject }[]
}

interface Line {
  revision: number
  storage: string
  key: string
  /** Absent for a deletion. */
  object?: StoredObject
}

const fileName = 'journal.jsonl'

/**
 * Reads the journal in `folder` (made if it is missing), and begins a new one with only what still stands. A last line that was
 * torn in the middle is left out: that write alone is lost. Throws for a line that is broken elsewhere.
 */
export function recover(folder: string): Recovered {
  makeFolder(folder, 0o700)
  const file = join(folder, fileName)
  const lines = existsSync(file) ? linesOf(readFileSync(file, 'utf8'), file) : []
  const objects = new Map<string, Line & { object: StoredObject }>()
  let revision = 0
  for (const line of lines) {
    revision = Math.max(revision, line.revision)
    const id = `${line.storage}\0${line.key}`
    if (line.object) objects.set(id, { ...line, object: line.object })
    else objects.delete(id)
  }
  const standing = [...objects.values()]
  const text = standing.map((line) => `${JSON.stringify({ ...line, revision })}\n`).join('')
  writeFileSync(`${file}.new`, text, { mode: 0o600 })
  renameSync(`${file}.new`, file)
  return { revision, objects: standing }
}

function linesOf(text: string, file: string): Line[] {
  const parts = text.split('\n')
  // What follows the last line feed was being written when the process ended.
  return parts.slice(0, -1).map((part, index) => {
    try {
      return JSON.parse(part) as Line
    } catch (cause) {
      throw new Error(`Cannot read line ${index + 1} of ${file}`, { cause })
    }
  })
}

/** Gives what writes each change to the journal in `folder`, before whoever made it is answered. */
export function journal(folder: string): (change: Change) => void {
  const file = join(folder, fileName)
  return ({ type, revision, storage, key, object }) => {
    const line: Line = { revision, storage, key, ...(type !== 'DELETED' && { object }) }
    appendFileSync(file, `${JSON.stringify(line)}\n`)
  }
}
