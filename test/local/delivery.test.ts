import { describe, expect, it } from 'vitest'
import {
  type Answer,
  backoffMs,
  deadLetter,
  defaultDelivery,
  deliveryOf,
  retryTimeMs,
  verdictOf,
} from '../../shared/local/events/delivery.ts'
import { goDurationMs, isoDurationMs } from '../../shared/local/events/duration.ts'

const bytes = (text: string) => new TextEncoder().encode(text)
const answer = (status: number, body = '', headers: Record<string, string> = {}): Answer => ({
  kind: 'answer',
  status,
  headers: new Headers(headers),
  body: bytes(body),
})

describe('verdictOf, what follows from an answer', () => {
  it.each([200, 202, 204])('%i with an empty body is delivered', (status) => {
    expect(verdictOf(answer(status), 'filter')).toEqual({ kind: 'delivered', status })
  })

  it.each([404, 408, 409, 429, 500, 501, 502, 503, 504, 599])('%i is tried again', (status) => {
    expect(verdictOf(answer(status), 'filter')).toMatchObject({ kind: 'failed', again: true })
  })

  it.each([100, 301, 308, 400, 401, 403, 405, 410, 413, 415, 422, 499])(
    '%i is given up at once',
    (status) => {
      expect(verdictOf(answer(status), 'filter')).toMatchObject({ kind: 'failed', again: false })
    },
  )

  it('no answer and no answer in time are tried again', () => {
    expect(verdictOf({ kind: 'none', message: 'ECONNREFUSED' }, 'filter')).toMatchObject({
      again: true,
      failure: { told: { code: 500, body: bytes('dispatch error: ECONNREFUSED') } },
    })
    expect(verdictOf({ kind: 'timeout' }, 'filter')).toMatchObject({ kind: 'failed', again: true })
  })

  it.each([
    ['OK', {}],
    ['{"done":true}', { 'content-type': 'application/json' }],
    [' ', {}],
  ])('200 with the body %j is no event, so it counts as 502 and is tried again', (body, headers) => {
    expect(verdictOf(answer(200, body, headers), 'filter')).toMatchObject({ kind: 'failed', again: true })
  })

  it('200 with a malformed event counts as 502 too', () => {
    expect(verdictOf(answer(200, '', { 'ce-specversion': '1.0', 'ce-id': '' }), 'filter')).toMatchObject({
      kind: 'failed',
      again: true,
    })
  })

  it('200 with an event is a reply, binary or structured', () => {
    const attributes = { specversion: '1.0', id: '1', source: '/x', type: 'y' }
    const headers = Object.fromEntries(
      Object.entries(attributes).map(([name, value]) => [`ce-${name}`, value]),
    )
    expect(verdictOf(answer(200, '', headers), 'filter')).toMatchObject({
      kind: 'delivered',
      reply: { event: { attributes } },
    })
    expect(
      verdictOf(
        answer(200, JSON.stringify(attributes), { 'content-type': 'application/cloudevents+json' }),
        'filter',
      ),
    ).toMatchObject({ kind: 'delivered', reply: { event: { attributes } } })
  })
})

