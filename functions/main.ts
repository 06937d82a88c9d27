import { systemClock } from '../shared/clock.ts'
import type { TapeFile } from '../shared/cloudevents/tape-file.ts'
import { kubeClient } from '../shared/kube/client.ts'
import { connect } from '../shared/kube/connect.ts'
import type { Transport } from '../shared/kube/request.ts'
import { createLog, type Logger } from '../shared/log.ts'
import type { Telemetry } from '../shared/telemetry/telemetry.ts'
import { apps, userAgent } from './apps.ts'
import { authentication } from './authentication.ts'
import { type FunctionConfig, functionConfig } from './config.ts'
import { lazyMetrics, metricDefinitions } from './metrics.ts'
import { serve } from './serve.ts'

/**
 * `node functions/main.ts NAME` runs one function as a process: configured by its environment, listening on PORT until
 * SIGTERM or SIGINT. It then takes nothing new, ends what is in flight, and exits with 0; with 1 when that took longer
 * than DRAIN_SECONDS, or when it could not start. This is the only file that touches the process.
 */

/** Of the time for the shutdown, how much sends that a broker holds may take, in ms. */
const backgroundMs = 5_000

async function start(name: string, config: FunctionConfig, log: Logger): Promise<() => Promise<boolean>> {
  const make = Object.hasOwn(apps, name) ? apps[name] : undefined
  if (!make)
    throw new Error(`There is no function ${JSON.stringify(name)}; there are ${Object.keys(apps).join(', ')}`)
  const clock = systemClock
  const telemetry =
    config.telemetry.traces || config.telemetry.metrics ? await openTelemetry(name, config, log) : undefined
  const metrics = lazyMetrics({ push: telemetry?.note })
  const draining = new AbortController()
  const background = new Set<Promise<void>>()
  const connection = await connect({
    env: process.env,
    clock,
    // Whoever names the folder means it: no kubeconfig that happens to be there goes before it.
    ...(config.serviceAccountFolder && {
      inCluster: true,
      serviceAccountFolder: config.serviceAccountFolder,
    }),
  })
  const client = kubeClient({
    transport: telemetry ? await tracedWire(connection, telemetry) : connection,
    clock,
    userAgent: userAgent(name),
    onRequest: ({ method, code }) =>
      metrics.note('mutantops_api_requests_total', { method, code: String(code) }),
  })
  const { cluster, deadlineMs } = config
  const tape = config.tape === undefined ? undefined : await openTape(config.tape, log)
  const ctx = {
    name,
    tape: tape?.record,
    telemetry,
    client,
    clock,
    log,
    metrics,
    cluster,
    deadlineMs,
    authenticate: await authentication({ client, clock, log }, config.oidcAudience),
    draining: draining.signal,
    background(work: Promise<void>) {
      background.add(work)
      work.finally(() => background.delete(work)).catch((err) => log.error({ err }, 'background work failed'))
    },
  }
  const { app, stop } = await make(ctx, config)
  const served = await serve({ app, port: config.port, host: config.host, clock })
  log.info({ port: served.port, api: connection.describe }, 'listening')

  return async () => {
    draining.abort()
    const endMs = clock.monotonicMs() + config.drainMs
    const isDrained = await served.drain({ withinMs: config.drainMs })
    const leftMs = Math.max(0, endMs - clock.monotonicMs())
    await Promise.race([Promise.all(background), clock.sleep(Math.min(backgroundMs, leftMs))])
    await stop?.()
    await connection.close()
    await telemetry?.stop()
    tape?.close()
    return isDrained
  }
}

/** Loaded only where somebody wants it: it is heavier than the function. */
async function openTelemetry(name: string, config: FunctionConfig, log: Logger): Promise<Telemetry> {
  const { otlp } = await import('../shared/telemetry/otlp.ts')
  const { instance, telemetry } = config
  return otlp({
    ...telemetry,
    service: name,
    instance,
    definitions: metricDefinitions,
    clock: systemClock,
    log,
  })
}

async function tracedWire(connection: Transport, telemetry: Telemetry): Promise<Transport> {
  const { tracedTransport } = await import('../shared/telemetry/traced.ts')
  return tracedTransport(connection, telemetry)
}

/** Loaded only when a run is taped: a cold start shall not pay for it. */
async function openTape(path: string, log: Logger): Promise<TapeFile> {
  const { tapeFile } = await import('../shared/cloudevents/tape-file.ts')
  return tapeFile(path, (err) => log.error({ err }, 'event not taped'))
}

/** Takes the signals from the first moment on: a process that is PID 1 is not ended by one that nobody takes. */
function endOnSignal(running: { stop?: () => Promise<boolean>; log: Logger }): void {
  let isEnding = false
  const end = async (signal: string) => {
    // The second SIGTERM changes nothing: what is in flight still ends. A second Ctrl-C is a person who will not wait.
    if (isEnding && signal === 'SIGINT') process.exit(130)
    if (isEnding) return
    isEnding = true
    const { stop, log } = running
    if (!stop) process.exit(0)
    log.info({ signal }, 'shutting down')
    const isDrained = await stop().catch((err) => {
      log.error({ err }, 'shutdown failed')
      return false
    })
    log.info({ isDrained }, 'stopped')
    process.exit(isDrained ? 0 : 1)
  }
  for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, () => void end(signal))
}

async function main(): Promise<void> {
  const name = process.argv[2] ?? ''
  const running: Parameters<typeof endOnSignal>[0] = { log: createLog({ name }) }
  endOnSignal(running)
  try {
    const config = functionConfig(process.env)
    running.log = createLog({ name, level: config.logLevel })
    running.stop = await start(name, config, running.log)
  } catch (error) {
    running.log.fatal({ err: error }, 'cannot start')
    process.exit(1)
  }
}

await main()
