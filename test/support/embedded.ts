import { type ApiServer, apiServer } from '../../shared/apiserver/server.ts'
import { systemClock } from '../../shared/clock.ts'
import { namespaces, type StoredObject } from '../../shared/kinds/object.ts'
import { kubeClient } from '../../shared/kube/client.ts'
import type { TestApi } from './world.ts'

/** An embedded API as the suites take it; `server` is to be stopped. */
export function embeddedApi(): TestApi & { server: ApiServer } {
  const server = apiServer()
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
