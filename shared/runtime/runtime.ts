import { randomBytes } from 'node:crypto'
import type { Registry } from 'prom-client'
import type { Clock } from '../clock.ts'
import type { KubeClient } from '../kube/client.ts'
import type { Logger } from '../log.ts'
import { type ClusterLink, type LinkOptions, linkToCluster } from './cluster-link.ts'
import type { KubernetesConfig } from './config.ts'
import { type ConfigMapStore, configMapStore } from './config-maps.ts'
import { type Elector, elector } from './elector.ts'
import { type HealthReport, health, type Mode } from './health.ts'
import { ConfigError } from './layers.ts'
import { type LeaderTasks, leaderTasks } from './leader-tasks.ts'
import { fixedLeadership, type Leadership } from './leadership.ts'
import { stopTimeoutMs } from './lease.ts'
import { type RuntimeMetrics, runtimeMetrics } from './metrics.ts'
import { podEvents } from './pod-events.ts'
import { type PodInfo, podInfo } from './pod-info.ts'

/** What handlers and tasks get: who and where this process is, whether it leads, live configuration, the client. */
export interface Kubernetes {
  readonly mode: Mode
  /** The namespace of the Lease and the ConfigMaps. */
  readonly namespace: string
  readonly pod: PodInfo
  readonly leadership: Leadership
  readonly configMaps: ConfigMapStore
  /** Absent in the modes `detached` and `disabled`. */
  readonly client: KubeClient | undefined
  health(): Promise<HealthReport>
}

/** A leader task that is also given the runtime. */
export interface RuntimeTask {
  name: string
  run(signal: AbortSignal, kubernetes: Kubernetes): Promise<void>
}

export interface RuntimeOptions extends Pick<LinkOptions, 'client' | 'connect' | 'serviceAccountFolder'> {
  config: KubernetesConfig
  env: Record<string, string | undefined>
  clock: Clock
  log: Logger
  registry: Registry
  userAgent: string
  tasks?: readonly RuntimeTask[] | undefined
  /** What this process does in the app, such as `web` or `worker`; see `leaderElection.roles`. */
  role?: string | undefined
  labelsFile?: string | undefined
  namespaceFile?: string | undefined
}

export interface Runtime extends Kubernetes {
  /**
   * Stops: tasks, then the Lease is released, then the Kubernetes Event `Stopping`, then watches and connections. It
   * completes whether anybody waits for it or not; a second call gives the first one's promise.
   */
  stop(): Promise<void>
}

/**
 * Starts the runtime of one process. Throws when the configuration does not fit the tasks, when a kubeconfig cannot be
 * used, and when a required cluster is not there.
 */
export async function startRuntime(options: RuntimeOptions): Promise<Runtime> {
  const { config, env, labelsFile, namespaceFile } = options
  if (options.tasks?.length && !config.leaderElection.enabled)
    throw new ConfigError(['leaderElection.enabled: must be true, because there are leader tasks'])
  const pod = await podInfo({
    env,
    ...(labelsFile && { labelsFile }),
    ...(namespaceFile && { namespaceFile }),
  })
  const metrics = runtimeMetrics(options.registry)
  const link = await linkToCluster({ ...options, pod })
  const namespace = config.namespace || pod.namespace || link.namespace || 'default'
  return run(options, { link, pod, namespace, metrics })
}

/** Sets all parts going, each after those that it needs. */
function run(options: RuntimeOptions, here: Surroundings): Runtime {
  const { config, clock, log } = options
  const { leaseName } = config.leaderElection
  const running = new AbortController()
  const loops: Promise<void>[] = []
  const inTheBackground = (loop: Promise<void>) =>
    loops.push(loop.catch((error) => log.error({ err: error }, 'a loop of the runtime has failed')))

  let led: LeaderTasks | undefined
  const { leadership, campaign } = leadershipOf(options, here, () => !led?.stuck().length)
  const { kubernetes, watches } = observe(options, here, leadership, running.signal)
  for (const watch of watches) inTheBackground(watch)
  const events = eventsOf(options, here)
  events?.started()
  const unfollow = campaign && events?.follow(leadership, leaseName)
  led = leaderTasks({
    leadership,
    clock,
    log,
    tasks: (options.tasks ?? []).map((task) => ({
      name: task.name,
      run: (signal) => task.run(signal, kubernetes),
    })),
    stopTimeoutMs: stopTimeoutMs(config.leaderElection),
  })
  if (campaign) inTheBackground(campaign.run(running.signal))

  async function stop(): Promise<void> {
    unfollow?.()
    const abandoned = (await led?.stop())?.abandoned ?? []
    // What was abandoned may still be at work: then nobody else is let in before the Lease has run out.
    await campaign?.stop({ release: abandoned.length === 0 })
    await events?.stopping()
    running.abort(new Error('The runtime was stopped'))
    await Promise.all(loops)
    await here.link.close()
  }

  let stopped: Promise<void> | undefined
  return {
    ...kubernetes,
    stop() {
      stopped ??= stop()
      return stopped
    },
  }
}

/** What is watched and asked whether this process leads or not. */
function observe(
  { config, clock, log }: RuntimeOptions,
  { link, pod, namespace, metrics }: Surroundings,
  leadership: Leadership,
  signal: AbortSignal,
): { kubernetes: Kubernetes; watches: Promise<void>[] } {
  const { client, mode } = link
  const { enabled, leaseName: lease } = config.leaderElection
  const names = config.configMaps.watch
  const configMaps = configMapStore({ client, clock, log, namespace, names, metrics: metrics.configMap })
  if (enabled) metrics.watchLeader(lease, leadership)
  const checks = health({
    mode,
    namespace,
    clock,
    client,
    leader: enabled ? { lease, leadership } : undefined,
    configMaps: names.length > 0 ? configMaps : undefined,
    onCheck: metrics.apiUp,
  })
  return {
    kubernetes: { mode, namespace, pod, leadership, configMaps, client, health: checks.check },
    watches: [checks.run(signal), configMaps.run(signal)],
  }
}

interface Surroundings {
  link: ClusterLink
  pod: PodInfo
  namespace: string
  metrics: RuntimeMetrics
}

function leadershipOf(
  options: RuntimeOptions,
  { link, pod, namespace, metrics }: Surroundings,
  mayCampaign: () => boolean,
): { leadership: Leadership; campaign?: Elector } {
  const { leaderElection: election } = options.config
  const { roles } = election
  const mayLead = election.enabled && (roles.length === 0 || (options.role && roles.includes(options.role)))
  if (!mayLead || link.mode === 'disabled') return { leadership: fixedLeadership(false) }
  if (!link.client) return { leadership: fixedLeadership(election.leadWhenDetached) }
  const campaign = elector({
    ...election,
    client: link.client,
    clock: options.clock,
    log: options.log,
    namespace,
    identity: election.identity || `${pod.name ?? 'process'}-${randomBytes(4).toString('hex')}`,
    metrics: metrics.lease(election.leaseName),
    mayCampaign,
  })
  return { leadership: campaign, campaign }
}

function eventsOf(options: RuntimeOptions, { link, pod, namespace, metrics }: Surroundings) {
  const { name } = pod
  if (!link.client || !options.config.events || name === undefined) return undefined
  return podEvents({
    client: link.client,
    clock: options.clock,
    log: options.log,
    pod: { ...pod, name },
    namespace: pod.namespace ?? namespace,
    metrics: metrics.events,
  })
}
