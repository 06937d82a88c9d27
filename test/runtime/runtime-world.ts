import { Registry } from 'prom-client'
import { apiServer } from '../../shared/apiserver/server.ts'
import type { Clock } from '../../shared/clock.ts'
import { configMaps, events, leases, type StoredObject } from '../../shared/kinds/object.ts'
import { type KubeClient, kubeClient } from '../../shared/kube/client.ts'
import { type FaultyWire, faultyWire } from '../../shared/runtime/faulty-wire.ts'
import type { Lease } from '../../shared/runtime/lease.ts'
import { type KubernetesOptions, kubernetes } from '../../shared/runtime/plugin.ts'
import { type VirtualClock, virtualClock } from '../support/clock.ts'
import { silentLog } from './candidates.ts'

/** An embedded API on a virtual clock, a wire to it with faults, and a process with the plugin. */
export interface RuntimeWorld {
  clock: VirtualClock
  wire: FaultyWire
  registry: Registry
  lines: string[]
  /** The test's own hand, without faults. */
  admin: KubeClient
  process(options?: KubernetesOptions): ReturnType<typeof kubernetes>
  /** Runs `work` while time goes on as it needs; gives what it gives. */
  during<T>(work: Promise<T>, stepMs?: number): Promise<T>
  lease(): Promise<Lease | undefined>
  /** `Normal Started`, in the order in which they were written. */
  eventReasons(): Promise<string[]>
  putConfigMap(name: string, data: Record<string, string>): Promise<void>
  metric(line: string): Promise<string | undefined>
}

export const podEnv = { POD_NAME: 'web-1', POD_NAMESPACE: 'default', POD_UID: 'uid-of-web-1' }
export const leading = { leaderElection: { enabled: true, leaseName: 'work' } }

export function runtimeWorld(): RuntimeWorld {
  const clock = virtualClock()
  const server = apiServer({ clock, rollout: false })
  const wire = faultyWire(server.transport(), clock)
  const clientOn = (on: Clock, transport = server.transport()) =>
    kubeClient({ transport, clock: on, userAgent: 'test' })
  const admin = clientOn(clock)
  const registry = new Registry()
  const lines: string[] = []

  return {
    clock,
    wire,
    registry,
    lines,
    admin,
    process: (options = {}) =>
      kubernetes({
        env: podEnv,
        clock,
        registry,
        log: silentLog(lines),
        connect: async () => wire,
        config: {},
        namespaceFile: '/nowhere',
        labelsFile: '/nowhere',
        ...options,
      }),
    async during(work, stepMs = 50) {
      let over = false
      const ended = () => {
        over = true
      }
      work.then(ended, ended)
      for (let step = 0; !over && step < 5_000; step++) await clock.advance(stepMs)
      return work
    },
    lease: () => admin.get<Lease>(leases, { namespace: 'default', name: 'work' }),
    async eventReasons() {
      const { items } = await admin.list<StoredObject>(events, { namespace: 'default' })
      return items
        .toSorted((a, b) => Number(a.metadata.resourceVersion) - Number(b.metadata.resourceVersion))
        .map(({ type, reason }) => `${type} ${reason}`)
    },
    async putConfigMap(name, data) {
      const metadata = { name, namespace: 'default' }
      const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata, data }
      await admin.apply(configMaps, object, { fieldManager: 'test' })
    },
    async metric(line) {
      const text = await registry.metrics()
      return text
        .split('\n')
        .find((each) => each.startsWith(`${line} `))
        ?.slice(line.length + 1)
    },
  }
}
