import { HTTP, CloudEvent as SdkEvent } from 'cloudevents'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type CloudEvent, UnreadableEvent } from '../../shared/cloudevents/event.ts'
import { parseSubject } from '../../shared/cloudevents/subject.ts'
import { looksLikeEvent, readEvent } from '../../shared/cloudevents/wire.ts'
import { binaryOf, structuredOf } from '../../shared/cloudevents/write.ts'

const subject = '/apis/neiam.org/v1/namespaces/shop/mutations/web'
const minimal = { specversion: '1.0', id: 'i', source: '/s', type: 't' }

const binary = (attributes: Record<string, string>, body = '', contentType?: string) =>
  readEvent({
    headers: [
      ...Object.entries(attributes).map(([name, value]): [string, string] => [`ce-${name}`, value]),
      ...(contentType === undefined ? [] : [['Content-Type', contentType] as [string, string]]),
    ],
    body: Buffer.from(body),
  })
const structured = (value: unknown, contentType = 'application/cloudevents+json') =>
  readEvent({
    headers: [['content-type', contentType]],
    body: Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)),
  })

function refusal(read: () => unknown): { status: number; attribute: string | undefined } {
  try {
    read()
  } catch (error) {
    if (error instanceof UnreadableEvent) return { status: error.status, attribute: error.attribute }
    throw error
  }
  throw new Error('It was read')
}

describe('case 20: nothing that an event lacks is made up', () => {
  const modes = { binary: (a: Record<string, string>) => binary(a), structured: (a: object) => structured(a) }
  for (const [mode, read] of Object.entries(modes)) {
    test.each(['specversion', 'id', 'source', 'type'])(
      `${mode}: without %s it is refused by that name`,
      (name) => {
        const { [name as 'id']: _, ...rest } = minimal
        expect(refusal(() => read(rest as never))).toEqual({ status: 400, attribute: name })
        expect(refusal(() => read({ ...minimal, [name]: '' }))).toEqual({ status: 400, attribute: name })
      },
    )
    test.each(['0.3', '2.0', '1', '1.0.2'])(`${mode}: specversion %s is refused`, (specversion) => {
      expect(refusal(() => read({ ...minimal, specversion }))).toEqual({
        status: 400,
        attribute: 'specversion',
      })
    })
    test.each(['yesterday', '2026-13-01T00:00:00Z', '2026-01-01', '0'])(
      `${mode}: time %s is refused`,
      (time) => {
        expect(refusal(() => read({ ...minimal, time }))).toEqual({ status: 400, attribute: 'time' })
      },
    )
    test(`${mode}: an absent time stays absent`, () => {
      expect(read(minimal)).not.toHaveProperty('time')
      expect(read({ ...minimal, time: '2026-01-01T00:00:00.123456Z' }).time).toBe(
        '2026-01-01T00:00:00.123456Z',
      )
    })
  }
  test('a source that is no URI reference is refused', () => {
    expect(refusal(() => binary({ ...minimal, source: 'a b' }))).toEqual({ status: 400, attribute: 'source' })
  })
})

describe('case 21: a batch is never taken for its first element', () => {
  const events = [1, 2, 3].map((id) => ({ ...minimal, id: String(id) }))
  test.each([
    ['three events as a batch', events, 'application/cloudevents-batch+json'],
    ['an array that calls itself one event', events, 'application/cloudevents+json'],
    ['an empty batch', [], 'application/cloudevents-batch+json'],
    ['an empty array that calls itself one event', [], 'application/cloudevents+json; charset=utf-8'],
  ])('%s is 415', (_, value, contentType) => {
    expect(refusal(() => structured(value, contentType)).status).toBe(415)
  })
})

describe('case 23: headers of senders that encode and of those that do not', () => {
  const subjectOf = (raw: string) => parseSubject(binary({ ...minimal, subject: raw }).subject)
  const named = { group: 'neiam.org', version: 'v1', namespace: 'shop', plural: 'mutations', name: 'web' }

  test.each([subject, subject.replaceAll('/', '%2F'), subject.replaceAll('/', '%2f'), `"${subject}"`])(
    '%s names the object',
    (raw) => expect(subjectOf(raw)).toEqual(named),
  )
  test.each([
    subject.replaceAll('/', '%252F'),
    subject.replace('shop', '%E4'),
    subject.replace('shop', '%ZZ'),
    subject.replace('shop', 'sh\u00f6p'),
    subject.replace('shop', '%2e%2e%2f'),
    subject.replace('shop', '..'),
    subject.replace('web', '..'),
    subject.replace('web', 'web%00'),
    subject.replace('web', 'web%0A'),
    `${subject}/status`,
    `${subject}?watch=1`,
    subject.replace('/apis', 'apis'),
    `http://elsewhere${subject}`,
    '%',
    '/',
  ])('%s is refused', (raw) => {
    expect(refusal(() => subjectOf(raw))).toEqual({ status: 400, attribute: 'subject' })
  })

  test('a body is not needed, and one that is not JSON is kept as bytes', () => {
    expect(binary(minimal)).not.toHaveProperty('data')
    expect(binary(minimal, '', 'application/json')).not.toHaveProperty('data')
    expect(binary(minimal, 'hello', 'text/plain').data).toEqual(Buffer.from('hello'))
    expect(refusal(() => binary(minimal, '{"a":', 'application/json'))).toEqual({
      status: 400,
      attribute: 'data',
    })
  })

  test('header names are taken as spelled, content types with any parameters', () => {
    const headers: [string, string][] = Object.entries(minimal).map(([name, value]) => [
      `CE-${name.toUpperCase()}`,
      value,
    ])
    expect(readEvent({ headers, body: new Uint8Array() })).toMatchObject(minimal)
    const spelled = structured({ ...minimal, data: 1 }, 'Application/CloudEvents+JSON ; charset="UTF-8"')
    expect(spelled.data).toBe(1)
    expect(refusal(() => structured(minimal, 'application/cloudevents+json; charset=utf-16')).status).toBe(
      415,
    )
    expect(refusal(() => structured('<event/>', 'application/cloudevents+xml')).status).toBe(415)
  })

  test('an extension that cannot be decoded is kept as it came: a dead letter must be read', () => {
    expect(binary({ ...minimal, knativeerrordata: '100% wr\u00f6ng' }).extensions).toEqual({
      knativeerrordata: '100% wr\u00f6ng',
    })
  })
})

