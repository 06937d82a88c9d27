import { lazyMetrics } from '../../functions/metrics.ts'
import { type WatcherContext, watcherApp } from '../../functions/watcher.ts'
import { systemClock } from '../../shared/clock.ts'
import { sink } from '../../shared/cloudevents/sink.ts'
import type { KubeClient } from '../../shared/kube/client.ts'
import { createLog } from '../../shared/log.ts'
import { testSink } from './function.ts'

/** Short, so that a test of a takeover does not take half a minute. */
export const quickElection = { leaseDurationSeconds: 3, renewDeadlineSeconds: 2, retryPeriodSeconds: 0.5 }

export type WatcherRun = Awaited<ReturnType<typeof startWatcher>>

/** Starts a watcher of one namespace in this process, sending to `url`; gives how to look at it and how it stops. */
export async function startWatcher(
  client: KubeClient,
  namespace: string,
  url: string,
  options: Partial<WatcherContext> = {},
  identity = 'test',
) {
  const lines: Record<string, unknown>[] = []
  const out = sink({ url, clock: systemClock, userAgent: 'mutantops-test' })
  const watcher = watcherApp({
    client,
    clock: systemClock,
    log: createLog({ name: identity, destination: { write: (line) => lines.push(JSON.parse(line)) } }),
    sink: out,
    metrics: lazyMetrics(),
    cluster: 'here',
    namespaces: [namespace],
    election: { ...quickElection, namespace, leaseName: 'watcher', identity },
    ...options,
  })
  const stop = await watcher.start()
  return {
    app: watcher.app,
    lines,
    ready: async () => (await watcher.app.request('/readyz')).json() as Promise<Record<string, unknown>>,
    metrics: async () => (await watcher.app.request('/metrics')).text(),
    async stop() {
      await stop()
      await out.close()
    },
  }
}

/** A sink that tells events in words: `applied Mutation web`, `resync`. */
export async function wordSink(...rest: Parameters<typeof testSink>) {
  const recorded = await testSink(...rest)
  const words = () =>
    recorded.events.map(({ type, extensions: { kind, name } }) =>
      type === 'org.neiam.resync.requested' ? 'resync' : `${type.split('.').at(-1)} ${kind} ${name}`,
    )
  return { ...recorded, words, clear: () => void recorded.events.splice(0) }
}
