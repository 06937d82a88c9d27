import { randomBytes } from 'node:crypto'
import { type SinkConfig, sinkConfig } from '../shared/cloudevents/sink-config.ts'
import { isDns1123Label } from '../shared/kinds/mutants.ts'
import type { Adoption } from '../shared/reconcile/adoption.ts'
import type { LeaseSettings } from '../shared/runtime/lease.ts'
import { logLevels } from '../shared/watching/settings.ts'

/** What a function is told by its environment. */
export interface FunctionConfig {
  /** `PORT`; 0 takes any free one. Default 8080. */
  port: number
  /** `HOST`. Default all addresses, of both IP versions where there are two. */
  host: string | undefined
  /** `LOG_LEVEL`. Default info. */
  logLevel: string
  /** `CLUSTER_NAME`: stands in the source of every event. Default "default". */
  cluster: string
  /** `ADOPTION`: which Deployments of our children's names are taken over. Default label. */
  adoption: Adoption
  /** `LEGACY_MANAGERS`: comma separated; the field managers of the older operator, for adoption legacy. */
  legacyManagers: string[] | undefined
  /** `REPLY_EVENTS`: whether a reconcile that wrote something replies with an event. Default false. */
  replies: boolean
  /** `DEADLINE_SECONDS`: how long the work on one event may take. Default 20. */
  deadlineMs: number
  /** `DRAIN_SECONDS`: how long a shutdown may take. Default 28. */
  drainMs: number
  /** `WATCH_NAMESPACES`: comma separated. Default all. */
  namespaces: string[] | undefined
  /** `POD_NAME`, else `HOSTNAME`: which process reports. */
  instance: string
  /** `TAPE`: the file to which the events received and sent are appended. Default none. */
  tape: string | undefined
  /** `SERVICE_ACCOUNT_FOLDER`: where the token and the CA are, if not where a kubelet mounts them. */
  serviceAccountFolder: string | undefined
  /** `CONFIG_MAP`: beside the Lease, the watcher's live settings. Default mutantops-watcher. */
  configMap: string | undefined
  /** `RESYNC_SECONDS`: how often the watcher itself asks for a resync. Default never: a cron does. */
  resyncEveryMs: number | undefined
  /** `FULL_RESYNC_SECONDS`: how often it asks for one that sends every object. Default never. */
  fullResyncEveryMs: number | undefined
  /**
   * What is pushed to an OTLP endpoint: both with `OTEL_EXPORTER_OTLP_ENDPOINT`, else what
   * `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` and `OTEL_EXPORTER_OTLP_METRICS_ENDPOINT` are for; nothing when
   * `OTEL_SDK_DISABLED` is true. (The exporters read all of OpenTelemetry's variables themselves.)
   */
  telemetry: { traces: boolean; metrics: boolean }
  /** `OIDC_AUDIENCE`: events need a token of the cluster for this audience. Default none is asked for. */
  oidcAudience: string | undefined
  /** `K_SINK`, or without a broker `SINK_MUTATION`, `SINK_MUTANTDEPLOYMENT` and `SINK_RESYNC`; see sinkConfig. */
  sink: SinkConfig | undefined
  /**
   * Which of several watchers works: the Lease `LEASE_NAME` (default mutantops-watcher) in `POD_NAMESPACE` (default
   * mutantops), taken for LEASE_DURATION_SECONDS, given up after RENEW_DEADLINE_SECONDS, tried every RETRY_PERIOD_SECONDS.
   */
  election: LeaseSettings
}

type Environment = Record<string, string | undefined>

const adoptions: Adoption[] = ['label', 'legacy', 'always']