test.each([
  ['null', 'null', 400],
  ['a string', '"event"', 400],
  ['nothing', '', 400],
  ['an attribute that is an object', { ...minimal, type: {} }, 400],
  ['data in both forms', { ...minimal, data: 1, data_base64: 'AA==' }, 400],
  ['broken base64', { ...minimal, data_base64: '*' }, 400],
])('structured: %s is refused', (_, body, status) => {
  expect(refusal(() => structured(body)).status).toBe(status)
})

test('a body that is not UTF-8 is refused', () => {
  const headers: [string, string][] = [['content-type', 'application/cloudevents+json']]
  const body = Buffer.from([0x22, 0xe4, 0x22])
  expect(refusal(() => readEvent({ headers, body }))).toEqual({ status: 400, attribute: 'body' })
})

test('an encoded body is not taken, and a plain request does not look like an event', () => {
  const gzip = () => readEvent({ headers: [['Content-Encoding', 'gzip']], body: new Uint8Array() })
  expect(refusal(gzip).status).toBe(415)
  expect(looksLikeEvent([['content-type', 'application/json']])).toBe(false)
  expect(looksLikeEvent([['Ce-Id', '1']])).toBe(true)
  expect(looksLikeEvent([['Content-Type', 'application/cloudevents-batch+json']])).toBe(true)
})

describe('with the SDK as the second opinion', () => {
  const text = fc.string({ minLength: 1, unit: 'grapheme' }).filter((value) => value.trim() === value)
  const ascii = fc.stringMatching(/^[!#$&-~]{1,20}$/)
  const data = fc.option(
    fc.oneof(fc.dictionary(fc.stringMatching(/^[a-z]+$/), fc.string()), fc.array(fc.integer())),
    {
      nil: undefined,
    },
  )
  const event = (value: fc.Arbitrary<string>): fc.Arbitrary<CloudEvent> =>
    fc
      .record({ id: value, type: value, subject: value, note: value, data })
      .map(({ data: payload, note, ...rest }) => ({
        specversion: '1.0',
        source: '/s',
        time: '2026-01-01T00:00:00.000Z',
        ...(payload !== undefined && { datacontenttype: 'application/json', data: payload }),
        extensions: { note },
        ...rest,
      }))

  test('what we send in binary mode the SDK reads as it was', () => {
    fc.assert(
      fc.property(event(ascii), (sent) => {
        const { headers, body } = binaryOf(sent)
        const read = HTTP.toEvent({ headers, body }) as SdkEvent<unknown>
        expect(read).toMatchObject({
          id: sent.id,
          type: sent.type,
          subject: sent.subject,
          ...sent.extensions,
        })
        expect(read.data ?? undefined).toEqual(sent.data)
      }),
    )
  })

  test('what the SDK sends, in either mode, we read as it was', () => {
    fc.assert(
      fc.property(event(ascii), fc.boolean(), (sent, isBinary) => {
        const { extensions, ...rest } = sent
        const sdk = new SdkEvent({ ...extensions, ...rest })
        const message = isBinary ? HTTP.binary(sdk) : HTTP.structured(sdk)
        const read = readEvent({
          headers: Object.entries(message.headers) as [string, string][],
          body: Buffer.from((message.body as string | undefined) ?? ''),
        })
        expect({ ...read, datacontenttype: undefined }).toEqual({ ...sent, datacontenttype: undefined })
      }),
    )
  })

  test('any text survives our own two modes', () => {
    fc.assert(
      fc.property(event(text), (sent) => {
        const { headers, body } = binaryOf(sent)
        expect(Object.values(headers).join('')).toMatch(/^[\x20-\x7e]*$/)
        const bytes = Buffer.from((body as string | null) ?? '')
        expect(readEvent({ headers: Object.entries(headers), body: bytes })).toEqual(sent)
        expect(structured(structuredOf(sent))).toEqual(sent)
      }),
    )
  })
})
