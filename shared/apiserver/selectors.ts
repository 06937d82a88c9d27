import type { KubeObject } from '../kinds/object.ts'
import { badRequest } from './status.ts'

/** Whether an object is selected. */
export type Matcher = (object: KubeObject) => boolean

type Operator = 'in' | 'notin' | 'exists' | 'absent' | 'gt' | 'lt'

interface Requirement {
  key: string
  operator: Operator
  values: string[]
}

/**
 * Parses a label selector: `a=b`, `a==b`, `a!=b`, `a in (b,c)`, `a notin (b,c)`, `a`, `!a`, `a>1`, `a<1`, joined by
 * commas. Empty selects everything. Throws 400 in the API's words.
 */
export function labelMatcher(selector: string): Matcher {
  const requirements = parseRequirements(selector)
  if (requirements.length === 0) return () => true
  return (object) => {
    const labels = object.metadata?.labels ?? {}
    return requirements.every((requirement) => isMet(requirement, labels))
  }
}

function isMet({ key, operator, values }: Requirement, labels: Record<string, string>): boolean {
  const value = Object.hasOwn(labels, key) ? labels[key] : undefined
  switch (operator) {
    case 'in':
      return value !== undefined && values.includes(value)
    case 'notin':
      return value === undefined || !values.includes(value)
    case 'exists':
      return value !== undefined
    case 'absent':
      return value === undefined
    case 'gt':
      return value !== undefined && Number(value) > Number(values[0])
    case 'lt':
      return value !== undefined && Number(value) < Number(values[0])
  }
}

const special = /^(==|!=|[=!,()<>])/

function tokensOf(selector: string): string[] {
  const tokens: string[] = []
  for (let rest = selector.trimStart(); rest !== ''; ) {
    const token = special.exec(rest)?.[0] ?? /^[^=!,()<>\s]+/.exec(rest)?.[0] ?? rest
    tokens.push(token)
    rest = rest.slice(token.length).trimStart()
  }
  return tokens
}

const isWord = (token: string | undefined): token is string => token !== undefined && !special.test(token)

function unexpected(token: string | undefined, expected: string) {
  return badRequest(`unable to parse requirement: found '${token ?? ''}', expected: ${expected}`)
}

function parseRequirements(selector: string): Requirement[] {
  const tokens = tokensOf(selector)
  const requirements: Requirement[] = []
  for (let at = 0; at < tokens.length; at++) {
    const first = tokens[at]
    if (first !== '!' && !isWord(first))
      throw badRequest(`found '${first}', expected: !, identifier, or 'end of string'`)
    const [requirement, next] = parseRequirement(tokens, at)
    checkRequirement(requirement)
    requirements.push(requirement)
    if (next < tokens.length && tokens[next] !== ',')
      throw badRequest(`found '${tokens[next]}', expected: ',' or 'end of string'`)
    if (next === tokens.length - 1) throw badRequest("found '', expected: identifier after ','")
    at = next
  }
  return requirements
}

const symbols: Record<string, Operator> = { '=': 'in', '==': 'in', '!=': 'notin', '>': 'gt', '<': 'lt' }

/** One requirement from `tokens[at]`, and where the next token stands. */
function parseRequirement(tokens: string[], at: number): [Requirement, number] {
  const negated = tokens[at] === '!'
  const key = tokens[negated ? at + 1 : at]
  if (!isWord(key)) throw unexpected(key, 'identifier')
  const next = at + (negated ? 2 : 1)
  const token = tokens[next]
  if (negated) return [{ key, operator: 'absent', values: [] }, next]
  if (token === undefined || token === ',') return [{ key, operator: 'exists', values: [] }, next]
  const operator = symbols[token]
  if (operator) return parseValue(tokens, key, operator, next + 1)
  if (token !== 'in' && token !== 'notin') throw unexpected(token, 'in, notin, =, ==, !=, gt, lt')
  const [values, end] = parseValues(tokens, next + 1)
  return [{ key, operator: token, values }, end]
}

function parseValue(tokens: string[], key: string, operator: Operator, at: number): [Requirement, number] {
  const value = tokens[at]
  if (value === undefined || value === ',') return [{ key, operator, values: [''] }, at]
  if (!isWord(value)) throw unexpected(value, 'identifier')
  return [{ key, operator, values: [value] }, at + 1]
}

