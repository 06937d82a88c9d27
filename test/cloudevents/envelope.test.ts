import { describe, expect, test } from 'vitest'
import {
  type OwnerRef,
  objectEvent,
  reconciledEvent,
  refOf,
  resyncRequest,
} from '../../shared/cloudevents/envelope.ts'
import { attributesOf } from '../../shared/cloudevents/event.ts'
import { readEvent } from '../../shared/cloudevents/wire.ts'
import { binaryOf } from '../../shared/cloudevents/write.ts'

const owner: OwnerRef = {
  apiVersion: 'neiam.org/v1',
  kind: 'Mutation',
  namespace: 'shop',
  name: 'web',
  uid: 'u-1',
}
const applied = (changed = { uid: 'u-1', resourceVersion: '7' }) =>
  objectEvent({ cluster: 'here', verb: 'applied', owner, changed, cause: 'object' })

describe('the event of a changed object', () => {
  test('says which object to look at and nothing of what stands in it', () => {
    expect(attributesOf(applied())).toEqual({
      specversion: '1.0',
      id: 'u-1.applied.u-1.7',
      source: '/clusters/here/watcher',
      type: 'org.neiam.object.applied',
      subject: '/apis/neiam.org/v1/namespaces/shop/mutations/web',
      partitionkey: '/apis/neiam.org/v1/namespaces/shop/mutations/web',
      datacontenttype: 'application/json',
      apiversion: 'neiam.org/v1',
      kind: 'Mutation',
      namespace: 'shop',
      name: 'web',
      cause: 'object',
    })
    expect(applied().data).toEqual({ ...owner, resourceVersion: '7' })
  })

  test('is the same event when it is sent again, and another one for another change', () => {
    expect(applied().id).toBe(applied().id)
    const ids = new Set([
      applied().id,
      applied({ uid: 'u-1', resourceVersion: '8' }).id,
      applied({ uid: 'child', resourceVersion: '7' }).id,
      objectEvent({
        cluster: 'c',
        verb: 'deleted',
        owner,
        changed: { uid: 'u-1', resourceVersion: '7' },
        cause: 'object',
      }).id,
      objectEvent({ cluster: 'c', verb: 'resync', owner, tick: 't1', cause: 'resync' }).id,
      objectEvent({ cluster: 'c', verb: 'resync', owner, tick: 't2', cause: 'resync' }).id,
    ])
    expect(ids.size).toBe(6)
  })

  test('a change of a child does not pass its version off as the owner’s', () => {
    expect(applied({ uid: 'child', resourceVersion: '9' }).data).toEqual(owner)
  })

  test('cannot be made without that which makes its id unique, nor for a foreign kind', () => {
    expect(() => objectEvent({ cluster: 'c', verb: 'applied', owner, cause: 'object' })).toThrow(
      'uid and version',
    )
    expect(() => objectEvent({ cluster: 'c', verb: 'resync', owner, cause: 'resync' })).toThrow('tick')
    expect(() => applied.call(null, { uid: '', resourceVersion: '1' })).toThrow(TypeError)
    expect(() =>
      objectEvent({
        cluster: 'c',
        verb: 'resync',
        owner: { ...owner, kind: 'Pod' },
        tick: 't',
        cause: 'resync',
      }),
    ).toThrow('No subject for a Pod')
  })

  test('names its object again after the wire', () => {
    const { headers, body } = binaryOf(applied())
    const event = readEvent({ headers: Object.entries(headers), body: Buffer.from(body as string) })
    expect(refOf(event)).toEqual(owner)
  })
})

test('an outcome keeps the trace of its cause', () => {
  const cause = objectEvent({
    cluster: 'here',
    verb: 'applied',
    owner,
    changed: { uid: 'u-1', resourceVersion: '7' },
    cause: 'object',
    traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
  })
  const outcome = reconciledEvent({ cluster: 'here', functionName: 'mutation', ref: owner, cause })
  expect(outcome).toMatchObject({
    type: 'org.neiam.object.reconciled',
    source: '/clusters/here/functions/mutation',
    id: `${cause.id}.reconciled`,
    subject: cause.subject,
  })
  expect(outcome.extensions.traceparent).toBe(cause.extensions.traceparent)
})

test('each page of a resync is an event of its own', () => {
  const page = (number: number) =>
    resyncRequest({ cluster: 'c', from: 'resync', mode: 'needed', tick: 't', page: { number, position: {} } })
  expect(page(1).id).toBe(page(1).id)
  expect(page(1).id).not.toBe(page(2).id)
})
