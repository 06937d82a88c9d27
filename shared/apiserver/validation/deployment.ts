import { isObject, type KubeObject } from '../../kinds/object.ts'
import { type Cause, cause } from '../status.ts'
import { causesOf, type Fields, immutableCauses, labelCauses, listOf, nonNegativeCauses } from './fields.ts'
import { labelValueErrors, qualifiedNameErrors } from './names.ts'
import { podTemplateCauses } from './pod.ts'

/** What is wrong with a Deployment; `live` is the one that it takes the place of. */
export function deploymentCauses(object: KubeObject, live: KubeObject | undefined): Cause[] {
  const spec = object.spec as Fields
  return [
    ...nonNegativeCauses('spec.replicas', spec.replicas),
    ...selectorCauses(spec.selector),
    ...templateCauses(spec),
    ...strategyCauses(spec.strategy as Fields),
    ...nonNegativeCauses('spec.minReadySeconds', spec.minReadySeconds),
    ...nonNegativeCauses('spec.revisionHistoryLimit', spec.revisionHistoryLimit),
    ...deadlineCauses(spec),
    ...(live ? immutableCauses('spec.selector', spec.selector, (live.spec as Fields).selector) : []),
  ]
}

function deadlineCauses(spec: Fields): Cause[] {
  const field = 'spec.progressDeadlineSeconds'
  const deadline = spec.progressDeadlineSeconds
  if (typeof deadline !== 'number') return []
  const isLater = deadline > Number(spec.minReadySeconds ?? 0)
  return [
    ...nonNegativeCauses(field, deadline),
    ...(isLater ? [] : [cause.invalid(field, deadline, 'must be greater than minReadySeconds')]),
  ]
}

const operators = ['In', 'NotIn', 'Exists', 'DoesNotExist']

function selectorCauses(selector: unknown): Cause[] {
  const field = 'spec.selector'
  if (!isObject(selector)) return [cause.required(field)]
  const causes = [
    ...labelCauses(`${field}.matchLabels`, selector.matchLabels),
    ...listOf(selector.matchExpressions).flatMap((one, place) =>
      expressionCauses(`${field}.matchExpressions[${place}]`, one),
    ),
  ]
  if (causes.length > 0) return [...causes, cause.invalid(field, inOrder(selector), 'invalid label selector')]
  if (Object.keys(selector).length > 0) return []
  return [cause.invalid(field, selector, 'empty selector is invalid for deployment')]
}

/** As the server shows it: labels by name. */
function inOrder({ matchLabels, ...selector }: Fields): Fields {
  const labels = Object.entries((matchLabels ?? {}) as Fields).sort(([a], [b]) => (a < b ? -1 : 1))
  return { ...(matchLabels !== undefined && { matchLabels: Object.fromEntries(labels) }), ...selector }
}

function expressionCauses(field: string, expression: Fields): Cause[] {
  const { key, operator } = expression
  const values = (expression.values ?? []) as string[]
  return [
    ...valuesCauses(field, String(operator), values),
    ...causesOf(`${field}.key`, key, qualifiedNameErrors(String(key))),
    ...values.flatMap((value, place) =>
      causesOf(`${field}.values[${place}]`, value, labelValueErrors(value)),
    ),
  ]
}

