import type { TestProject } from 'vitest/node'
import { binaries } from './binaries.ts'
import { startControlPlane } from './start.ts'

/**
 * Starts one real control plane for the whole project `cluster`, building it where it is missing. Without it the
 * project fails and says what is missing: these tests are never skipped silently.
 */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const plane = await startControlPlane({ binaries: await binaries(console.log) })
  project.provide('cluster', plane.connection)
  return plane.stop
}
