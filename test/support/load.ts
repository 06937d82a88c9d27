import { spawnSync } from 'node:child_process'

/** How long an idle machine of two cores takes to start Node and end it, rounded up, in ms. */
const quietStartMs = 100

/**
 * By how much this machine is slower now than an idle one: 1 or more. A promise in seconds is made for a machine that
 * does nothing else; a test that shares its machine multiplies by this.
 */
export function loadFactor(): number {
  const startedMs = performance.now()
  for (let n = 0; n < 3; n++) spawnSync(process.execPath, ['-e', '0'])
  return Math.max(1, (performance.now() - startedMs) / 3 / quietStartMs)
}
