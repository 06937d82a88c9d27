import { afterAll } from 'vitest'
import { apiServer } from '../../shared/apiserver/server.ts'
import { systemClock } from '../../shared/clock.ts'
import type { StoredObject } from '../../shared/kinds/object.ts'
import { namespaces } from '../../shared/kinds/object.ts'
import { kubeClient } from '../../shared/kube/client.ts'
import { functionsSuite } from './suite.ts'

const server = apiServer()
afterAll(() => server.stop())
const admin = kubeClient({ transport: server.transport(), clock: systemClock, userAgent: 'test' })

functionsSuite({
  transport: () => server.transport(),
  async newNamespace() {
    const object = { apiVersion: 'v1', kind: 'Namespace', metadata: { generateName: 'test-' } }
    return (await admin.create<StoredObject>(namespaces, object)).metadata.name
  },
})
