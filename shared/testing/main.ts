/** What `mutantops/testing` gives: the embedded Kubernetes API, and tapes of CloudEvents to play. */
export {
  type ApiServer,
  type ApiServerOptions,
  apiServer,
  type InProcessTransport,
} from '../apiserver/server.ts'
export type { CloudEvent } from '../cloudevents/event.ts'
export {
  type Disorder,
  disordered,
  type ReplayOptions,
  type ReplayReport,
  replay,
} from '../cloudevents/replay.ts'
export { readTape, tapeLine, UnreadableTape } from '../cloudevents/tape.ts'
