import { compareQuantities } from '../defaults/quantity.ts'
import { type Cause, cause } from '../status.ts'
import { atLeastZero, causesOf, type Fields } from './fields.ts'
import { qualifiedNameErrors } from './names.ts'

type Quantities = Record<string, string>

/** What is wrong with the resources of a container. */
export function resourcesCauses(field: string, resources: Fields = {}): Cause[] {
  const limits = (resources.limits ?? {}) as Quantities
  const requests = (resources.requests ?? {}) as Quantities
  return [
    ...Object.entries(limits).flatMap(([name, amount]) =>
      amountCauses(`${field}.limits[${name}]`, name, amount),
    ),
    ...Object.entries(requests).flatMap(([name, amount]) => [
      ...amountCauses(`${field}.requests[${name}]`, name, amount),
      ...limitCauses(field, name, amount, limits[name]),
    ]),
  ]
}

const isStandard = (name: string) =>
  ['cpu', 'memory', 'ephemeral-storage'].includes(name) || isHugePages(name)
const isHugePages = (name: string) => name.startsWith('hugepages-')

function amountCauses(field: string, name: string, amount: string): Cause[] {
  return [
    ...nameCauses(field, name),
    ...(compareQuantities(amount, '0') < 0 ? [cause.invalid(field, amount, atLeastZero)] : []),
    ...(!isStandard(name) && name.includes('/') && !isWhole(amount)
      ? [cause.invalid(field, amount, 'must be an integer')]
      : []),
  ]
}

function nameCauses(field: string, name: string): Cause[] {
  const wrong = causesOf(field, name, qualifiedNameErrors(name))
  if (isStandard(name)) return wrong
  if (name.includes('/'))
    return wrong.length === 0
      ? []
      : [...wrong, cause.invalid(field, name, "doesn't follow extended resource name standard")]
  return [
    ...wrong,
    cause.invalid(field, name, 'must be a standard resource type or fully qualified'),
    cause.invalid(field, name, 'must be a standard resource for containers'),
  ]
}

/** A canonical quantity below one, or with a part below one, has a suffix that says so. */
const isWhole = (amount: string) => !/[num]$/.test(amount)

/** A request fits into its limit; what cannot be shared (extended resources, huge pages) is asked for in full. */
function limitCauses(field: string, name: string, amount: string, limit: string | undefined): Cause[] {
  const isShared = isStandard(name) && !isHugePages(name)
  if (limit === undefined)
    return isShared
      ? []
      : [cause.required(`${field}.limits`, 'Limit must be set for non overcommitable resources')]
  const comparison = compareQuantities(amount, limit)
  if (isShared && comparison > 0)
    return [
      cause.invalid(`${field}.requests`, amount, `must be less than or equal to ${name} limit of ${limit}`),
    ]
  if (isShared || comparison === 0) return []
  return [cause.invalid(`${field}.requests`, amount, `must be equal to ${name} limit of ${limit}`)]
}
