import { mkdirSync, statSync } from 'node:fs'
import { dirname } from 'node:path'

/**
 * Makes a folder, and those above it, where they are missing; new ones get `mode`. Throws an error that names the folder
 * and says why. (Node's own `recursive` asks for ever where nothing can be made, as in /proc.)
 */
export function makeFolder(path: string, mode = 0o777): void {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) return
  const parent = dirname(path)
  if (parent !== path) makeFolder(parent, mode)
  try {
    mkdirSync(path, { mode })
  } catch (error) {
    // Another process may have been faster.
    if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) return
    throw new Error(`Cannot make the folder ${path}: ${whyOf(error)}`, { cause: error })
  }
}

const reasons: Record<string, string> = {
  EEXIST: 'a file has that name',
  ENOTDIR: 'a file has the name of a folder above it',
  EACCES: 'this user may not',
  EPERM: 'this user may not',
  EROFS: 'the file system is read-only',
  ENOENT: 'nothing can be made there',
  ENOSPC: 'the disk is full',
}

/** What keeps a file or folder from being made, in a few words. */
export function whyOf(error: unknown): string {
  const { code = '', message } = error as NodeJS.ErrnoException
  return reasons[code] ?? message
}