describe('backoffMs, when it is tried again', () => {
  const waits = (spec: Record<string, unknown>) => {
    const delivery = deliveryOf('spec.delivery', spec)
    const found: number[] = []
    for (let attempt = 0; ; attempt++) {
      const waitMs = backoffMs(delivery, attempt)
      if (waitMs === undefined) return found
      found.push(waitMs)
    }
  }

  it.each([
    [
      'linear: at once, then in growing steps',
      { retry: 4, backoffPolicy: 'linear', backoffDelay: 'PT10S' },
      [0, 10_000, 20_000, 30_000],
    ],
    [
      'exponential: doubled, without a cap',
      { retry: 4, backoffPolicy: 'exponential', backoffDelay: 'PT0.5S' },
      [500, 1000, 2000, 4000],
    ],
    ['no policy: at once', { retry: 2, backoffDelay: 'PT10S' }, [0, 0]],
    ['no delay: at once', { retry: 2, backoffPolicy: 'linear' }, [0, 0]],
    ['no retries', {}, []],
  ])('%s', (_, spec, expected) => {
    expect(waits(spec)).toEqual(expected)
  })

  it('the delivery of our Triggers tries for 280 s', () => {
    const delivery = deliveryOf('d', {
      retry: 8,
      backoffPolicy: 'linear',
      backoffDelay: 'PT10S',
      timeout: 'PT30S',
    })
    expect(retryTimeMs(delivery)).toBe(280_000)
    expect(delivery.timeoutMs).toBe(30_000)
  })

  it("Knative's own default tries for 204.6 s", () => {
    expect(retryTimeMs(defaultDelivery)).toBe(204_600)
  })

  it.each([
    [{ backofPolicy: 'linear' }, /backofPolicy: no field/],
    [{ retry: -1 }, /retry/],
    [{ retry: 1.5 }, /retry/],
    [{ backoffPolicy: 'cubic' }, /backoffPolicy/],
    [{ backoffDelay: '10s' }, /backoffDelay: "10s" is no ISO 8601 duration/],
    [{ timeout: 30 }, /timeout/],
    [{ retryAfterMax: 'PT5S' }, /delivery-retryafter/],
  ])('%j is refused', (spec, message) => {
    expect(() => deliveryOf('Trigger a/b: delivery', spec)).toThrow(message)
  })
})

describe('deadLetter, what it tells of the failure', () => {
  const event = { attributes: { specversion: '1.0', id: '1', source: '/x', type: 'y' }, data: bytes('{}') }

  it('names the destination, the status and the body in base64', () => {
    const told = { code: 422, body: bytes('<h1>\nno\n</h1>') }
    expect(deadLetter(event, 'http://f.ns.svc.cluster.local', { reason: '', told })).toEqual({
      attributes: {
        ...event.attributes,
        knativeerrordest: 'http://f.ns.svc.cluster.local',
        knativeerrorcode: '422',
        knativeerrordata: Buffer.from('<h1>\nno\n</h1>').toString('base64'),
      },
      data: event.data,
    })
  })

  it('cuts the encoded body at 1,024 characters', () => {
    const told = { code: 500, body: bytes('x'.repeat(5000)) }
    const data = deadLetter(event, 'http://f', { reason: '', told }).attributes.knativeerrordata
    expect(data).toHaveLength(1024)
  })

  it('adds nothing after a timeout or a 502 of the filter, as Knative does not', () => {
    expect(deadLetter(event, 'http://f', { reason: 'no answer in time' })).toEqual(event)
  })

  it('keeps an extension that the event brought along', () => {
    const before = { ...event, attributes: { ...event.attributes, knativeerrorcode: '400' } }
    const told = { code: 500, body: bytes('') }
    expect(deadLetter(before, 'http://f', { reason: '', told }).attributes.knativeerrorcode).toBe('400')
  })
})

describe('durations', () => {
  it.each([
    ['PT10S', 10_000],
    ['PT0.5S', 500],
    ['PT1M30S', 90_000],
    ['P1DT2H', 93_600_000],
    ['P1W', 604_800_000],
    ['P1Y', 31_556_952_000],
    ['P1M', 2_629_746_000],
    ['PT0,5S', 500],
    ['-PT1S', -1000],
  ])('ISO 8601 %s is %i ms', (text, ms) => {
    expect(isoDurationMs('x', text)).toBe(ms)
  })
  it.each(['', 'P', 'PT', '10s', 'pt1s'])('ISO 8601 %j is refused', (text) => {
    expect(() => isoDurationMs('x', text)).toThrow(/^x: /)
  })
  it.each([
    ['30s', 30_000],
    ['1m30s', 90_000],
    ['0', 0],
    ['0s', 0],
  ])('Go %s is %i ms', (text, ms) => {
    expect(goDurationMs('x', text)).toBe(ms)
  })
  it.each(['', '30', 's', '30 s'])('Go %j is refused', (text) => {
    expect(() => goDurationMs('x', text)).toThrow(/^x: /)
  })
})
