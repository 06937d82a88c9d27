import { describe, expect, test } from 'vitest'
import { functionConfig } from '../../functions/config.ts'
import { delivery } from '../../knative/eventing.ts'
import { workloads } from '../../knative/workloads.ts'
import { stopGraceMs } from '../../shared/cloudevents/receiver.ts'
import { isoDurationMs } from '../../shared/local/events/duration.ts'

describe('what a function is told by its environment', () => {
  test('has defaults for all but the sink', () => {
    expect(functionConfig({})).toMatchObject({
      port: 8080,
      host: undefined,
      logLevel: 'info',
      cluster: 'default',
      adoption: 'label',
      replies: false,
      deadlineMs: 20_000,
      drainMs: 28_000,
      namespaces: undefined,
      sink: undefined,
      tape: undefined,
    })
  })

  test('an empty value is as none', () => {
    const names = [
      'PORT',
      'LOG_LEVEL',
      'CLUSTER_NAME',
      'ADOPTION',
      'REPLY_EVENTS',
      'WATCH_NAMESPACES',
      'K_SINK',
    ]
    const { election: _, ...given } = functionConfig(Object.fromEntries(names.map((name) => [name, ' '])))
    expect(functionConfig({})).toMatchObject(given)
  })

  test('is taken as it is given', () => {
    const env = {
      PORT: '0',
      LOG_LEVEL: 'debug',
      CLUSTER_NAME: 'eu-1',
      ADOPTION: 'legacy',
      LEGACY_MANAGERS: 'one, two,one',
      REPLY_EVENTS: 'true',
      DEADLINE_SECONDS: '5',
      WATCH_NAMESPACES: 'shop, blog,,shop',
      POD_NAME: 'mutation-1',
    }
    expect(functionConfig(env)).toMatchObject({
      port: 0,
      logLevel: 'debug',
      cluster: 'eu-1',
      adoption: 'legacy',
      legacyManagers: ['one', 'two'],
      replies: true,
      deadlineMs: 5_000,
      namespaces: ['shop', 'blog'],
      instance: 'mutation-1',
    })
  })

  test.each([
    ['PORT', '65536'],
    ['PORT', '1e3'],
    ['PORT', '-1'],
    ['LOG_LEVEL', 'INFO'],
    ['CLUSTER_NAME', 'a/b'],
    ['ADOPTION', 'yes'],
    ['REPLY_EVENTS', '1'],
    ['DEADLINE_SECONDS', '0'],
    ['DRAIN_SECONDS', 'soon'],
    ['WATCH_NAMESPACES', 'a,../b'],
    ['K_SINK', 'broker'],
  ])('%s=%s is refused by name', (name, value) => {
    expect(() => functionConfig({ [name]: value })).toThrow(name)
  })
})

test('a function answers, its work stopped, before anything in the manifests gives it up, a cold start included', () => {
  const coldStartMs = 5_000
  const services = workloads().filter(
    ({ kind, apiVersion }) => kind === 'Service' && apiVersion?.includes('serving'),
  )
  const timeouts = services.map(({ spec }) => {
    const { template } = spec as { template: { spec: { timeoutSeconds: number } } }
    return template.spec.timeoutSeconds * 1_000
  })
  expect(timeouts).toHaveLength(4)
  const shortestMs = Math.min(...timeouts, isoDurationMs('timeout', delivery.timeout))
  const { deadlineMs, drainMs } = functionConfig({})
  expect(deadlineMs + stopGraceMs + coldStartMs).toBeLessThan(shortestMs)
  // Knative gives a pod its request timeout to end; what is in flight must fit into the drain.
  expect(drainMs).toBeLessThan(shortestMs)
  expect(deadlineMs + stopGraceMs).toBeLessThan(drainMs)
})
