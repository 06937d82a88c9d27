import { type Cause, cause } from '../status.ts'
import { causesOf, choiceCauses, type Fields, listOf, nonNegativeCauses } from './fields.ts'
import { portNameErrors } from './names.ts'

const portMax = 65535

/** What is wrong with a probe, if there is one. */
export function probeCauses(field: string, probe: unknown, kind: string): Cause[] {
  if (probe === undefined) return []
  const given = probe as Fields
  const times = [
    'initialDelaySeconds',
    'timeoutSeconds',
    'periodSeconds',
    'successThreshold',
    'failureThreshold',
  ]
  return [
    ...handlerCauses(field, given, ['exec', 'httpGet', 'tcpSocket', 'grpc']),
    ...times.flatMap((name) => nonNegativeCauses(`${field}.${name}`, given[name])),
    ...graceCauses(field, given.terminationGracePeriodSeconds, kind),
    ...(kind !== 'readinessProbe' && Number(given.successThreshold) > 1
      ? [cause.invalid(`${field}.successThreshold`, given.successThreshold, 'must be 1')]
      : []),
  ]
}

function graceCauses(parent: string, seconds: unknown, kind: string): Cause[] {
  if (typeof seconds !== 'number') return []
  const field = `${parent}.terminationGracePeriodSeconds`
  return [
    ...(seconds > 0 ? [] : [cause.invalid(field, seconds, 'must be greater than 0')]),
    ...(kind === 'readinessProbe'
      ? [cause.invalid(field, seconds, 'must not be set for readinessProbes')]
      : []),
  ]
}

/** What is wrong with a container's hooks. `grace` is how long the pod may take to end, in seconds. */
export function lifecycleCauses(field: string, lifecycle: unknown, grace: number): Cause[] {
  const hooks = (lifecycle ?? {}) as Record<string, Fields>
  return ['postStart', 'preStop'].flatMap((name) => {
    const hook = hooks[name]
    if (!hook) return []
    return [
      ...handlerCauses(`${field}.${name}`, hook, ['exec', 'httpGet', 'tcpSocket', 'sleep']),
      ...sleepCauses(`${field}.${name}`, hook, grace),
    ]
  })
}

function sleepCauses(field: string, { sleep }: Fields, grace: number): Cause[] {
  const seconds = (sleep as Fields | undefined)?.seconds
  if (typeof seconds !== 'number' || (seconds >= 0 && seconds <= grace)) return []
  const why = `must be non-negative and less than terminationGracePeriodSeconds (${grace})`
  return [cause.invalid(`${field}.sleep`, seconds, why)]
}

/** Exactly one handler; what is wrong with it, and each one too many. */
function handlerCauses(field: string, handler: Fields, kinds: string[]): Cause[] {
  const given = kinds.filter((kind) => handler[kind] !== undefined)
  if (given.length === 0) return [cause.required(field, 'must specify a handler type')]
  return given.flatMap((kind, place) =>
    place === 0
      ? (handlers[kind]?.(`${field}.${kind}`, handler[kind] as Fields) ?? [])
      : [cause.forbidden(`${field}.${kind}`, 'may not specify more than 1 handler type')],
  )
}

const handlers: Record<string, (field: string, handler: Fields) => Cause[]> = {
  exec: (field, { command }) => (listOf(command).length === 0 ? [cause.required(`${field}.command`)] : []),
  httpGet: (field, { path, port, scheme, httpHeaders }) => [
    ...(path ? [] : [cause.required(`${field}.path`)]),
    ...portCauses(`${field}.port`, port),
    ...choiceCauses(`${field}.scheme`, scheme, ['HTTP', 'HTTPS']),
    ...listOf(httpHeaders).flatMap(({ name }) => headerCauses(`${field}.httpHeaders`, String(name))),
  ],
  tcpSocket: (field, { port }) => portCauses(`${field}.port`, port),
  grpc: (field, { port }) => portCauses(`${field}.port`, port),
}

const headerText =
  "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')"

function headerCauses(field: string, name: string): Cause[] {
  return /^[-A-Za-z0-9]+$/.test(name) ? [] : [cause.invalid(field, name, headerText)]
}

/** By number, or by the name of one of the container's ports. */
function portCauses(field: string, port: unknown): Cause[] {
  if (typeof port === 'string') return causesOf(field, port, portNameErrors(port))
  const isPort = typeof port === 'number' && port >= 1 && port <= portMax
  return isPort ? [] : [cause.invalid(field, port, `must be between 1 and ${portMax}, inclusive`)]
}
