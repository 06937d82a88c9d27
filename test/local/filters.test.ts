import { describe, expect, it } from 'vitest'
import { type TriggerFilters, triggerFilter } from '../../shared/local/events/filters.ts'

const event = {
  specversion: '1.0',
  id: '1',
  source: '/clusters/local/watcher',
  type: 'org.neiam.object.applied',
  kind: 'Mutation',
}

const yes: [string, TriggerFilters][] = [
  ['nothing said', {}],
  ['no attributes', { filter: { attributes: {} } }],
  ['an equal attribute', { filter: { attributes: { kind: 'Mutation' } } }],
  ['"" where the event has any value', { filter: { attributes: { type: '' } } }],
  ['exact', { filters: [{ exact: { kind: 'Mutation' } }] }],
  ['exact with two attributes', { filters: [{ exact: { kind: 'Mutation', id: '1' } }] }],
  ['prefix', { filters: [{ prefix: { type: 'org.neiam.' } }] }],
  ['suffix', { filters: [{ suffix: { type: '.applied' } }] }],
  ['all', { filters: [{ all: [{ exact: { id: '1' } }, { prefix: { source: '/clusters' } }] }] }],
  ['any, when one does', { filters: [{ any: [{ exact: { id: '2' } }, { exact: { id: '1' } }] }] }],
  ['not', { filters: [{ not: { exact: { id: '2' } } }] }],
  ['not of an absent extension', { filters: [{ not: { exact: { cause: 'child' } } }] }],
  ['entries that say nothing', { filters: [{}, { exact: {} }, { all: [] }] }],
  [
    '`filters` wins over `filter`',
    { filter: { attributes: { id: '2' } }, filters: [{ exact: { id: '1' } }] },
  ],
  ['an empty list of filters falls back', { filter: { attributes: { id: '1' } }, filters: [] }],
]

const no: [string, TriggerFilters][] = [
  ['another value', { filter: { attributes: { kind: 'MutantDeployment' } } }],
  ['an absent extension', { filter: { attributes: { cause: 'child' } } }],
  ['"" where the attribute is absent', { filter: { attributes: { subject: '' } } }],
  ['one of two attributes', { filter: { attributes: { kind: 'Mutation', id: '2' } } }],
  ['exact', { filters: [{ exact: { type: 'org.neiam.object' } }] }],
  ['exact is case sensitive', { filters: [{ exact: { kind: 'mutation' } }] }],
  ['prefix', { filters: [{ prefix: { type: 'dev.' } }] }],
  ['suffix', { filters: [{ suffix: { type: '.deleted' } }] }],
  ['suffix of an absent extension', { filters: [{ suffix: { cause: 'd' } }] }],
  ['all, when one does not', { filters: [{ all: [{ exact: { id: '1' } }, { exact: { kind: 'x' } }] }] }],
  ['any, when none does', { filters: [{ any: [{ exact: { id: '2' } }, { exact: { id: '3' } }] }] }],
  ['not', { filters: [{ not: { exact: { id: '1' } } }] }],
  ['one of two entries', { filters: [{ exact: { id: '1' } }, { exact: { kind: 'x' } }] }],
]

const refused: [string, TriggerFilters, RegExp][] = [
  ['cesql', { filters: [{ cesql: "type = 'x'" }] }, /Trigger a\/b: filters\[0\]\.cesql: .* not served/],
  [
    'cesql inside not',
    { filters: [{ not: { any: [{ cesql: 'TRUE' }] } }] },
    /filters\[0\]\.not\.any\[0\]\.cesql/,
  ],
  ['two dialects', { filters: [{ exact: { id: '1' }, prefix: { id: '1' } }] }, /only one dialect/],
  ['a dialect that is none', { filters: [{ exakt: { id: '1' } } as never] }, /unknown dialect "exakt"/],
  ['an attribute name that is none', { filters: [{ exact: { Kind: 'x' } }] }, /"Kind" is no attribute name/],
  ['a not of nothing', { filters: [{ not: {} }] }, /ends Knative's broker filter/],
  ['an empty value', { filters: [{ exact: { kind: '' } }] }, /must not be empty/],
  ['a value that is no string', { filter: { attributes: { id: 1 as never } } }, /must be a string/],
]

describe('triggerFilter, which events a Trigger lets through', () => {
  it.each(yes)('passes: %s', (_, spec) => {
    expect(triggerFilter('Trigger a/b', spec)(event)).toBe(true)
  })
  it.each(no)('does not pass: %s', (_, spec) => {
    expect(triggerFilter('Trigger a/b', spec)(event)).toBe(false)
  })
  it.each(refused)('is refused: %s', (_, spec, message) => {
    expect(() => triggerFilter('Trigger a/b', spec)).toThrow(message)
  })
})
