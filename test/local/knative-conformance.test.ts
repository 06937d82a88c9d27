import { describe, expect, it } from 'vitest'
import {
  type Answering,
  deadLetterUrl,
  ingressUrl,
  localBroker,
  subscriberUrl,
} from '../support/local-broker.ts'
import { empty, fates, reply, structured, text } from './knative-facts.ts'

describe('as on Knative, a subscriber that answers', () => {
  it.each(fates)('%s', async (_, answer, fate) => {
    const w = localBroker({ answer, delivery: { retry: 1, timeout: 'PT1S' } })
    await w.deliver()
    expect(w.at(subscriberUrl)).toHaveLength(fate.tries)
    const [letter, ...more] = w.at(deadLetterUrl)
    expect(more).toEqual([])
    if (!fate.dead) return expect(letter).toBeUndefined()
    const headers: Record<string, string> = letter?.headers ?? {}
    const data = headers['ce-knativeerrordata']
    const told = {
      dest: headers['ce-knativeerrordest'],
      code: headers['ce-knativeerrorcode'],
      data: data === undefined ? undefined : Buffer.from(data, 'base64').toString(),
    }
    if (fate.dead === 'untold') expect(told).toEqual({ dest: undefined, code: undefined, data: undefined })
    else if (Array.isArray(fate.dead))
      expect(told).toEqual({ dest: subscriberUrl, code: `${fate.dead[0]}`, data: fate.dead[1] })
    else expect(told).toMatchObject({ dest: subscriberUrl, code: `${fate.dead.code}` })
  })

  it.each([
    ['301', 301, 'GET', ''],
    ['302', 302, 'GET', ''],
    ['303', 303, 'GET', ''],
    ['307', 307, 'POST', '{"a":1}'],
    ['308', 308, 'POST', '{"a":1}'],
  ])('%s is followed', async (_, status, method, data) => {
    const w = localBroker({ answer: () => empty(status, { location: '/elsewhere' }) })
    await w.deliver()
    expect(w.arrived).toHaveLength(2)
    expect(w.arrived[1]).toMatchObject({
      url: `${subscriberUrl}elsewhere`,
      method,
      data,
      headers: { 'ce-id': 'i', prefer: 'reply', referer: subscriberUrl },
    })
    expect(w.arrived[1]?.headers['content-type']).toBe(method === 'POST' ? 'application/json' : undefined)
  })

  it.each([302, 307])('%i for ever is asked ten times a try, and counts as no answer', async (status) => {
    const w = localBroker({ answer: () => empty(status, { location: subscriberUrl }) })
    await w.deliver()
    expect(w.at(subscriberUrl)).toHaveLength(20)
    expect(w.at(deadLetterUrl)[0]?.headers['ce-knativeerrorcode']).toBe('500')
  })

  it.each([
    ['linear', { retry: 4, backoffPolicy: 'linear', backoffDelay: 'PT0.5S' }, [0, 0, 500, 1500, 3000]],
    [
      'exponential',
      { retry: 4, backoffPolicy: 'exponential', backoffDelay: 'PT0.3S' },
      [0, 300, 900, 2100, 4500],
    ],
    ['no backoff', { retry: 3 }, [0, 0, 0, 0]],
    ['a policy without a delay', { retry: 2, backoffPolicy: 'linear' }, [0, 0, 0]],
    ['a delay without a policy', { retry: 2, backoffDelay: 'PT1S' }, [0, 0, 0]],
    ['no retry', { backoffPolicy: 'linear', backoffDelay: 'PT1S' }, [0]],
    ['an empty delivery', {}, [0]],
  ])('503 with Retry-After is tried again by the delivery alone: %s', async (_, delivery, expected) => {
    const w = localBroker({ answer: () => empty(503, { 'retry-after': '60' }), delivery })
    await w.deliver()
    expect(w.at(subscriberUrl).map(({ atMs }) => atMs)).toEqual(expected)
  })
})

describe('as on Knative, a dead letter', () => {
  it('goes with the event, its hops and what the ingress let pass, and asks for no reply', async () => {
    const w = localBroker({ answer: () => text(400), delivery: {} })
    await w.deliver({ 'x-request-id': 'r', 'ce-knativeerrorcode': '1', 'x-other': 'o' })
    expect(w.at(deadLetterUrl)[0]?.headers).toEqual({
      'ce-specversion': '1.0',
      'ce-id': 'i',
      'ce-source': '/s',
      'ce-type': 'asked',
      'ce-knativearrivaltime': '2026-01-01T00:00:00.000Z',
      'ce-knativebrokerttl': '255',
      'ce-knativeerrordest': subscriberUrl,
      'ce-knativeerrorcode': '1',
      'ce-knativeerrordata': Buffer.from('no').toString('base64'),
      'content-type': 'application/json',
      'kn-namespace': 't',
      'x-request-id': 'r',
    })
  })

  it.each([
    ['any 2xx, whatever its body', () => text(200, 'OK'), 1],
    ['a reply, which goes nowhere', () => empty(200, reply), 1],
    ['400', () => text(400), 1],
    ['500, again and again', () => text(500), 2],
    ['500, then 204', (n: number) => (n ? empty(204) : text(500)), 2],
  ] as [string, Answering, number][])('is answered by %s', async (_, deadLetter, tries) => {
    const w = localBroker({ answer: () => text(400), deadLetter })
    await w.deliver()
    expect(w.at(deadLetterUrl)).toHaveLength(tries)
    expect(w.arrived).toHaveLength(1 + tries)
  })
})

