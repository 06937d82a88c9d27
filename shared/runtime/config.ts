import { z } from 'zod'
import { check, type LayerOptions, loadLayers } from './layers.ts'
import { timingProblems } from './lease.ts'

/** A name as most objects of the API have it (DNS-1123 subdomain). */
const objectName = /^(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/
/** A namespace's name (DNS-1123 label). */
const namespaceName = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/

const orEmpty = (pattern: RegExp, message: string) =>
  z.string().refine((text) => text === '' || pattern.test(text), message)
const notDns = 'must be lower-case letters, digits, "-" and "." (a DNS name)'

const leaderElection = z
  .strictObject({
    enabled: z.boolean().default(false),
    /** Must be set when enabled. */
    leaseName: orEmpty(objectName, notDns).default(''),
    /** Empty: `<POD_NAME or HOSTNAME>-<8 hex>`. */
    identity: z.string().max(128).default(''),
    leaseDurationSeconds: z.number().default(15),
    renewDeadlineSeconds: z.number().default(10),
    retryPeriodSeconds: z.number().default(2),
    releaseOnShutdown: z.boolean().default(true),
    leadWhenDetached: z.boolean().default(false),
    /** The roles that campaign; empty means all. */
    roles: z.array(z.string().min(1)).default([]),
  })
  .superRefine((election, context) => {
    for (const problem of timingProblems(election)) {
      const [field = '', ...rest] = problem.split(' ')
      context.addIssue({ code: 'custom', path: [field], message: rest.join(' ') })
    }
    if (election.enabled && election.leaseName === '')
      context.addIssue({ code: 'custom', path: ['leaseName'], message: 'must be set when enabled is true' })
  })

/** The plugin's configuration: what may be set, its type, and what it is when it is not set. */
export const kubernetesConfig = z.strictObject({
  enabled: z.boolean().default(true),
  /** Without a cluster that answers, the start fails. */
  required: z.boolean().default(false),
  /** Empty: the pod's, then the client's. */
  namespace: orEmpty(namespaceName, 'must be lower-case letters, digits and "-" (a DNS label)').default(''),
  /** Whether Kubernetes Events are written on the pod. */
  events: z.boolean().default(true),
  leaderElection: leaderElection.prefault({}),
  configMaps: z
    .strictObject({ watch: z.array(z.string().regex(objectName, notDns)).default([]) })
    .prefault({}),
})

export type KubernetesConfig = z.output<typeof kubernetesConfig>
/** The configuration as one writes it: each part may be left out. */
export type KubernetesConfigInput = z.input<typeof kubernetesConfig>

/** Checks a configuration given in code, and fills in the defaults; reads no file. Throws a `ConfigError`. */
export function configOf(given: KubernetesConfigInput): KubernetesConfig {
  return check(kubernetesConfig, given, () => 'given in code')
}

/**
 * Reads the configuration from its layers (see `layers.ts`): `kubernetes.yaml`, its section `profiles.<profile>`,
 * `kubernetes.<profile>.yaml`, `.env` in development and test, and variables such as
 * `KUBERNETES__LEADER_ELECTION__ENABLED=true`. Throws a `ConfigError` that names each wrong key and where it was set.
 */
export function loadConfig(
  options: Pick<LayerOptions, 'env' | 'folder'> & Partial<LayerOptions>,
): Promise<KubernetesConfig> {
  const { env } = options
  // Without a word about it this is production, where no .env is read.
  const profile = options.profile ?? (env.NODE_ENV || 'production')
  return loadLayers(kubernetesConfig, { name: 'kubernetes', prefix: 'KUBERNETES', ...options, profile })
}
