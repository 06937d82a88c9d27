import { describe, expect, it } from 'vitest'
import { objectEvent } from '../../shared/cloudevents/envelope.ts'
import { SinkError } from '../../shared/cloudevents/sink.ts'
import { createLog } from '../../shared/log.ts'
import { delivery, outcomeOf } from '../../shared/watching/delivery.ts'
import { virtualClock } from '../support/clock.ts'

const event = objectEvent({
  cluster: 'here',
  verb: 'applied',
  owner: { apiVersion: 'neiam.org/v1', kind: 'Mutation', namespace: 'shop', name: 'web', uid: 'u' },
  changed: { uid: 'u', resourceVersion: '1' },
  cause: 'object',
})

describe('an answer of the sink', () => {
  const rows: [number, number | undefined, object][] = [
    [200, undefined, { done: true }],
    [202, undefined, { done: true }],
    [204, undefined, { done: true }],
    [302, undefined, { done: false, notBeforeMs: 10_000 }],
    [400, undefined, { done: false, notBeforeMs: 10_000 }],
    [404, 30, { done: false, notBeforeMs: 30_000 }],
    [408, undefined, { done: false, notBeforeMs: 0 }],
    [429, 3, { done: false, notBeforeMs: 3_000 }],
    [500, undefined, { done: false, notBeforeMs: 0 }],
    [503, 86_400, { done: false, notBeforeMs: 60_000 }],
  ]
  it.each(rows)('%i with Retry-After %s', (status, after, outcome) =>
    expect(outcomeOf(status, after)).toEqual(outcome),
  )

  it.each([new SinkError('x', 'reset'), new Error('no connection')])(
    'that does not come (%s) leaves it to be sent again',
    async (error) => {
      const counted: number[] = []
      const { send, isWell } = delivery({
        clock: virtualClock(),
        log: createLog({ name: 't', level: 'silent' }),
        onAnswer: (status) => counted.push(status),
        sink: { send: () => Promise.reject(error), close: async () => {} },
      })
      expect(await send(event, new AbortController().signal)).toEqual({ done: false })
      expect([counted, isWell()]).toEqual([[0], false])
    },
  )

  it('is logged when trouble begins, changes and ends, not for each event', async () => {
    const clock = virtualClock()
    const lines: string[] = []
    const answers: (number | Error)[] = [503, 503, new SinkError('x', 'refused'), 400, 202, 202]
    const counted: number[] = []
    const { send, isWell } = delivery({
      clock,
      log: createLog({ name: 't', destination: { write: (line) => lines.push(JSON.parse(line).msg) } }),
      onAnswer: (status) => counted.push(status),
      sink: {
        async send() {
          const answer = answers.shift() ?? 202
          if (answer instanceof Error) throw answer
          return { status: answer, resets: 0 }
        },
        close: async () => {},
      },
    })
    const { signal } = new AbortController()
    for (let index = 0; index < 3; index++) await send(event, signal)
    expect([lines.length, isWell()]).toEqual([1, false])
    await clock.advance(10_000)
    for (let index = 0; index < 3; index++) await send(event, signal)
    expect(lines).toEqual([
      'sink does not take events',
      'sink does not take events',
      'sink takes events again',
    ])
    expect(counted).toEqual([503, 503, 0, 400, 202, 202])
    expect(isWell()).toBe(true)
  })

  it.each([
    [new SinkError('x', 'refused'), 'does K_SINK name it?'],
    [422, 'does K_SINK name a broker?'],
    [404, 'there is no such broker'],
    [503, 'it is tried again until it is taken'],
  ])('after %s says what to look at', async (answer, hint) => {
    const lines: Record<string, unknown>[] = []
    const { send } = delivery({
      clock: virtualClock(),
      log: createLog({ name: 't', destination: { write: (line) => lines.push(JSON.parse(line)) } }),
      onAnswer: () => {},
      sink: {
        async send() {
          if (answer instanceof Error) throw answer
          return { status: answer, resets: 0 }
        },
        close: async () => {},
      },
    })
    await send(event, new AbortController().signal)
    expect(lines).toEqual([
      expect.objectContaining({ type: event.type, hint: expect.stringContaining(hint) }),
    ])
  })
})
