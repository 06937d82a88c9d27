import { randomBytes, randomUUID } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { placeOf } from '../manifests/addresses.ts'
import type { ProcessSpec } from '../manifests/workloads.ts'
import type { Command } from './process.ts'

/** How the processes of the manifests are started on this machine. */
export interface LaunchOptions {
  /** The program that takes a function's name: functions/main.ts, or its bundle. */
  program: string
  /** The environment of the runner itself. */
  baseEnv: Record<string, string | undefined>
  /** Set for a process, over what its manifest says: KUBECONFIG. */
  env(spec: ProcessSpec): Record<string, string>
  /** Where a Broker's ingress listens on this machine. */
  localUrl(clusterUrl: string): string
}

/** The sources' own entry point. */
export const sourceProgram = fileURLToPath(new URL('../../../functions/main.ts', import.meta.url))

const loopback = '127.0.0.1'

/** Makes the command that starts one instance of `spec`, listening on `port` of the loopback interface. */
export function commandOf(spec: ProcessSpec, port: number, options: LaunchOptions): Command {
  const pod = podFields(spec)
  const declared = spec.env.map(({ name, value, fieldPath }) => [
    name,
    fieldPath ? (pod[fieldPath] ?? '') : (value ?? ''),
  ])
  return {
    args: [options.program, spec.functionName],
    env: {
      ...withoutCluster(options.baseEnv),
      ...Object.fromEntries(declared),
      ...options.env(spec),
      HOST: loopback,
      HOSTNAME: pod['metadata.name'],
      PORT: String(port),
      K_SERVICE: spec.name,
      ...(spec.sinkUrl && { K_SINK: localSink(spec.sinkUrl, options) }),
    },
  }
}

function localSink(url: string, { localUrl }: LaunchOptions): string {
  return placeOf(url).kind === 'outside' ? url : localUrl(url)
}

/** What the Downward API would say; fields it does not know here are empty, as for a field that is not set. */
function podFields(spec: ProcessSpec): Record<string, string> {
  return {
    'metadata.name': `${spec.name}-${randomBytes(3).toString('hex')}`,
    'metadata.namespace': spec.namespace,
    'metadata.uid': randomUUID(),
    'status.podIP': loopback,
    'spec.serviceAccountName': spec.serviceAccount,
    'spec.nodeName': 'local',
  }
}

/** What of the runner's environment would make a process take it for a pod, send its events elsewhere, or record twice. */
const podVariables = /^(KUBERNETES_SERVICE_|K_|POD_|NODE_NAME$|TAPE$|NODE_CHANNEL_)/

function withoutCluster(env: Record<string, string | undefined>): Record<string, string | undefined> {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !podVariables.test(name)))
}
