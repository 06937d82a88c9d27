import { type Cause, cause } from '../status.ts'
import { envCauses } from './env.ts'
import { causesOf, choiceCauses, duplicateCauses, type Fields, idCauses, listOf } from './fields.ts'
import { dotlessErrors, portNameErrors } from './names.ts'
import { lifecycleCauses, probeCauses } from './probes.ts'
import { resourcesCauses } from './resources.ts'

/** What is wrong with the containers of a pod. `field` is the pod spec's path. */
export function containersCauses(field: string, spec: Fields): Cause[] {
  const containers = listOf(spec.containers)
  const seen = new Set<unknown>()
  const each = (list: string) =>
    listOf(spec[list]).flatMap((container, place) => {
      const at = `${field}.${list}[${place}]`
      return [
        ...nameCauses(`${at}.name`, container, seen),
        ...containerCauses(at, container, spec),
        ...initCauses(at, container, list),
      ]
    })
  return [
    ...(containers.length === 0 ? [cause.required(`${field}.containers`)] : each('containers')),
    ...each('initContainers'),
  ]
}

function nameCauses(field: string, { name }: Fields, seen: Set<unknown>): Cause[] {
  if (!name) return [cause.required(field)]
  const wrong = causesOf(field, name, dotlessErrors(String(name)))
  if (seen.has(name)) return [...wrong, cause.duplicate(field, name)]
  seen.add(name)
  return wrong
}

function containerCauses(field: string, container: Fields, spec: Fields): Cause[] {
  const grace = Number(spec.terminationGracePeriodSeconds ?? 0)
  const volumes = listOf(spec.volumes).map(({ name }) => name)
  return [
    ...(container.image ? [] : [cause.required(`${field}.image`)]),
    ...lifecycleCauses(`${field}.lifecycle`, container.lifecycle, grace),
    ...(['livenessProbe', 'readinessProbe', 'startupProbe'] as const).flatMap((probe) =>
      probeCauses(`${field}.${probe}`, container[probe], probe),
    ),
    ...choiceCauses(`${field}.terminationMessagePolicy`, container.terminationMessagePolicy, [
      'File',
      'FallbackToLogsOnError',
    ]),
    ...portsCauses(`${field}.ports`, listOf(container.ports)),
    ...envCauses(field, container),
    ...mountsCauses(`${field}.volumeMounts`, listOf(container.volumeMounts), volumes),
    ...choiceCauses(`${field}.imagePullPolicy`, container.imagePullPolicy, [
      'Always',
      'IfNotPresent',
      'Never',
    ]),
    ...resourcesCauses(`${field}.resources`, container.resources as Fields | undefined),
    ...privilegeCauses(field, container),
  ]
}

/** The server takes no privileged containers unless it was started to. */
function privilegeCauses(parent: string, { securityContext }: Fields): Cause[] {
  const field = `${parent}.securityContext`
  const isPrivileged = (securityContext as Fields | undefined)?.privileged === true
  return [
    ...(isPrivileged ? [cause.forbidden(`${field}.privileged`, 'disallowed by cluster policy')] : []),
    ...idCauses(field, securityContext, ['runAsUser', 'runAsGroup']),
  ]
}

function initCauses(field: string, container: Fields, list: string): Cause[] {
  if (list !== 'initContainers' || container.restartPolicy === 'Always') return []
  return ['lifecycle', 'livenessProbe', 'readinessProbe', 'startupProbe']
    .filter((name) => container[name] !== undefined)
    .map((name) =>
      cause.forbidden(`${field}.${name}`, 'may not be set for init containers without restartPolicy=Always'),
    )
}

const portMax = 65535
const portText = `must be between 1 and ${portMax}, inclusive`
const isPort = (value: unknown): boolean => typeof value === 'number' && value >= 1 && value <= portMax

function portsCauses(field: string, ports: Fields[]): Cause[] {
  const at = (place: number, name: string) => `${field}[${place}].${name}`
  const names = ports.map(({ name }, place) => ({ field: at(place, 'name'), value: name }))
  const hostPorts = ports.map(({ hostPort, hostIP, protocol }, place) => ({
    field: at(place, 'hostPort'),
    value: hostPort ? `${protocol}/${hostIP ?? ''}/${hostPort}` : undefined,
  }))
  const isGiven = ({ value }: { value: unknown }) => value !== undefined && value !== ''
  const isGood = ({ value }: { value: unknown }) =>
    isGiven({ value }) && portNameErrors(String(value)).length === 0
  return [
    ...ports.flatMap((port, place) => [
      ...(port.name ? causesOf(at(place, 'name'), port.name, portNameErrors(String(port.name))) : []),
      ...numberCauses(at(place, 'containerPort'), port.containerPort),
      ...(port.hostPort && !isPort(port.hostPort)
        ? [cause.invalid(at(place, 'hostPort'), port.hostPort, portText)]
        : []),
      ...choiceCauses(at(place, 'protocol'), port.protocol, ['SCTP', 'TCP', 'UDP']),
    ]),
    ...duplicateCauses(names.filter(isGood)),
    ...duplicateCauses(hostPorts.filter(isGiven)),
  ]
}

function numberCauses(field: string, port: unknown): Cause[] {
  if (!port) return [cause.required(field)]
  return isPort(port) ? [] : [cause.invalid(field, port, portText)]
}

function mountsCauses(field: string, mounts: Fields[], volumes: unknown[]): Cause[] {
  const paths = mounts.map(({ mountPath }, place) => ({
    field: `${field}[${place}].mountPath`,
    value: mountPath,
  }))
  return mounts.flatMap(({ name, mountPath }, place) => {
    const at = `${field}[${place}]`
    const repeated = paths.findIndex(({ value }) => value === mountPath) < place
    return [
      ...(name ? [] : [cause.required(`${at}.name`)]),
      ...(volumes.includes(name) ? [] : [cause.notFound(`${at}.name`, name ?? '')]),
      ...(mountPath ? [] : [cause.required(`${at}.mountPath`)]),
      ...(repeated ? [cause.invalid(`${at}.mountPath`, mountPath, 'must be unique')] : []),
    ]
  })
}
