import type { TestProject } from 'vitest/node'
import { systemClock } from '../../shared/clock.ts'
import { kubeClient } from '../../shared/kube/client.ts'
import { connect } from '../../shared/kube/connect.ts'
import { installCrds } from '../support/crds.ts'
import { binaries } from './binaries.ts'
import { type ClusterConnection, startControlPlane } from './start.ts'

/**
 * Starts one real control plane for the whole project `cluster`, building it where it is missing. Without it the
 * project fails and says what is missing: these tests are never skipped silently.
 */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const plane = await startControlPlane({ binaries: await binaries(console.log), prepare: installOurs })
  project.provide('cluster', plane.connection)
  return plane.stop
}

/** The garbage collector looks for new kinds only every 30 s, so it must find ours when it starts. */
async function installOurs({ kubeconfigFile }: ClusterConnection): Promise<void> {
  const transport = await connect({ env: {}, kubeconfig: kubeconfigFile })
  await installCrds(kubeClient({ transport, clock: systemClock, userAgent: 'mutantops-test' }))
  await transport.close()
}