describe('as on Knative, a reply', () => {
  const audit = { name: 'audit', subscriberUrl: 'http://audit.test/', accepts: () => true }
  const replied = async (answer: Answering, headers: Record<string, string> = {}) => {
    const w = localBroker({ answer, also: [audit] })
    await w.deliver(headers)
    return { w, got: w.at(audit.subscriberUrl).filter((one) => one.headers['ce-id'] === 'r') }
  }

  it('goes on with the headers of the answer, and the trace of the event', async () => {
    const answered = {
      ...reply,
      'x-request-id': 'of the answer',
      'knative-a': 'b',
      'retry-after': '9',
      'x-o': 'o',
    }
    const { got } = await replied(() => text(200, 'hello', { ...answered, 'content-type': 'text/plain' }), {
      'x-request-id': 'of the event',
      'knative-z': 'z',
      traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
    })
    expect(got[0]).toMatchObject({
      data: 'hello',
      headers: { 'x-request-id': 'of the answer', 'knative-a': 'b' },
    })
    expect(got[0]?.headers).toMatchObject({
      'retry-after': '9',
      traceparent: expect.stringContaining('0af765'),
    })
    expect(got[0]?.headers['knative-z']).toBeUndefined()
  })

  it.each([
    ['in binary mode without data has no content type', () => empty(202, reply), undefined],
    ['even of a 204', () => empty(204, reply), undefined],
    [
      'whose data has no type gets the one that Go guesses',
      () =>
        text(
          200,
          JSON.stringify({ specversion: '1.0', id: 'r', source: '/f', type: 'reply', data: 1 }),
          structured,
        ),
      'text/plain; charset=utf-8',
    ],
  ] as [string, Answering, string | undefined][])('%s', async (_, answer, type) => {
    const { got } = await replied(answer)
    expect(got).toHaveLength(1)
    expect(got[0]?.headers['content-type']).toBe(type)
  })

  it.each(['ce-id', 'ce-type'])(
    'without %s is refused by the ingress: a dead letter at once',
    async (name) => {
      const { [name]: _, ...rest } = reply as Record<string, string>
      const { w } = await replied(() => empty(200, rest))
      expect(w.at(subscriberUrl)).toHaveLength(1)
      expect(w.at(deadLetterUrl)[0]?.headers).toMatchObject({
        'ce-id': 'i',
        'ce-knativeerrordest': ingressUrl,
        'ce-knativeerrorcode': '400',
      })
    },
  )

  it.each([
    [undefined, 255],
    ['2', 1],
    ['3', 2],
    ['300', 299],
  ])('in a circle, from hops %s on, comes %i times and is then a dead letter', async (hops, times) => {
    const circle = { ...reply, 'ce-type': 'asked', 'ce-knativebrokerttl': '250' }
    const w = localBroker({ answer: () => empty(200, circle) })
    await w.deliver(hops === undefined ? {} : { 'ce-knativebrokerttl': hops })
    expect(w.at(subscriberUrl)).toHaveLength(times)
    expect(w.at(deadLetterUrl)[0]?.headers).toMatchObject({
      'ce-knativebrokerttl': '1',
      'ce-knativeerrordest': ingressUrl,
      'ce-knativeerrorcode': '400',
    })
  })
})

it('as on Knative, a Trigger with the format json gets the event as one document, its dead letter does not', async () => {
  const w = localBroker({ answer: () => text(400), delivery: { format: 'json' } })
  await w.deliver()
  const [document] = w.at(subscriberUrl)
  expect(document?.headers['content-type']).toBe('application/cloudevents+json')
  expect(document?.headers['ce-id']).toBeUndefined()
  expect(JSON.parse(document?.data ?? '')).toMatchObject({
    specversion: '1.0',
    id: 'i',
    datacontenttype: 'application/json',
    data: { a: 1 },
  })
  expect(w.at(deadLetterUrl)[0]).toMatchObject({ data: '{"a":1}', headers: { 'ce-id': 'i' } })
})
