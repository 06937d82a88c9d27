import { describe, expect, it } from 'vitest'
import { readEvent } from '../../shared/local/events/read-event.ts'
import { headersOf } from '../../shared/local/events/wire-event.ts'

const bytes = (text: string) => new TextEncoder().encode(text)
const required = { 'ce-specversion': '1.0', 'ce-id': '1', 'ce-source': '/x', 'ce-type': 'y' }
const binary = (changes: Record<string, string | undefined>) => {
  const headers = Object.entries({ ...required, ...changes }).filter(([, value]) => value !== undefined)
  return readEvent(new Headers(headers as [string, string][]), bytes(''))
}
const structured = (body: unknown, type = 'application/cloudevents+json') =>
  readEvent(
    new Headers({ 'content-type': type }),
    bytes(typeof body === 'string' ? body : JSON.stringify(body)),
  )

describe('readEvent', () => {
  it('takes the binary mode, whatever the case of the header names', () => {
    const headers = new Headers({
      'CE-SpecVersion': '1.0',
      'Ce-Id': '1',
      'ce-source': '/x',
      'ce-type': 'y',
      'ce-kind': 'Mutation',
      'content-type': 'application/json; charset=utf-8',
    })
    expect(readEvent(headers, bytes('{}'))).toEqual({
      attributes: {
        specversion: '1.0',
        id: '1',
        source: '/x',
        type: 'y',
        kind: 'Mutation',
        datacontenttype: 'application/json; charset=utf-8',
      },
      data: bytes('{}'),
    })
  })

  it.each([
    ['JSON data', { data: { a: 1 } }, '{"a":1}', undefined],
    ['text data', { data: 'hi', datacontenttype: 'text/plain' }, 'hi', 'text/plain'],
    ['binary data', { data_base64: 'aGk=', datacontenttype: 'x/y' }, 'hi', 'x/y'],
    ['no data', {}, '', undefined],
  ])('takes the structured mode with %s', (_, fields, data, type) => {
    const event = structured({
      specversion: '1.0',
      id: '1',
      source: '/x',
      type: 'y',
      n: 1,
      t: true,
      ...fields,
    })
    expect(Buffer.from(event.data).toString()).toBe(data)
    expect(event.attributes).toMatchObject({ n: '1', t: 'true' })
    expect(event.attributes.datacontenttype).toBe(type)
  })

  it('keeps text that is not ASCII on its way through headers', () => {
    const event = structured({ specversion: '1.0', id: 'ü', source: '/x', type: 'y', subject: '変異' })
    expect(readEvent(new Headers(headersOf(event)), event.data)).toEqual(event)
  })

  it.each([
    ['no version', { 'ce-specversion': undefined }],
    ['version 2.0', { 'ce-specversion': '2.0' }],
    ['no id', { 'ce-id': undefined }],
    ['an empty id', { 'ce-id': ' ' }],
    ['no source', { 'ce-source': undefined }],
    ['no type', { 'ce-type': undefined }],
    ['a source that is no URI reference', { 'ce-source': '/%zz' }],
    ['a time that is none', { 'ce-time': 'yesterday' }],
    ['a time without a zone', { 'ce-time': '2026-01-01T00:00:00' }],
    ['a name that is none', { 'ce-foo-bar': '1' }],
    ['a content type that is none', { 'content-type': 'a b' }],
  ])('refuses %s', (_, changes) => {
    expect(() => binary(changes)).toThrow()
  })

  it.each([
    ['a batch', () => structured([{}], 'application/cloudevents-batch+json')],
    ['an array', () => structured([])],
    ['null', () => structured('null')],
    ['no JSON', () => structured('{')],
    [
      'an attribute that is an object',
      () => structured({ specversion: '1.0', id: '1', source: '/', type: 'y', e: {} }),
    ],
    [
      'a line break in an attribute',
      () => structured({ specversion: '1.0', id: '1\n2', source: '/', type: 'y' }),
    ],
    ['plain JSON', () => structured({}, 'application/json')],
  ])('refuses %s', (_, read) => {
    expect(read).toThrow()
  })
})
