import { describe, expect, test } from 'vitest'
import { objectEvent, reconciledEvent } from '../../shared/cloudevents/envelope.ts'
import type { CloudEvent } from '../../shared/cloudevents/event.ts'
import { targetOf } from '../../shared/cloudevents/target.ts'
import { mutantDeployments, mutations } from '../../shared/kinds/mutants.ts'

const web = { apiVersion: 'neiam.org/v1', kind: 'Mutation', namespace: 'shop', name: 'web', uid: 'u' }
const event = (attributes: Partial<CloudEvent>): CloudEvent => ({
  specversion: '1.0',
  id: 'i',
  source: 'https://10.96.0.1:443',
  type: 't',
  extensions: {},
  ...attributes,
})
const shopWeb = { namespace: 'shop', name: 'web' }

describe('our own events', () => {
  test.each(['applied', 'deleted'] as const)('%s asks for the object it names', (verb) => {
    const changed = { uid: 'child', resourceVersion: '3' }
    const sent = objectEvent({ cluster: 'c', verb, owner: web, changed, cause: 'child' })
    expect(targetOf(sent, mutations)).toEqual(shopWeb)
    expect(targetOf(sent, mutantDeployments)).toBe('foreign')
  })

  test('a resync asks for the object it names', () => {
    const sent = objectEvent({ cluster: 'c', verb: 'resync', owner: web, tick: '1', cause: 'resync' })
    expect(targetOf(sent, mutations)).toEqual(shopWeb)
  })

  test('case 14: an outcome is nobody’s work, not even when its subject is broken', () => {
    const outcome = reconciledEvent({ cluster: 'c', functionName: 'f', ref: web, cause: event({}) })
    expect(targetOf(outcome, mutations)).toBe('nothing')
    expect(targetOf({ ...outcome, subject: '..' }, mutations)).toBe('nothing')
  })

  test('a kind that contradicts the subject is refused', () => {
    const sent = objectEvent({ cluster: 'c', verb: 'resync', owner: web, tick: '1', cause: 'resync' })
    const bent = { ...sent, extensions: { ...sent.extensions, kind: 'MutantDeployment' } }
    expect(() => targetOf(bent, mutations)).toThrow('Attribute kind does not match the subject')
  })

  test('another type is for somebody else', () => {
    expect(targetOf(event({ type: 'dev.knative.sources.ping' }), mutations)).toBe('foreign')
    expect(targetOf(event({ type: 'org.neiam.object.appliedx' }), mutations)).toBe('foreign')
  })
})

const types = ['add', 'update', 'delete'].flatMap((verb) => [
  `dev.knative.apiserver.ref.${verb}`,
  `dev.knative.apiserver.resource.${verb}`,
])

describe.each(types)('Knative’s %s', (type) => {
  const child = (metadata: object) =>
    event({
      type,
      subject: '/apis/apps/v1/namespaces/shop/deployments/web-red',
      data: { apiVersion: 'apps/v1', kind: 'Deployment', metadata },
    })
  const controlledBy = (kind: string, name = 'web') => ({
    ownerReferences: [{ apiVersion: 'neiam.org/v1', kind, name, uid: 'u', controller: true }],
  })

  test('of an object asks for it', () => {
    const sent = event({ type, subject: '/apis/neiam.org/v1/namespaces/shop/mutations/web' })
    expect(targetOf(sent, mutations)).toEqual(shopWeb)
    expect(targetOf(sent, mutantDeployments)).toBe('foreign')
  })

  test('of a child asks for its controller, and is nothing to the other kind', () => {
    expect(targetOf(child(controlledBy('Mutation')), mutations)).toEqual(shopWeb)
    expect(targetOf(child(controlledBy('Mutation')), mutantDeployments)).toBe('nothing')
    expect(targetOf(child(controlledBy('ReplicaSet')), mutations)).toBe('nothing')
  })

  test('of a child that lost its controller asks for the owner that its label names', () => {
    expect(targetOf(child({ labels: { 'neiam.org/owner': 'web' } }), mutations)).toEqual(shopWeb)
    expect(targetOf(child({}), mutations)).toBe('nothing')
  })

  test('of a child whose owner’s name would bend a path is refused', () => {
    expect(() => targetOf(child(controlledBy('Mutation', '../secrets')), mutations)).toThrow('subject')
  })

  test('of a child sent as a reference alone tells nothing', () => {
    const subject = '/apis/apps/v1/namespaces/shop/deployments/web-red'
    expect(targetOf(event({ type, subject }), mutations)).toBe('nothing')
  })

  test('of a foreign kind, the core group’s too, is for somebody else', () => {
    expect(targetOf(event({ type, subject: '/apis/v1/namespaces/shop/pods/web' }), mutations)).toBe('foreign')
    expect(() => targetOf(event({ type }), mutations)).toThrow('Attribute subject is missing')
  })
})
