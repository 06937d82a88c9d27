import type { Clock } from '../shared/clock.ts'
import type { CloudEvent } from '../shared/cloudevents/event.ts'
import type { TokenCheck } from '../shared/cloudevents/token-check.ts'
import type { KubeClient } from '../shared/kube/client.ts'
import type { Logger } from '../shared/log.ts'
import type { Telemetry } from '../shared/telemetry/telemetry.ts'
import type { Metrics } from './metrics.ts'

/** All that a function may touch. */
export interface FunctionContext {
  /** The function's name: stands in the log and in the source of what it sends. */
  name: string
  client: KubeClient
  clock: Clock
  log: Logger
  metrics: Metrics
  /** The cluster's name, for the source of events. */
  cluster: string
  /** Puts an event that was received or is sent on the tape of this run, if it has one. */
  tape?: ((event: CloudEvent) => void) | undefined
  /** Lets in requests with the right token only; undefined lets in all. */
  authenticate?: TokenCheck | undefined
  /** Traces and metrics that are pushed; undefined where no OTLP endpoint is set. */
  telemetry?: Telemetry | undefined
  /** How long the work on one event may take, in ms. */
  deadlineMs: number
  /** Aborted when the process begins to shut down. */
  draining: AbortSignal
  /** Takes work that goes on after its answer; a shutdown waits for it as long as it may. */
  background(work: Promise<void>): void
}
