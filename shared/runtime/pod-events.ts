import { type Clock, withTimeout } from '../clock.ts'
import type { KubeClient } from '../kube/client.ts'
import type { Logger } from '../log.ts'
import type { Leadership } from './leadership.ts'
import { microTime } from './lease.ts'
import type { PodInfo } from './pod-info.ts'
import { type EventMetrics, recorder } from './recorder.ts'

/** Tells the life of this process as Kubernetes Events on its pod. */
export interface PodEvents {
  started(): void
  /** From now on tells each change of `leadership`. Returns how to stop it: a planned end is no warning. */
  follow(leadership: Leadership, lease: string): () => void
  /** Waits for it, at most 2 s. */
  stopping(): Promise<void>
}

export interface PodEventOptions {
  client: KubeClient
  clock: Clock
  log: Logger
  pod: PodInfo & { readonly name: string }
  namespace: string
  metrics?: EventMetrics | undefined
}

/** How long the last event may hold up the shutdown, in ms. */
const stoppingTimeoutMs = 2_000

export function podEvents(options: PodEventOptions): PodEvents {
  const { clock, log, pod, namespace } = options
  const write = recorder({ ...options, controller: 'neiam.org/mutantops-runtime', instance: pod.name })
  const regarding = {
    apiVersion: 'v1',
    kind: 'Pod',
    name: pod.name,
    namespace,
    ...(pod.uid !== undefined && { uid: pod.uid }),
  }
  // One after the other, so that they are told in the order in which they happened.
  let last: Promise<unknown> = Promise.resolve()

  function tell(reason: string, note: string, type: 'Normal' | 'Warning' = 'Normal'): Promise<unknown> {
    // Each time is news: a second LeaderElected is not a repeat of the first.
    const sameness = `${microTime(clock.now())} ${clock.random()}`
    last = last.then(() => write.record({ regarding, type, reason, action: reason, note, sameness }))
    return last
  }
  const tellInTheBackground = (...event: Parameters<typeof tell>) => {
    tell(...event).catch((error) => log.error({ err: error }, 'Kubernetes Event not written'))
  }

  return {
    started: () => tellInTheBackground('Started', 'The process has started'),
    follow: (leadership, lease) =>
      leadership.subscribe(({ leading }) => {
        if (leading) tellInTheBackground('LeaderElected', `Leads by the Lease ${lease}`)
        else tellInTheBackground('LeaderLost', `No longer leads by the Lease ${lease}`, 'Warning')
      }),
    async stopping() {
      const told = () => tell('Stopping', 'The process is stopping')
      await withTimeout(clock, stoppingTimeoutMs, 'The last Kubernetes Event', told).catch((error) =>
        log.warn({ err: error }, 'Kubernetes Event not written'),
      )
    },
  }
}
