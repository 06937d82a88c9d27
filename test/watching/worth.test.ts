import { describe, expect, it } from 'vitest'
import type { ManagedFieldsEntry, ObjectMeta } from '../../shared/kinds/object.ts'
import { type ChildFacts, childFacts, type OwnerFacts, ownerFacts } from '../../shared/watching/facts.ts'
import { ownersToldBy, ownerVerb } from '../../shared/watching/worth.ts'

const owner = (change: ObjectMeta = {}): OwnerFacts =>
  ownerFacts({ metadata: { name: 'web', uid: 'u1', resourceVersion: '1', generation: 1, ...change } })

describe("an owner's change", () => {
  const before = owner()
  const rows: [string, Parameters<typeof ownerVerb>[0], string | undefined][] = [
    ['made', { after: before }, 'applied'],
    ['gone', { before }, 'deleted'],
    ['its spec', { before, after: owner({ generation: 2 }) }, 'applied'],
    ['its labels', { before, after: owner({ labels: { a: 'b' } }) }, 'applied'],
    ['its annotations', { before, after: owner({ annotations: { a: 'b' } }) }, 'applied'],
    ['its finalizers', { before, after: owner({ finalizers: ['x/y'] }) }, 'applied'],
    [
      'its deletion begun',
      { before, after: owner({ deletionTimestamp: '2026-01-01T00:00:00Z' }) },
      'applied',
    ],
    ['its owner', { before, after: owner({ ownerReferences: [reference('Mutation', 'x')] }) }, 'applied'],
    [
      'its status alone',
      { before, after: owner({ resourceVersion: '2', managedFields: [status(1)] }) },
      undefined,
    ],
  ]
  it.each(rows)('%s: tells %j', (_, change, verb) => expect(ownerVerb(change)).toBe(verb))
})

function reference(kind: string, name: string, apiVersion = 'neiam.org/v1') {
  return { apiVersion, kind, name, uid: 'u1', controller: true }
}
function entry(manager: string, operation: string, second: number, rest: ManagedFieldsEntry = {}) {
  return { manager, operation, time: `2026-01-01T00:00:0${second}Z`, fieldsV1: { 'f:spec': {} }, ...rest }
}
const ours = (second: number) => entry('mutantops-operator', 'Apply', second)
const hand = (second: number) => entry('kubectl-edit', 'Update', second)
const status = (second: number) =>
  entry('kube-controller-manager', 'Update', second, { subresource: 'status' })

function child(managedFields: ManagedFieldsEntry[], change: ObjectMeta = {}): ChildFacts {
  const ownerReferences = [reference('Mutation', 'web')]
  return childFacts({
    metadata: { name: 'web-red', uid: 'c1', resourceVersion: '1', ownerReferences, managedFields, ...change },
  })
}

describe("a child's change", () => {
  const web = ['Mutation/web']
  const stranger = { ownerReferences: [reference('ReplicaSet', 'web', 'apps/v1')] }
  const taken = { ownerReferences: [reference('MutantDeployment', 'other')] }
  const rows: [string, { before?: ChildFacts; after?: ChildFacts }, string[]][] = [
    ['made by our apply: tells nothing new', { after: child([ours(1)]) }, []],
    ['made by another', { after: child([hand(1)]) }, web],
    ['made by us and touched by another since', { after: child([ours(1), hand(1)]) }, web],
    [
      'our apply and nothing else',
      { before: child([ours(1), status(1)]), after: child([ours(2), status(1)]) },
      [],
    ],
    ['a hand edit', { before: child([ours(1)]), after: child([ours(1), hand(2)]) }, web],
    [
      'a hand edit that took a field from us',
      { before: child([ours(1)]), after: child([ours(2), hand(2)]) },
      web,
    ],
    ['a status write', { before: child([ours(1)]), after: child([ours(1), status(2)]) }, web],
    [
      'a second one in the same second',
      { before: child([ours(1), status(2)]), after: child([ours(1), status(2)]) },
      web,
    ],
    ['its end', { before: child([ours(1)]) }, web],
    ['its end begun', { before: child([ours(1)]), after: child([ours(1)], { deletionTimestamp: 'x' }) }, web],
    [
      'its owner stripped',
      { before: child([ours(1)]), after: child([ours(1)], { ownerReferences: [] }) },
      web,
    ],
    [
      'its owner replaced by ours',
      { before: child([ours(1)]), after: child([ours(2)], taken) },
      [...web, 'MutantDeployment/other'],
    ],
    [
      'adopted by us with our apply',
      { before: child([hand(1)], stranger), after: child([ours(2), hand(1)]) },
      web,
    ],
    ['of a stranger', { before: child([hand(1)], stranger), after: child([hand(2)], stranger) }, []],
  ]
  it.each(rows)('%s', (_, change, owners) => expect(ownersToldBy(change)).toEqual(owners))
})
