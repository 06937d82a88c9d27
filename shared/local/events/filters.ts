/**
 * Which events a Trigger lets through, decided as Knative's broker filter decides (knative/eventing,
 * pkg/eventfilter): `filters` when there are any, else `filter.attributes`, else everything.
 */

/** One entry of a Trigger's `spec.filters`: exactly one dialect. */
export interface SubscriptionFilter {
  exact?: Record<string, string>
  prefix?: Record<string, string>
  suffix?: Record<string, string>
  all?: SubscriptionFilter[]
  any?: SubscriptionFilter[]
  not?: SubscriptionFilter
  cesql?: string
}

export interface TriggerFilters {
  filter?: { attributes?: Record<string, string> | null } | undefined
  filters?: SubscriptionFilter[]
}

/** Tells whether an event with these attributes passes. */
export type Filter = (attributes: Readonly<Record<string, string>>) => boolean

/** `none` is a filter with nothing to say, which lets pass but which `not` does not turn round. */
type Verdict = 'pass' | 'fail' | 'none'
type Judge = (attributes: Readonly<Record<string, string>>) => Verdict

const dialects = ['exact', 'prefix', 'suffix', 'all', 'any', 'not', 'cesql'] as const
const attributeName = /^[a-z][a-z0-9]*$/
/** What Knative takes attributes of the specification for where the event has none; extensions are absent then. */
const whenAbsent: Record<string, string> = {
  subject: '',
  dataschema: '',
  datacontenttype: '',
  time: '0001-01-01T00:00:00Z',
}

/**
 * Makes the filter of a Trigger. `what` names the Trigger in errors. Throws for what Knative's webhook refuses (an
 * attribute name that is none, two dialects in one entry, an empty value) and for `cesql`, which is not served here.
 */
export function triggerFilter(what: string, spec: TriggerFilters): Filter {
  const judge = spec.filters?.length
    ? all(judgesOf(`${what}: filters`, spec.filters))
    : byAttributes(`${what}: filter.attributes`, spec.filter?.attributes)
  return (attributes) => judge(attributes) !== 'fail'
}

/** `filter.attributes`: equal, or, for an empty value, present and not empty. */
function byAttributes(what: string, wanted: Record<string, string> | null | undefined): Judge {
  if (wanted === undefined || wanted === null) return () => 'none'
  const entries = entriesOf(what, wanted, { emptyAllowed: true })
  return (attributes) =>
    entries.every(([name, value]) => {
      const actual = attributes[name] ?? whenAbsent[name]
      return value === '' ? actual : actual === value
    })
      ? 'pass'
      : 'fail'
}

/** Entries that say nothing are left out, as Knative leaves them out. */
function judgesOf(what: string, entries: SubscriptionFilter[] = []): Judge[] {
  return entries
    .map((entry, index) => judgeOf(`${what}[${index}]`, entry))
    .filter((judge) => judge !== undefined)
}

/** Undefined for an entry that says nothing. */
function judgeOf(what: string, entry: SubscriptionFilter): Judge | undefined {
  const found = dialects.filter((dialect) => !isUnset(entry, dialect))
  const unknown = Object.keys(entry).find((key) => !dialects.some((dialect) => dialect === key))
  if (unknown) throw new Error(`${what}: unknown dialect "${unknown}"; there are ${dialects.join(', ')}`)
  if (found.length > 1)
    throw new Error(`${what}: an entry may have only one dialect, this has ${found.join(' and ')}`)
  switch (found[0]) {
    case 'exact':
      return compare(`${what}.exact`, entry.exact, (actual, wanted) => actual === wanted)
    case 'prefix':
      return compare(`${what}.prefix`, entry.prefix, (actual, wanted) => actual.startsWith(wanted))
    case 'suffix':
      return compare(`${what}.suffix`, entry.suffix, (actual, wanted) => actual.endsWith(wanted))
    case 'all':
      return all(judgesOf(`${what}.all`, entry.all))
    case 'any':
      return any(judgesOf(`${what}.any`, entry.any))
    case 'not':
      return not(judgeOf(`${what}.not`, entry.not ?? {}) ?? endsTheFilter(`${what}.not`))
    case 'cesql':
      throw new Error(
        `${what}.cesql: CloudEvents SQL is not served by the local broker; say it with exact, prefix, suffix, all, any and not`,
      )
    default:
      return undefined
  }
}

function endsTheFilter(what: string): never {
  throw new Error(`${what}: says nothing, and a "not" of nothing ends Knative's broker filter process`)
}

function compare(
  what: string,
  wanted: Record<string, string> = {},
  matches: (actual: string, wanted: string) => boolean,
): Judge {
  const entries = entriesOf(what, wanted, { emptyAllowed: false })
  return (attributes) => {
    for (const [name, value] of entries) {
      const actual = attributes[name] ?? whenAbsent[name]
      if (actual === undefined || !matches(actual, value)) return 'fail'
    }
    return 'pass'
  }
}

function all(judges: Judge[]): Judge {
  return (attributes) => {
    let last: Verdict = 'none'
    for (const judge of judges) {
      last = judge(attributes)
      if (last === 'fail') return 'fail'
    }
    return last
  }
}

function any(judges: Judge[]): Judge {
  return (attributes) => {
    let last: Verdict = 'none'
    for (const judge of judges) {
      last = judge(attributes)
      if (last === 'pass') return 'pass'
    }
    return last
  }
}

function not(judge: Judge): Judge {
  const opposite = { pass: 'fail', fail: 'pass', none: 'none' } as const
  return (attributes) => opposite[judge(attributes)]
}

function entriesOf(
  what: string,
  wanted: Record<string, string>,
  { emptyAllowed }: { emptyAllowed: boolean },
): [string, string][] {
  const entries = Object.entries(wanted)
  for (const [name, value] of entries) {
    if (!attributeName.test(name))
      throw new Error(`${what}: "${name}" is no attribute name (lower-case letters and digits)`)
    if (typeof value !== 'string') throw new Error(`${what}.${name}: the value must be a string`)
    if (value === '' && !emptyAllowed) throw new Error(`${what}.${name}: the value must not be empty`)
  }
  return entries
}

/** Whether the dialect is not set in the entry: `not: {}` is (Knative's is a pointer), `all: []` and `exact: {}` are not. */
function isUnset(entry: SubscriptionFilter, dialect: (typeof dialects)[number]): boolean {
  const value = entry[dialect]
  if (value === undefined || value === null || value === '') return true
  return dialect !== 'not' && Object.keys(value).length === 0
}