/** `(a,b)` from `tokens[at]`; an empty place is an empty value. */
function parseValues(tokens: string[], at: number): [string[], number] {
  if (tokens[at] !== '(')
    throw badRequest(`unable to parse requirement: found '${tokens[at] ?? ''}' expected: '('`)
  const values: string[] = []
  for (let place = at + 1; ; place++) {
    const token = tokens[place]
    if (isWord(token)) place += 1
    else if (token !== ',' && token !== ')') throw unexpected(token, "',', or identifier")
    values.push(isWord(token) ? token : '')
    const end = tokens[place]
    if (end === ')') return [values, place + 1]
    if (end !== ',') throw unexpected(end, "',' or ')'")
  }
}

const prefixPattern = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/
const namePattern = /^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$/
const valuePattern = /^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$/
const labelLengthMax = 63

const characters =
  "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
const nameRule = `${characters} (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')`
const valueRule = `a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')`

/** Why a label key is none, in the API's words. */
export function keyProblem(key: string): string | undefined {
  const [first = '', second, ...more] = key.split('/')
  if (more.length > 0)
    return `a valid label key ${nameRule} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`
  if (second !== undefined && !prefixPattern.test(first))
    return `prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`
  const name = second ?? first
  if (name === '') return 'name part must be non-empty'
  if (name.length > labelLengthMax) return 'name part must be no more than 63 bytes'
  return namePattern.test(name) ? undefined : `name part ${nameRule}`
}

/** Why a label value is none, in the API's words. */
export function valueProblem(value: string): string | undefined {
  if (value.length > labelLengthMax) return 'must be no more than 63 bytes'
  return valuePattern.test(value) ? undefined : valueRule
}

function checkRequirement({ key, operator, values }: Requirement): void {
  const refuse = (field: string, value: string, why: string) =>
    badRequest(`unable to parse requirement: ${field}: Invalid value: ${JSON.stringify(value)}: ${why}`)
  const problem = keyProblem(key)
  if (problem) throw refuse('<nil>', key, problem)
  values.forEach((value, index) => {
    if ((operator === 'gt' || operator === 'lt') && !/^[+-]?\d+$/.test(value))
      throw refuse(`values[${index}]`, value, "for 'Gt', 'Lt' operators, the value must be an integer")
    const wrong = valueProblem(value)
    if (wrong) throw refuse(`values[${index}][${key}]`, value, wrong)
  })
}

/** The value of a selectable field of an object; absent counts as empty. */
export type FieldReader = (object: KubeObject) => string

/** What a resource can be selected by besides name and namespace. */
export interface SelectableFields {
  readers: ReadonlyMap<string, FieldReader>
  /** Whether the refusal of an unknown field names those that there are. */
  namesKnown: boolean
}

/**
 * Parses a field selector, `metadata.name=x,type!=y`, over the fields that the resource can be selected by. Throws 400
 * in the API's words.
 */
export function fieldMatcher(selector: string, fields: SelectableFields): Matcher {
  const terms = selector.split(/(?<!\\),/).filter((term) => term !== '')
  const checks = terms.map((term) => {
    const parts = /^(.*?)(!=|==|=)(.*)$/s.exec(term)
    if (!parts) throw badRequest(`invalid selector: '${selector}'; can't understand '${term}'`)
    const [, field = '', operator, value = ''] = parts
    const unescaped = /(?<!\\)=/.exec(value)
    if (unescaped) throw badRequest('invalid field selector: unescaped character in value: 61')
    const read = fields.readers.get(field)
    if (!read) throw badRequest(unknownField(field, fields))
    const wanted = value.replace(/\\([\\,=])/g, '$1')
    return (object: KubeObject) => (read(object) === wanted) === (operator !== '!=')
  })
  return (object) => checks.every((check) => check(object))
}

function unknownField(field: string, { readers, namesKnown }: SelectableFields): string {
  if (!namesKnown) return `field label not supported: ${field}`
  return `"${field}" is not a known field selector: only ${[...readers.keys()].map((name) => `"${name}"`).join(', ')}`
}
