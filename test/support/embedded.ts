import { type ApiServer, type ApiServerOptions, apiServer } from '../../shared/apiserver/server.ts'
import { systemClock } from '../../shared/clock.ts'
import { namespaces, type StoredObject } from '../../shared/kinds/object.ts'
import { kubeClient } from '../../shared/kube/client.ts'
import type { TestApi } from './world.ts'

/**
 * An embedded API, in process, as the suites take it; `server` is to be stopped. With `rollout: false` no Deployment gets
 * ready but by the test's own hand.
 */
export function embeddedApi(options: ApiServerOptions = {}): TestApi & { server: ApiServer } {
  const server = apiServer(options)
  const admin = kubeClient({ transport: server.transport(), clock: systemClock, userAgent: 'test' })
  return {
    server,
    transport: () => server.transport(),
    async newNamespace() {
      const object = { apiVersion: 'v1', kind: 'Namespace', metadata: { generateName: 'test-' } }
      return (await admin.create<StoredObject>(namespaces, object)).metadata.name
    },
  }
}
