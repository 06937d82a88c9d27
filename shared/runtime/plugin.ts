import type { Env, Hono, MiddlewareHandler, Schema } from 'hono'
import { Registry } from 'prom-client'
import { systemClock } from '../clock.ts'
import { createLog } from '../log.ts'
import { configOf, type KubernetesConfigInput, loadConfig } from './config.ts'
import { type Phase, probes } from './probes.ts'
import {
  type Kubernetes,
  type Runtime,
  type RuntimeOptions,
  type RuntimeTask,
  startRuntime,
} from './runtime.ts'

declare module 'hono' {
  interface ContextVariableMap {
    /** Set by the middleware of `kubernetes()`. */
    kubernetes: Kubernetes
  }
}

export interface KubernetesOptions extends Partial<Omit<RuntimeOptions, 'config'>> {
  /** The configuration in code; then no file and no variable is read. */
  config?: KubernetesConfigInput
  /** Where `kubernetes.yaml` is. Default: `config` in the working folder. */
  folder?: string
  /** Default: NODE_ENV, else `production`. */
  profile?: string
  /** Of the variables that set the configuration. Default `KUBERNETES`. */
  prefix?: string
  /** Whether an API that is down makes `/readyz` fail. Default false: an outage of the API must not stop traffic. */
  readiness?: boolean
}

/** The plugin of one process: a Hono middleware that can be started and stopped. */
export interface KubernetesPlugin extends MiddlewareHandler {
  /** The probes and the metrics, for an app or a port of its own. */
  readonly routes: Hono
  /** Puts the middleware and the routes into an app, in one call. */
  install<E extends Env, S extends Schema, B extends string>(app: Hono<E, S, B>): void
  /** Reads the configuration and starts; needs no app. Throws what `startRuntime` and `loadConfig` throw. */
  start(): Promise<Kubernetes>
  /** Stops what was started; a second call does nothing more. */
  stop(): Promise<void>
}

/**
 * The Kubernetes runtime for a Hono app: `c.get('kubernetes')` in handlers, leader tasks, `/livez`, `/readyz`,
 * `/startupz` and `/metrics`.
 *
 *     const k8s = kubernetes({ tasks: [{ name: 'sweep', run: sweep }] })
 *     k8s.install(app)
 *     await k8s.start()
 *     // … on SIGTERM:
 *     await k8s.stop()
 */
export function kubernetes(options: KubernetesOptions = {}): KubernetesPlugin {
  const { env = process.env, clock = systemClock, registry = new Registry() } = options
  let phase: Phase = 'starting'
  let runtime: Runtime | undefined
  let starting: Promise<Kubernetes> | undefined
  let stopping: Promise<void> | undefined

  async function start(): Promise<Kubernetes> {
    const { config: given, folder = 'config', profile, prefix } = options
    const config = given
      ? configOf(given)
      : await loadConfig({ env, folder, ...(profile && { profile }), ...(prefix && { prefix }) })
    const log = options.log ?? createLog({ name: 'kubernetes' })
    const { userAgent = 'mutantops-runtime' } = options
    runtime = await startRuntime({ ...options, config, env, clock, registry, log, userAgent })
    phase = 'running'
    return runtime
  }

  async function stop(): Promise<void> {
    phase = 'stopping'
    // A start that is under way is waited for, so that nothing is left behind; its failure is told to its caller.
    await starting?.catch(() => {})
    phase = 'stopping'
    await runtime?.stop()
  }

  const middleware: MiddlewareHandler = async (c, next) => {
    if (!runtime) return c.json({ status: phase }, 503)
    c.set('kubernetes', runtime)
    return next()
  }
  const routes = probes({
    phase: () => phase,
    health: async () => {
      if (!runtime) throw new Error('Health was asked before the start')
      return runtime.health()
    },
    readiness: options.readiness ?? false,
    registry,
  })
  return Object.assign(middleware, {
    routes,
    install<E extends Env, S extends Schema, B extends string>(app: Hono<E, S, B>) {
      // The probes come first: they answer before the start.
      app.route('/', routes)
      app.use(middleware)
    },
    start() {
      starting ??= start()
      return starting
    },
    stop() {
      stopping ??= stop()
      return stopping
    },
  })
}

export type { Kubernetes, RuntimeTask }
