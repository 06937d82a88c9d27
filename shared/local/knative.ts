import { Hono } from 'hono'
import { Agent, fetch as undiciFetch } from 'undici'
import type { Clock } from '../clock.ts'
import { type CronReport, cronJobs } from './cron.ts'
import { type BrokerReport, broker } from './events/broker.ts'
import type { Post } from './events/dispatch.ts'
import { listenLocally } from './listen.ts'
import { brokerUrl, placeOf } from './manifests/addresses.ts'
import type { Manifests } from './manifests/manifests.ts'
import type { ProcessSpec } from './manifests/workloads.ts'
import { activator } from './processes/activator.ts'
import { commandOf, type LaunchOptions } from './processes/launch.ts'
import { startProcess } from './processes/process.ts'
import type { RevisionReport } from './processes/revision.ts'
import { type SupervisorReport, supervisor } from './processes/supervisor.ts'

export type KnativeReport =
  | { from: 'broker'; report: BrokerReport }
  | { from: 'function'; report: RevisionReport }
  | { from: 'process'; report: SupervisorReport }
  | { from: 'cron'; report: CronReport }
  /** A line that a process printed. */
  | { from: 'output'; name: string; line: string }

export interface KnativeOptions {
  manifests: Manifests
  launch: Omit<LaunchOptions, 'localUrl'>
  clock: Clock
  report(report: KnativeReport): void
}

export interface LocalKnative {
  /** Where events of this machine are taken: `URL/NAMESPACE/BROKER`. */
  brokerUrl: string
  /** Where functions can be called directly: `URL/NAMESPACE/NAME`. */
  functionsUrl: string
  /** Resolves when the processes that always run are ready. */
  ready: Promise<void>
  /** Ends everything, in reverse order; gives how many deliveries were not made. */
  stop(): Promise<number>
}

/** Starts Broker, functions, cron and always-running processes of the manifests on this machine. */
export async function localKnative(options: KnativeOptions): Promise<LocalKnative> {
  const { manifests, clock, report } = options
  const outside = new Agent()
  const send = ((url, init) => undiciFetch(url, { ...init, dispatcher: outside } as never)) as Post

  /** In-cluster names lead to the parts below; all else is the network. */
  const post: Post = async (url, init) => {
    const place = placeOf(url)
    if (place.kind === 'broker') return events.app.fetch(new Request(url, init))
    if (place.kind === 'outside') return send(url, init)
    return functions.fetch(place.namespace, place.name, new URL(url).pathname, init)
  }
  // First, since a schedule that is none throws before anything has started.
  const cron = cronJobs({
    pings: manifests.pings,
    post,
    clock,
    report: (one) => report({ from: 'cron', report: one }),
  })
  const events = broker({
    brokers: manifests.brokers,
    subscriptions: manifests.subscriptions,
    brokerUrl,
    post,
    clock,
    report: (one) => report({ from: 'broker', report: one }),
  })
  const ingress = await listenLocally(events.app)
  const localUrl = (url: string) => ingress.url + new URL(url).pathname
  const start = (spec: ProcessSpec, port: number) => {
    const onLine = (line: string) => report({ from: 'output', name: spec.name, line })
    return startProcess(commandOf(spec, port, { ...options.launch, localUrl }), clock, onLine)
  }
  const functions = activator({
    services: manifests.services,
    clock,
    start,
    report: (one) => report({ from: 'function', report: one }),
  })
  const front = await listenLocally(new Hono().route('/', functions.app))
  const processes = manifests.processes.map((spec) =>
    supervisor({
      spec,
      clock,
      send,
      start: (port) => start(spec, port),
      report: (one) => report({ from: 'process', report: one }),
    }),
  )
  return {
    brokerUrl: ingress.url,
    functionsUrl: front.url,
    ready: Promise.all(processes.map((one) => one.ready)).then(() => {}),
    async stop() {
      await cron.stop()
      await Promise.all(processes.map((one) => one.stop()))
      const dropped = await events.stop()
      await Promise.all([ingress.close(), front.close()])
      await functions.stop()
      await outside.destroy()
      return dropped
    },
  }
}
