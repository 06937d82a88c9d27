import type { Answering } from '../support/local-broker.ts'

/**
 * What the channel-based Broker of Knative Eventing 1.22 did (ingress, filter and in-memory channel as processes, with
 * their controllers and webhooks, on a kube-apiserver), given these answers of a subscriber. The local broker does the
 * same. Where it does not, on purpose: the ingress answers 202 at once and not when all is delivered (nor does a sender
 * that hangs up call a delivery off), an error body over 768 bytes is cut and does not end the process, and the
 * wording of what stands in `knativeerrordata` when there was no answer is our own.
 */

export const text = (status: number, body = 'no', headers: Record<string, string> = {}) =>
  new Response(body, { status, headers })
export const empty = (status: number, headers: Record<string, string> = {}) =>
  new Response(null, { status, headers })
const gone: Answering = () => Promise.reject(Object.assign(new Error('refused'), { code: 'ECONNREFUSED' }))
const hangs: Answering = (_, signal) =>
  new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
const cutOff = (status: number, headers: Record<string, string> = {}) =>
  new Response(
    new ReadableStream({
      start: (controller) => {
        controller.enqueue(new TextEncoder().encode('half'))
        controller.error(new Error('reset'))
      },
    }),
    { status, headers },
  )
export const reply = { 'ce-specversion': '1.0', 'ce-id': 'r', 'ce-source': '/f', 'ce-type': 'reply' }
export const structured = { 'content-type': 'application/cloudevents+json' }

/** How often the subscriber was asked with one retry, and the code and data of the dead letter. */
export type Fate = { tries: number; dead?: 'untold' | [code: number, data: string] | { code: number } }
const delivered = { tries: 1 }

export const fates: [string, Answering, Fate][] = [
  ...[200, 201, 202, 203, 204, 205, 206, 226, 299].map((status): [string, Answering, Fate] => [
    `${status} without a body`,
    () => empty(status),
    delivered,
  ]),
  ...[300, 301, 302, 303, 305, 307, 308, 399].map((status): [string, Answering, Fate] => [
    `${status} to nowhere`,
    () => text(status),
    { tries: 1, dead: [status, 'no'] },
  ]),
  ['304', () => empty(304), { tries: 1, dead: 'untold' }],
  ...[
    400, 401, 402, 403, 405, 406, 407, 410, 411, 412, 413, 415, 418, 421, 422, 424, 425, 426, 431, 451, 499,
  ].map((status): [string, Answering, Fate] => [
    `${status}`,
    () => text(status),
    { tries: 1, dead: [status, 'no'] },
  ]),
  ...[404, 408, 409, 429, 500, 501, 502, 503, 504, 505, 511, 599].map((status): [string, Answering, Fate] => [
    `${status}`,
    () => text(status),
    { tries: 2, dead: [status, 'no'] },
  ]),
  ['500 without a body', () => empty(500), { tries: 2, dead: [500, ''] }],
  ['500 with a CloudEvent', () => text(500, 'x', reply), { tries: 2, dead: [500, 'x'] }],
  ['500, then 400', (n) => text(n ? 400 : 500), { tries: 2, dead: [400, 'no'] }],
  ['500, then 204', (n) => (n ? empty(204) : text(500)), { tries: 2 }],
  [
    '200 with JSON',
    () => text(200, '{}', { 'content-type': 'application/json' }),
    { tries: 2, dead: 'untold' },
  ],
  ['200 with a blank', () => text(200, ' '), { tries: 2, dead: 'untold' }],
  ['202 with text, then 204', (n) => (n ? empty(204) : text(202, 'OK')), { tries: 2 }],
  ['no answer', gone, { tries: 2, dead: { code: 500 } }],
  ['no answer in time', hangs, { tries: 2, dead: 'untold' }],
  ['200 that is cut off', () => cutOff(200), { tries: 2, dead: 'untold' }],
  ['200 with an event that is cut off', () => cutOff(200, reply), { tries: 2, dead: 'untold' }],
  ['500 that is cut off', () => cutOff(500), { tries: 2, dead: { code: 500 } }],
  [
    'an event of version 2.0 without a body',
    () => empty(200, { ...reply, 'ce-specversion': '2.0' }),
    delivered,
  ],
  [
    'an event of version 2.0',
    () => text(200, 'x', { ...reply, 'ce-specversion': '2.0' }),
    { tries: 2, dead: 'untold' },
  ],
  ['an event with an empty id', () => empty(200, { ...reply, 'ce-id': '' }), { tries: 2, dead: 'untold' }],
  [
    'an event with a bad time',
    () => empty(200, { ...reply, 'ce-time': 'yesterday' }),
    { tries: 2, dead: 'untold' },
  ],
  [
    'an event with a bad name',
    () => empty(200, { ...reply, 'ce-my_ext': 'x' }),
    { tries: 2, dead: 'untold' },
  ],
  ['a broken structured event', () => text(200, '{', structured), { tries: 2, dead: 'untold' }],
  ['an empty structured event', () => empty(200, structured), { tries: 2, dead: 'untold' }],
  [
    'a batch',
    () => text(200, '[]', { 'content-type': 'application/cloudevents-batch+json' }),
    { tries: 2, dead: 'untold' },
  ],
]
