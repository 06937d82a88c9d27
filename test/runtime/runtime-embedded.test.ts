import { afterAll } from 'vitest'
import { apiServer } from '../../shared/apiserver/server.ts'
import { systemClock } from '../../shared/clock.ts'
import { namespaces, type StoredObject } from '../../shared/kinds/object.ts'
import { kubeClient, type Transport } from '../../shared/kube/client.ts'
import { faultyWire } from '../../shared/runtime/faulty-wire.ts'
import { runtimeContract } from './runtime-contract.ts'

const server = apiServer()
afterAll(() => server.stop())

const clientOf = (transport: Transport) => kubeClient({ transport, clock: systemClock, userAgent: 'test' })
const client = () => clientOf(server.transport())

runtimeContract('the embedded API', {
  client,
  async newNamespace() {
    const object = { apiVersion: 'v1', kind: 'Namespace', metadata: { generateName: 'test-' } }
    return (await client().create<StoredObject>(namespaces, object)).metadata.name
  },
  async deniedConfigMaps() {
    const wire = faultyWire(server.transport(), systemClock)
    wire.fault = ({ path }) => (path.includes('/configmaps') ? { status: 403 } : undefined)
    return {
      client: clientOf(wire),
      async allow() {
        wire.fault = () => undefined
      },
    }
  },
})
