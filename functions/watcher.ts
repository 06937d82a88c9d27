import { Hono } from 'hono'
import type { Sink } from '../shared/cloudevents/sink.ts'
import type { InformerLimits } from '../shared/kube/informer.ts'
import { concurrencyDefault, foldWithinMsDefault } from '../shared/kube/workqueue.ts'
import { type Elector, elector } from '../shared/runtime/elector.ts'
import { type LeaderTasks, leaderTasks } from '../shared/runtime/leader-tasks.ts'
import { type LeaseSettings, stopTimeoutMs } from '../shared/runtime/lease.ts'
import { type Forwarding, forwarding } from '../shared/watching/forward.ts'
import type { WatcherSettings } from '../shared/watching/settings.ts'
import type { FunctionContext } from './context.ts'
import { countWatch, noteState } from './watcher-metrics.ts'
import { type LiveSettings, liveSettings } from './watcher-settings.ts'

export const watcherConfigMap = 'mutantops-watcher'

export interface WatcherContext
  extends Pick<FunctionContext, 'client' | 'clock' | 'log' | 'metrics' | 'cluster'> {
  sink: Sink
  /** Undefined means all of them. */
  namespaces: string[] | undefined
  /** The Lease that decides which of several watchers works. */
  election: LeaseSettings
  /** The ConfigMap beside the Lease that changes settings while it runs. Default mutantops-watcher. */
  configMap?: string
  /** Where no cron asks for it: how often a resync is asked for, and a full one, in ms. */
  resyncEveryMs?: number | undefined
  fullResyncEveryMs?: number | undefined
  limits?: Partial<InformerLimits>
}

export interface Watcher {
  app: Hono
  /** Begins to campaign, and to forward while it leads; gives how it stops (the Lease is released). */
  start(): Promise<() => Promise<void>>
}

/**
 * The watcher: the only process that always runs. Of several one leads; it turns what changes in the cluster into
 * events at the sink. `/livez`, `/readyz` (with who leads and which watches do not stand) and `/metrics`. A ConfigMap
 * changes how much it logs, how it folds, how many events are on their way, and whether any are, while it runs.
 *
 * It is made of the plugin's parts (elector, leader tasks, live ConfigMaps) and not of `kubernetes()` whole: that one reads
 * its configuration in layers, with a schema, and has prom-client from the start, which is a third more memory in the one
 * process that always runs.
 */
export function watcherApp(ctx: WatcherContext): Watcher {
  const campaign = elector(leaseOf(ctx))
  const { client, clock, log } = ctx
  const settings: LiveSettings = liveSettings({
    client,
    clock,
    log,
    namespace: ctx.election.namespace,
    configMap: ctx.configMap ?? watcherConfigMap,
    defaults: defaultSettings(log.level),
    onChange({ logLevel }) {
      log.level = logLevel
      forwards.wake()
    },
  })
  const forwards: Forwarding = forwarding({
    ...ctx,
    isLeader: campaign.isLeader,
    settings: settings.now,
    onAnswer: (status) => ctx.metrics.note('mutantops_watcher_sends_total', { status: String(status) }),
    onCount: (kind, what) => countWatch(ctx.metrics, kind, what),
    onDrop: () => ctx.metrics.note('mutantops_controller_errors_total', { error: 'queue' }),
  })
  let phase: 'starting' | 'running' | 'stopping' = 'starting'

  const app = new Hono()
  app.get('/livez', (c) => c.json({ status: 'alive' }))
  app.get('/readyz', (c) =>
    c.json(
      { status: phase, ...reportOf(campaign, forwards, settings.now()) },
      phase === 'running' ? 200 : 503,
    ),
  )
  app.get('/metrics', async (c) => {
    const { leading } = campaign.state()
    noteState(ctx.metrics, forwards.state(), { leading, paused: settings.now().paused })
    const { text, contentType } = await ctx.metrics.text()
    return c.body(text, 200, { 'content-type': contentType })
  })

  return {
    app,
    async start() {
      const stopping = new AbortController()
      const tasks = leaderTasks({
        ...ctx,
        leadership: campaign,
        tasks: [{ name: 'forward', run: forwards.run }],
        stopTimeoutMs: stopTimeoutMs(ctx.election),
      })
      const campaigning = campaign.run(stopping.signal)
      const following = settings.run(stopping.signal)
      phase = 'running'
      let stopped: Promise<void> | undefined
      return () => {
        phase = 'stopping'
        stopped ??= stop({ tasks, campaign, others: [campaigning, following], stopping })
        return stopped
      }
    },
  }
}

function defaultSettings(logLevel: string): WatcherSettings {
  return { logLevel, foldWithinMs: foldWithinMsDefault, concurrency: concurrencyDefault, paused: false }
}

function leaseOf({ client, clock, log, election }: WatcherContext) {
  return { client, clock, log, ...election }
}

/** What a person wants to know when no events come. Names only what the configuration or the code names. */
function reportOf(campaign: Elector, forwards: Forwarding, { paused }: WatcherSettings) {
  const { leading, reachable } = campaign.state()
  const state = forwards.state()
  return {
    leader: { lease: campaign.leaseName, leading, reachable },
    paused,
    ...(state && { sink: state.sinkIsWell ? 'up' : 'down', interrupted: state.interrupted }),
  }
}

interface Started {
  tasks: LeaderTasks
  campaign: Elector
  others: Promise<void>[]
  stopping: AbortController
}

/** The tasks end, then the Lease is released, so that the successor leads at once and never beside this process. */
async function stop({ tasks, campaign, others, stopping }: Started): Promise<void> {
  const { abandoned } = await tasks.stop()
  await campaign.stop({ release: abandoned.length === 0 })
  stopping.abort(new Error('The watcher was stopped'))
  await Promise.all(others)
}
