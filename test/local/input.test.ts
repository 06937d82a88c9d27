import fc from 'fast-check'
import { expect, test } from 'vitest'
import { lazyMetrics } from '../../functions/metrics.ts'
import { watcherApp } from '../../functions/watcher.ts'
import { kubeClient } from '../../shared/kube/client.ts'
import { createLog } from '../../shared/log.ts'
import { virtualClock } from '../support/clock.ts'
import { localBroker } from '../support/local-broker.ts'

/** Whatever comes by HTTP: the local broker and the watcher answer by their contracts, and never by accident. */

const text = fc.string({
  unit: fc.integer({ min: 0x20, max: 0xff }).map((code) => String.fromCharCode(code)),
})
const attributes = ['specversion', 'id', 'source', 'type', 'subject', 'time', 'kind', 'knativebrokerttl']
const headers = fc
  .record({
    events: fc.dictionary(fc.constantFrom(...attributes), text, { maxKeys: 2 }),
    others: fc.dictionary(
      fc.constantFrom(
        'content-type',
        'content-length',
        'traceparent',
        'x-request-id',
        'retry-after',
        'prefer',
      ),
      text,
    ),
    isEvent: fc.boolean(),
    isStructured: fc.constantFrom(true, false, false, false),
  })
  .map(({ events, others, isEvent, isStructured }) => {
    const whole = { specversion: '1.0', id: '1', source: '/x', type: 'asked' }
    const all = Object.entries({ ...(isEvent && whole), ...events })
    return new Headers([
      ...all.map(([name, value]) => [`ce-${name}`, value.trim()] as [string, string]),
      ...Object.entries(others).map(([name, value]) => [name, value.trim()] as [string, string]),
      ...(isStructured ? [['content-type', 'application/cloudevents+json'] as [string, string]] : []),
    ])
  })
const body = fc.oneof(
  fc.uint8Array({ maxLength: 200 }),
  fc.json().map((json) => new TextEncoder().encode(json)),
)
const path = fc.oneof(
  { arbitrary: fc.constant('/t/default'), weight: 3 },
  fc.constantFrom(
    '/t/default',
    '/',
    '/t',
    '/t/other',
    '/t/default/more',
    '//',
    '/livez',
    '/readyz',
    '/metrics',
  ),
  fc.webPath(),
)
const method = fc.constantFrom('POST', 'POST', 'POST', 'POST', 'GET', 'PUT', 'DELETE', 'OPTIONS', 'PATCH')
const request = fc.record({ method, path, headers, body })

function requestOf({
  method,
  path,
  headers,
  body,
}: typeof request extends fc.Arbitrary<infer T> ? T : never): Request {
  const hasBody = method !== 'GET'
  return new Request(`http://here.test${path}`, {
    method,
    headers,
    ...(hasBody && { body: body as Uint8Array<ArrayBuffer> }),
  })
}

test('the broker takes an event or says what is wrong, and what it takes is an event', async () => {
  let taken = 0
  const { broker, reports } = localBroker({ answer: () => new Response(null, { status: 204 }) })
  await fc.assert(
    fc.asyncProperty(request, async (one) => {
      const before = reports.length
      const answer = await broker.app.fetch(requestOf(one))
      const { status } = answer
      // 500 is what Knative's ingress says to some events; the framework's own says nothing of what was wrong.
      expect([200, 202, 400, 404, 405, 413, 500]).toContain(status)
      expect(await answer.text()).not.toBe('Internal Server Error')
      const accepted = reports.slice(before).flatMap((report) => (report.kind === 'accepted' ? [report] : []))
      expect(accepted).toHaveLength(status === 202 ? 1 : 0)
      for (const { event } of accepted) {
        taken++
        expect(event.attributes).toMatchObject({ specversion: expect.stringMatching(/^(1\.0|0\.3)$/) })
        for (const name of ['id', 'source', 'type']) expect(event.attributes[name]).toBeTruthy()
      }
    }),
    { numRuns: 1_000, seed: 1 },
  )
  // Else it proved nothing of events.
  expect(taken).toBeGreaterThan(20)
})

test('the watcher answers health, metrics and nothing else', async () => {
  const clock = virtualClock()
  const fetch = () => Promise.reject(new Error('Nothing is asked before it starts'))
  const { app } = watcherApp({
    client: kubeClient({ transport: { baseUrl: 'http://api', fetch }, clock, userAgent: 'test' }),
    clock,
    log: createLog({ name: 'test', level: 'silent' }),
    metrics: lazyMetrics(),
    cluster: 'here',
    sink: { send: fetch, close: async () => {} },
    namespaces: undefined,
    election: {
      namespace: 'default',
      leaseName: 'watcher',
      identity: 'test',
      leaseDurationSeconds: 15,
      renewDeadlineSeconds: 10,
      retryPeriodSeconds: 2,
    },
  })
  await fc.assert(
    fc.asyncProperty(request, async (one) => {
      const { status } = await app.fetch(requestOf(one))
      const isOurs = one.method === 'GET' && ['/livez', '/readyz', '/metrics'].includes(one.path)
      // It has not started yet, so that it is not ready.
      expect(status).toBe(isOurs ? (one.path === '/readyz' ? 503 : 200) : 404)
    }),
    { numRuns: 500, seed: 1 },
  )
})
