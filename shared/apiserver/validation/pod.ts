import { isIP } from 'node:net'
import { type Cause, cause } from '../status.ts'
import { containersCauses } from './containers.ts'
import {
  annotationCauses,
  causesOf,
  choiceCauses,
  type Fields,
  idCauses,
  labelCauses,
  listOf,
} from './fields.ts'
import { dnsLabelErrors, labelValueErrors, qualifiedNameErrors, subdomainErrors } from './names.ts'
import { volumesCauses } from './volumes.ts'

/** What is wrong with a pod template. The server checks labels and annotations under a path that leaves metadata out. */
export function podTemplateCauses(
  field: string,
  { metadata, spec }: { metadata: Fields; spec: Fields },
): Cause[] {
  return [
    ...labelCauses(`${field}.labels`, metadata.labels),
    ...annotationCauses(`${field}.annotations`, metadata.annotations),
    ...podSpecCauses(`${field}.spec`, spec),
    ...(listOf(spec.ephemeralContainers).length === 0
      ? []
      : [
          cause.forbidden(
            `${field}.spec.ephemeralContainers`,
            'ephemeral containers not allowed in pod template',
          ),
        ]),
  ]
}

function podSpecCauses(field: string, spec: Fields): Cause[] {
  return [
    ...volumesCauses(`${field}.volumes`, listOf(spec.volumes)),
    ...containersCauses(field, spec),
    ...choiceCauses(`${field}.restartPolicy`, spec.restartPolicy, ['Always', 'OnFailure', 'Never']),
    ...dnsCauses(field, spec),
    ...labelCauses(`${field}.nodeSelector`, spec.nodeSelector),
    ...idCauses(`${field}.securityContext`, spec.securityContext, ['fsGroup', 'runAsUser', 'runAsGroup']),
    ...choiceCauses(`${field}.os`, (spec.os as Fields | undefined)?.name, ['linux', 'windows']),
    ...namesCauses(field, spec),
    ...listOf(spec.tolerations).flatMap((one, place) =>
      tolerationCauses(`${field}.tolerations[${place}]`, one),
    ),
    ...listOf(spec.hostAliases).flatMap((one, place) => aliasCauses(`${field}.hostAliases[${place}]`, one)),
    ...listOf(spec.readinessGates).flatMap(({ conditionType }, place) =>
      causesOf(
        `${field}.readinessGates[${place}].conditionType`,
        conditionType,
        qualifiedNameErrors(String(conditionType)),
      ),
    ),
    ...listOf(spec.topologySpreadConstraints).flatMap((one, place) =>
      spreadCauses(`${field}.topologySpreadConstraints[${place}]`, one),
    ),
  ]
}

const namedFields: Record<string, (text: string) => string[]> = {
  serviceAccountName: subdomainErrors,
  nodeName: subdomainErrors,
  hostname: dnsLabelErrors,
  subdomain: dnsLabelErrors,
  priorityClassName: subdomainErrors,
  runtimeClassName: subdomainErrors,
}

function namesCauses(field: string, spec: Fields): Cause[] {
  return Object.entries(namedFields).flatMap(([name, errorsOf]) => {
    const value = spec[name]
    return typeof value === 'string' && value !== ''
      ? causesOf(`${field}.${name}`, value, errorsOf(value))
      : []
  })
}

function dnsCauses(field: string, { dnsPolicy, dnsConfig }: Fields): Cause[] {
  const isBare = dnsPolicy === 'None' && listOf((dnsConfig as Fields | undefined)?.nameservers).length === 0
  const policies = ['ClusterFirstWithHostNet', 'ClusterFirst', 'Default', 'None']
  return [
    ...choiceCauses(`${field}.dnsPolicy`, dnsPolicy, policies),
    ...(isBare && dnsConfig === undefined
      ? [cause.required(`${field}.dnsConfig`, 'must provide `dnsConfig` when `dnsPolicy` is None')]
      : []),
    ...(isBare && dnsConfig !== undefined
      ? [
          cause.required(
            `${field}.dnsConfig.nameservers`,
            'must provide at least one DNS nameserver when `dnsPolicy` is None',
          ),
        ]
      : []),
  ]
}

function tolerationCauses(field: string, toleration: Fields): Cause[] {
  const {
    key = '',
    operator = '',
    value = '',
    effect = '',
    tolerationSeconds,
  } = toleration as Record<string, string>
  const needsExists =
    'operator must be Exists when `key` is empty, which means "match all values and all keys"'
  const needsNoExecute = "effect must be 'NoExecute' when `tolerationSeconds` is set"
  return [
    ...(key === '' ? [] : causesOf(`${field}.key`, key, qualifiedNameErrors(key))),
    ...(key === '' && operator !== 'Exists'
      ? [cause.invalid(`${field}.operator`, operator, needsExists)]
      : []),
    ...(tolerationSeconds !== undefined && effect !== 'NoExecute'
      ? [cause.invalid(`${field}.effect`, effect, needsNoExecute)]
      : []),
    ...operatorCauses(`${field}.operator`, operator, value),
    ...choiceCauses(`${field}.effect`, effect, ['NoSchedule', 'PreferNoSchedule', 'NoExecute']),
  ]
}

function operatorCauses(field: string, operator: string, value: string): Cause[] {
  if (operator === '' || operator === 'Equal') return causesOf(field, value, labelValueErrors(value))
  if (operator !== 'Exists') return [cause.notSupported(field, operator, ['Equal', 'Exists'])]
  return value === '' ? [] : [cause.invalid(field, value, "value must be empty when `operator` is 'Exists'")]
}

function aliasCauses(field: string, alias: Fields): Cause[] {
  const ip = String(alias.ip ?? '')
  const hostnames = (alias.hostnames ?? []) as string[]
  return [
    ...(isIP(ip)
      ? []
      : [cause.invalid(`${field}.ip`, ip, 'must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)')]),
    ...hostnames.flatMap((name, place) =>
      causesOf(`${field}.hostnames[${place}]`, name, subdomainErrors(name)),
    ),
  ]
}

function spreadCauses(field: string, constraint: Fields): Cause[] {
  const { maxSkew, topologyKey, whenUnsatisfiable } = constraint
  const policies = ['DoNotSchedule', 'ScheduleAnyway']
  return [
    ...(Number(maxSkew) > 0 ? [] : [cause.invalid(`${field}.maxSkew`, maxSkew, 'must be greater than zero')]),
    ...(topologyKey ? [] : [cause.required(`${field}.topologyKey`, 'can not be empty')]),
    ...(policies.includes(String(whenUnsatisfiable))
      ? []
      : [cause.notSupported(`${field}.whenUnsatisfiable`, whenUnsatisfiable, policies)]),
  ]
}
