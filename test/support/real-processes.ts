import { fileURLToPath } from 'node:url'
import { systemClock } from '../../shared/clock.ts'
import { type KnativeReport, type LocalKnative, localKnative } from '../../shared/local/knative.ts'
import { readManifests } from '../../shared/local/manifests/manifests.ts'
import type { ProcessSpec } from '../../shared/local/manifests/workloads.ts'
import { sourceProgram } from '../../shared/local/processes/launch.ts'

const knative = fileURLToPath(new URL('../../knative', import.meta.url))

/**
 * Starts the real processes as the manifests say (or those in another `folder`), each with the environment `env` over its
 * own. Without the cron, whose resync comes at a time that is none of a test's.
 */
export async function realProcesses(options: {
  env: (spec: ProcessSpec) => Record<string, string>
  report: (report: KnativeReport) => void
  folder?: string
}): Promise<LocalKnative> {
  const manifests = await readManifests(options.folder ?? knative)
  return localKnative({
    manifests: { ...manifests, pings: [] },
    launch: { program: sourceProgram, baseEnv: process.env, env: options.env },
    clock: systemClock,
    report: options.report,
  })
}