/** Reads a function's configuration. Throws an Error that names the variable whose value is not valid. */
export function functionConfig(env: Environment): FunctionConfig {
  return {
    port: integer(env, 'PORT', 8080, 0, 65_535),
    host: env.HOST || undefined,
    logLevel: oneOf(env, 'LOG_LEVEL', logLevels, 'info'),
    cluster: clusterName(env),
    adoption: oneOf(env, 'ADOPTION', adoptions, 'label'),
    legacyManagers: listOf(env.LEGACY_MANAGERS),
    replies: oneOf(env, 'REPLY_EVENTS', ['true', 'false'], 'false') === 'true',
    deadlineMs: integer(env, 'DEADLINE_SECONDS', 20, 1, 3_600) * 1_000,
    drainMs: integer(env, 'DRAIN_SECONDS', 28, 1, 3_600) * 1_000,
    namespaces: namespacesOf(env),
    instance: env.POD_NAME || env.HOSTNAME || 'local',
    tape: env.TAPE || undefined,
    serviceAccountFolder: env.SERVICE_ACCOUNT_FOLDER || undefined,
    configMap: env.CONFIG_MAP?.trim() || undefined,
    resyncEveryMs: integer(env, 'RESYNC_SECONDS', 0, 0, 86_400) * 1_000 || undefined,
    fullResyncEveryMs: integer(env, 'FULL_RESYNC_SECONDS', 0, 0, 86_400) * 1_000 || undefined,
    telemetry: telemetryOf(env),
    oidcAudience: env.OIDC_AUDIENCE?.trim() || undefined,
    sink: sinkConfig(env),
    election: {
      namespace: env.POD_NAMESPACE || 'mutantops',
      leaseName: env.LEASE_NAME || 'mutantops-watcher',
      identity: `${env.POD_NAME || env.HOSTNAME || 'local'}-${randomBytes(4).toString('hex')}`,
      leaseDurationSeconds: integer(env, 'LEASE_DURATION_SECONDS', 15, 1, 3_600),
      renewDeadlineSeconds: integer(env, 'RENEW_DEADLINE_SECONDS', 10, 1, 3_600),
      retryPeriodSeconds: integer(env, 'RETRY_PERIOD_SECONDS', 2, 1, 3_600),
    },
  }
}

function integer(env: Environment, name: string, fallback: number, min: number, max: number): number {
  const text = env[name]?.trim()
  if (!text) return fallback
  const value = Number(text)
  if (!/^\d+$/.test(text) || value < min || value > max)
    throw new Error(`${name} is not a whole number from ${min} to ${max}`)
  return value
}

function oneOf<T extends string>(env: Environment, name: string, values: readonly T[], fallback: T): T {
  const text = env[name]?.trim()
  if (!text) return fallback
  const value = values.find((candidate) => candidate === text)
  if (value === undefined) throw new Error(`${name} is none of ${values.join(', ')}`)
  return value
}

function telemetryOf(env: Environment): FunctionConfig['telemetry'] {
  const isSet = (name: string) => (env[name]?.trim() ?? '') !== ''
  const [both, traces, metrics] = ['', 'TRACES_', 'METRICS_'].map((part) =>
    isSet(`OTEL_EXPORTER_OTLP_${part}ENDPOINT`),
  )
  const isOn = env.OTEL_SDK_DISABLED?.trim().toLowerCase() !== 'true'
  return { traces: isOn && (both || traces) === true, metrics: isOn && (both || metrics) === true }
}

function clusterName(env: Environment): string {
  const name = env.CLUSTER_NAME?.trim() || 'default'
  if (!/^[A-Za-z0-9._-]{1,100}$/.test(name))
    throw new Error('CLUSTER_NAME may have letters, digits, dots, underscores and hyphens only')
  return name
}

function namespacesOf(env: Environment): string[] | undefined {
  const names = listOf(env.WATCH_NAMESPACES)
  const wrong = names?.find((name) => !isDns1123Label(name))
  if (wrong !== undefined)
    throw new Error(`WATCH_NAMESPACES holds ${JSON.stringify(wrong)}, which is no namespace`)
  return names
}

function listOf(text: string | undefined): string[] | undefined {
  const names = (text ?? '').split(',').map((name) => name.trim())
  const given = [...new Set(names.filter((name) => name !== ''))]
  return given.length === 0 ? undefined : given
}