function valuesCauses(field: string, operator: string, values: string[]): Cause[] {
  if (!operators.includes(operator))
    return [cause.invalid(`${field}.operator`, operator, 'not a valid selector operator')]
  const needsValues = operator === 'In' || operator === 'NotIn'
  if (needsValues && values.length === 0)
    return [cause.required(`${field}.values`, "must be specified when `operator` is 'In' or 'NotIn'")]
  if (needsValues || values.length === 0) return []
  return [
    cause.forbidden(`${field}.values`, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"),
  ]
}

function templateCauses({ selector, template }: Fields): Cause[] {
  const field = 'spec.template'
  const { metadata = {}, spec = {} } = template as { metadata?: Fields; spec?: Fields }
  const labels = metadata.labels as Record<string, string> | undefined
  const isSelected = isObject(selector) && (isEmpty(selector) || isMatch(selector, labels ?? {}))
  const { restartPolicy, activeDeadlineSeconds } = spec
  return [
    ...(isSelected ? [] : [cause.invalid(`${field}.metadata.labels`, labels, mismatch)]),
    ...podTemplateCauses(field, { metadata, spec }),
    ...(restartPolicy === 'Always'
      ? []
      : [cause.notSupported(`${field}.spec.restartPolicy`, restartPolicy, ['Always'])]),
    ...(activeDeadlineSeconds === undefined
      ? []
      : [
          cause.forbidden(
            `${field}.spec.activeDeadlineSeconds`,
            'activeDeadlineSeconds in ReplicaSet is not Supported',
          ),
        ]),
  ]
}

const mismatch = '`selector` does not match template `labels`'
const isEmpty = (selector: Fields) => Object.keys(selector).length === 0

/** Whether a valid selector selects these labels; an invalid one is told of elsewhere. */
function isMatch(selector: Fields, labels: Record<string, string>): boolean {
  const equals = Object.entries((selector.matchLabels ?? {}) as Record<string, string>)
  if (expressionsAreWrong(selector)) return true
  return (
    equals.every(([key, value]) => labels[key] === value) &&
    listOf(selector.matchExpressions).every(({ key, operator, values }) => {
      const label = labels[String(key)]
      const isAmong = label !== undefined && Array.isArray(values) && values.includes(label)
      if (operator === 'In') return isAmong
      if (operator === 'NotIn') return !isAmong
      return (label !== undefined) === (operator === 'Exists')
    })
  )
}

function expressionsAreWrong(selector: Fields): boolean {
  return selectorCauses(selector).length > 0
}

function strategyCauses(strategy: Fields): Cause[] {
  const field = 'spec.strategy'
  const { type, rollingUpdate } = strategy
  if (type === 'Recreate') {
    const why = "may not be specified when strategy `type` is 'Recreate'"
    return rollingUpdate === undefined ? [] : [cause.forbidden(`${field}.rollingUpdate`, why)]
  }
  if (type === 'RollingUpdate') return rollingCauses(`${field}.rollingUpdate`, rollingUpdate as Fields)
  const shown = { Type: type, RollingUpdate: rollingUpdate ?? null }
  return [cause.notSupported(field, shown, ['Recreate', 'RollingUpdate'])]
}

const percentText =
  "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"

function rollingCauses(field: string, { maxUnavailable, maxSurge }: Fields): Cause[] {
  const isPercent = (value: unknown) => /^\d+%$/.test(String(value))
  const amountCauses = (name: string, value: unknown) =>
    typeof value === 'string'
      ? isPercent(value)
        ? []
        : [cause.invalid(`${field}.${name}`, value, percentText)]
      : nonNegativeCauses(`${field}.${name}`, value)
  const unavailable = `${field}.maxUnavailable`
  const isOver = isPercent(maxUnavailable) && Number.parseInt(String(maxUnavailable), 10) > 100
  return [
    ...amountCauses('maxUnavailable', maxUnavailable),
    ...amountCauses('maxSurge', maxSurge),
    ...(amountOf(maxUnavailable) === 0 && amountOf(maxSurge) === 0
      ? [cause.invalid(unavailable, maxUnavailable, 'may not be 0 when `maxSurge` is 0')]
      : []),
    ...(isOver ? [cause.invalid(unavailable, maxUnavailable, 'must not be greater than 100%')] : []),
  ]
}

/** A number or percentage as a number; what is neither counts as 0. */
function amountOf(value: unknown): number {
  if (typeof value === 'number') return value
  return /^\d+%$/.test(String(value)) ? Number.parseInt(String(value), 10) : 0
}
