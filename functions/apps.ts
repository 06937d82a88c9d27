import { setFlagsFromString } from 'node:v8'
import type { Hono } from 'hono'
import type { Sink } from '../shared/cloudevents/sink.ts'
import { sinkNames } from '../shared/cloudevents/sink-config.ts'
import { version } from '../shared/version.ts'
import type { FunctionConfig } from './config.ts'
import type { FunctionContext } from './context.ts'

/** One process's app, and what must be undone when it ends. */
export interface App {
  app: Pick<Hono, 'fetch'>
  stop?(): Promise<void>
}

/** After which a broker may try again what came before a SinkBinding. */
const sinkRetrySeconds = 10

export type MakeApp = (ctx: FunctionContext, config: FunctionConfig) => Promise<App>

/** The functions by name. Each is loaded only when it is the one asked for: every module costs time at a cold start. */
export const apps: Record<string, MakeApp> = {
  mutation: async (ctx, config) => {
    const { mutationApp } = await import('./mutation.ts')
    return { app: mutationApp(await reconcilerContext(ctx, config)) }
  },
  'mutant-deployment': async (ctx, config) => {
    const { mutantDeploymentApp } = await import('./mutant-deployment.ts')
    return { app: mutantDeploymentApp(await reconcilerContext(ctx, config)) }
  },
  resync: resyncApp,
  watcher: watcherApp,
  'dead-letter': async (ctx, config) => {
    const { deadLetterApp } = await import('./dead-letter.ts')
    return { app: deadLetterApp({ ...ctx, record: await recorder(ctx, config) }) }
  },
}

async function resyncApp(ctx: FunctionContext, config: FunctionConfig): Promise<App> {
  if (!config.sink) return waitingForSink(ctx)
  const [{ resyncApp: make }, { sink }, { needsWork }] = await Promise.all([
    import('./resync.ts'),
    import('../shared/cloudevents/sink.ts'),
    import('../shared/reconcile/needs-work.ts'),
  ])
  const { clock } = ctx
  const out = await observedSink(
    ctx,
    sink({
      ...config.sink,
      clock,
      userAgent: userAgent(ctx.name),
      onReset: () => ctx.metrics.note('mutantops_sink_resets_total'),
    }),
  )
  const app = make({
    ...ctx,
    sink: out,
    namespaces: config.namespaces,
    needsWork: ({ kind, parent, children }) =>
      needsWork(kind, parent, children, { ...adoption(config), now: clock.now() }),
  })
  return { app, stop: () => out.close() }
}

/**
 * A Knative Service is made before its SinkBinding has set `K_SINK`, which then makes a second revision. The first one
 * runs and takes nothing, so that it is replaced in peace; one that ends at once would be started again for minutes.
 */
async function waitingForSink(ctx: FunctionContext): Promise<App> {
  const [{ receiver }, { notNow }, { observed }] = await Promise.all([
    import('../shared/cloudevents/receiver.ts'),
    import('../shared/cloudevents/answers.ts'),
    import('./observed.ts'),
  ])
  const problem = 'K_SINK, where the events of a resync go, is not set: is there a SinkBinding?'
  ctx.log.warn(problem)
  return { app: receiver({ ...observed(ctx), work: async () => notNow(problem, sinkRetrySeconds) }) }
}

async function watcherApp(ctx: FunctionContext, config: FunctionConfig): Promise<App> {
  if (!config.sink) throw new Error('The watcher needs K_SINK, where its events go')
  // It runs always and does little: without this V8 lets its heap grow to several times of what lives in it.
  setFlagsFromString('--optimize-for-size')
  const [{ watcherApp: make }, { sink }] = await Promise.all([
    import('./watcher.ts'),
    import('../shared/cloudevents/sink.ts'),
  ])
  const out = await observedSink(
    ctx,
    sink({
      ...config.sink,
      clock: ctx.clock,
      userAgent: userAgent(ctx.name),
      onReset: () => ctx.metrics.note('mutantops_sink_resets_total'),
    }),
  )
  const { app, start } = make({
    ...ctx,
    sink: out,
    namespaces: config.namespaces,
    election: config.election,
    resyncEveryMs: config.resyncEveryMs,
    fullResyncEveryMs: config.fullResyncEveryMs,
    ...(config.configMap && { configMap: config.configMap }),
  })
  ctx.log.info({ to: sinkNames(config.sink) }, 'sending events')
  const stop = await start()
  return {
    app,
    async stop() {
      await stop()
      await out.close()
    },
  }
}

/** A sink that also puts what it sends on the tape and into traces, where there are any. */
async function observedSink({ tape, telemetry }: FunctionContext, sink: Sink): Promise<Sink> {
  let observed = sink
  if (tape) {
    const { recordedSink } = await import('../shared/cloudevents/tape-file.ts')
    observed = recordedSink(observed, tape)
  }
  if (telemetry) {
    const { tracedSink } = await import('../shared/telemetry/traced.ts')
    observed = tracedSink(observed, telemetry)
  }
  return observed
}

async function reconcilerContext(ctx: FunctionContext, config: FunctionConfig) {
  return { ...ctx, ...adoption(config), replies: config.replies, record: await recorder(ctx, config) }
}

function adoption({ adoption, legacyManagers }: FunctionConfig) {
  return { adoption, legacyManagers }
}

async function recorder({ name, client, clock }: FunctionContext, { instance }: FunctionConfig) {
  const { objectEventRecorder } = await import('../shared/reconcile/object-events.ts')
  return objectEventRecorder({ client, clock, reporter: { controller: `neiam.org/${name}`, instance } })
}

/** Who asks, in every request: `mutantops/0.1.0 (mutation)`. */
export function userAgent(name: string): string {
  return `mutantops/${version} (${name})`
}
