import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { systemClock } from '../../shared/clock.ts'
import { createLog } from '../../shared/log.ts'
import { otlp } from '../../shared/telemetry/otlp.ts'
import type { Telemetry } from '../../shared/telemetry/telemetry.ts'
import { collector } from '../support/collector.ts'
import { httpServer } from '../support/http.ts'

let status = 200
let collected: Awaited<ReturnType<typeof collector>>
let lines: Record<string, unknown>[]
const open: Telemetry[] = []

beforeEach(async () => {
  status = 200
  lines = []
  collected = await collector({ status: () => status })
  vi.stubEnv('OTEL_EXPORTER_OTLP_ENDPOINT', collected.url)
})
afterEach(async () => {
  vi.unstubAllEnvs()
  for (const one of open.splice(0)) await one.stop()
  await collected.close()
})

function started(options: { traces?: boolean; metrics?: boolean } = {}): Telemetry {
  const telemetry = otlp({
    service: 'test',
    instance: 'here',
    traces: true,
    metrics: true,
    definitions: { things_total: { type: 'counter', help: 'Things.' } },
    clock: systemClock,
    log: createLog({ name: 'test', destination: { write: (line) => lines.push(JSON.parse(line)) } }),
    ...options,
  })
  open.push(telemetry)
  return telemetry
}

const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
const kind = 'consumer' as const

it.each([
  ['goes on', traceparent, '0af7651916cd43dd8448eb211c80319c', 'b7ad6b7169203331'],
  [
    'goes on from a later version',
    `cc${traceparent.slice(2)}-more`,
    '0af7651916cd43dd8448eb211c80319c',
    'b7ad6b7169203331',
  ],
  ['begins anew', 'nonsense', expect.not.stringMatching(/^0+$/), ''],
  ['begins anew', `ff${traceparent.slice(2)}`, expect.not.stringContaining('0af765'), ''],
  ['begins anew', `00-${'0'.repeat(32)}-b7ad6b7169203331-01`, expect.not.stringMatching(/^0+$/), ''],
])('a trace %s with %j', async (_, parent, traceId, parentSpanId) => {
  const telemetry = started()
  await telemetry.span('work', { kind, parent }, async () => {})
  await telemetry.stop()
  const [span] = collected.spans()
  expect({ parentSpanId: '', ...span }).toMatchObject({ traceId, parentSpanId })
})

it('what is not sampled elsewhere is not sent, and says so to the next', async () => {
  const telemetry = started()
  const parent = traceparent.replace(/01$/, '00')
  const next = await telemetry.span('work', { kind, parent }, async (span) => span.traceparent)
  await telemetry.stop()
  expect(next).toMatch(/^00-0af7651916cd43dd8448eb211c80319c-[0-9a-f]{16}-00$/)
  expect(collected.spans()).toEqual([])
})

it('work that throws is a failure, without its message, and its error goes on', async () => {
  const telemetry = started()
  const failing = telemetry.span('work', { kind }, async () => {
    throw new TypeError('the token is abc')
  })
  await expect(failing).rejects.toThrow('the token is abc')
  await telemetry.stop()
  expect(collected.spans()).toEqual([expect.objectContaining({ name: 'work', isFailed: true })])
  expect(JSON.stringify(collected.requests)).not.toContain('abc')
})

it('spans of work that goes on at once do not mix', async () => {
  const telemetry = started()
  const outer = (name: string) =>
    telemetry.span(name, { kind }, async () => {
      await Promise.resolve()
      await telemetry.span(`${name}-inner`, { kind: 'client' }, async () => {})
    })
  await Promise.all([outer('a'), outer('b')])
  expect(telemetry.isTracing()).toBe(false)
  await telemetry.stop()
  const id = (name: string) => collected.spans().find((span) => span.name === name)
  expect(id('a-inner')?.parentSpanId).toBe(id('a')?.spanId)
  expect(id('b-inner')?.parentSpanId).toBe(id('b')?.spanId)
  expect(id('a')?.traceId).not.toBe(id('b')?.traceId)
})

it('only what is wanted is sent', async () => {
  const telemetry = started({ traces: false })
  telemetry.note('things_total', { colour: 'red' }, 2)
  telemetry.note('unknown', {}, 1)
  await telemetry.span('work', { kind }, async () => {})
  await telemetry.stop()
  expect(collected.spans()).toEqual([])
  expect(collected.values()).toEqual([
    { service: 'mutantops-test', name: 'things_total', labels: { colour: 'red' }, value: 2 },
  ])
})

it('a collector that refuses all costs one line and stops nothing', async () => {
  status = 400
  const telemetry = started()
  expect(await telemetry.span('work', { kind }, async () => 'done')).toBe('done')
  telemetry.note('things_total', {}, 1)
  await telemetry.stop()
  expect(lines).toEqual([expect.objectContaining({ level: 'warn', msg: expect.stringContaining('OTLP') })])
  expect(JSON.stringify(lines)).not.toContain(collected.url)
})

it('a collector that never answers costs two seconds at the end, and one line', async () => {
  const silent = await httpServer(() => {})
  vi.stubEnv('OTEL_EXPORTER_OTLP_ENDPOINT', silent.url)
  const telemetry = started()
  await telemetry.span('work', { kind }, async () => {})
  const beganMs = systemClock.monotonicMs()
  await telemetry.stop()
  expect(systemClock.monotonicMs() - beganMs).toBeLessThan(4_000)
  expect(lines).toEqual([expect.objectContaining({ level: 'warn', reason: 'TimeoutError' })])
  await silent.close()
})
