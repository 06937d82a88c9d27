import type { z } from 'zod'
import type { KubeObject } from '../../kinds/object.ts'
import { goDurationMs } from '../events/duration.ts'
import { check, deploymentShape, serviceShape } from './shapes.ts'

/** How a container is run as a process here. */
export interface ProcessSpec {
  namespace: string
  name: string
  /** Which function of functions/main.ts it is. */
  functionName: string
  env: EnvEntry[]
  serviceAccount: string
  /** Undefined: ready as soon as it listens. */
  readinessPath: string | undefined
  /** From SIGTERM to SIGKILL, in ms. */
  gracePeriodMs: number
  /** Where a SinkBinding sends its events. */
  sinkUrl: string | undefined
}

/** A Knative Service: it runs only while there are requests. */
export interface ServiceSpec extends ProcessSpec {
  /** Requests at once; 0 is without limit. */
  concurrency: number
  /** For one request, waiting for the start included, in ms. */
  timeoutMs: number
  /** How long without a request before it is stopped, in ms. */
  idleMs: number
  /** Whether it is kept running all the time. */
  alwaysOn: boolean
}

export interface EnvEntry {
  name: string
  value?: string | undefined
  /** Of the pod: `metadata.name`. */
  fieldPath?: string | undefined
}

const annotation = {
  window: 'autoscaling.knative.dev/window',
  retention: 'autoscaling.knative.dev/scale-to-zero-pod-retention-period',
  minScale: 'autoscaling.knative.dev/min-scale',
} as const
/** Knative's stable window. */
const defaultWindow = '60s'

/** Reads a Knative Service. Throws, naming `what`, for what it cannot read. */
export function serviceSpec(what: string, object: KubeObject, sinkUrl: string | undefined): ServiceSpec {
  const { metadata, spec } = check(what, serviceShape, object)
  const { annotations } = spec.template.metadata
  const pod = spec.template.spec
  const durationOf = (name: string, fallback: string) =>
    goDurationMs(`${what}: annotation ${name}`, annotations[name] ?? fallback)
  return {
    ...processOf(metadata, pod, sinkUrl),
    // Knative gives a revision's pods the time of a request to finish.
    gracePeriodMs: pod.timeoutSeconds * 1000,
    concurrency: pod.containerConcurrency,
    timeoutMs: pod.timeoutSeconds * 1000,
    idleMs: durationOf(annotation.window, defaultWindow) + durationOf(annotation.retention, '0s'),
    alwaysOn: Number(annotations[annotation.minScale] ?? 0) > 0,
  }
}

/** Reads a Deployment. Throws, naming `what`, for what it cannot read. */
export function processSpec(what: string, object: KubeObject, sinkUrl: string | undefined): ProcessSpec {
  const { metadata, spec } = check(what, deploymentShape, object)
  const pod = spec.template.spec
  return { ...processOf(metadata, pod, sinkUrl), gracePeriodMs: pod.terminationGracePeriodSeconds * 1000 }
}

type Pod =
  | z.infer<typeof serviceShape>['spec']['template']['spec']
  | z.infer<typeof deploymentShape>['spec']['template']['spec']

function processOf(
  metadata: { namespace: string; name: string },
  pod: Pod,
  sinkUrl: string | undefined,
): Omit<ProcessSpec, 'gracePeriodMs'> {
  const [container] = pod.containers
  return {
    ...metadata,
    functionName: container.args[0] ?? '',
    env: container.env.map(({ name, value, valueFrom }) => ({
      name,
      value,
      fieldPath: valueFrom?.fieldRef.fieldPath,
    })),
    serviceAccount: pod.serviceAccountName,
    readinessPath: container.readinessProbe?.httpGet?.path,
    sinkUrl,
  }
}
