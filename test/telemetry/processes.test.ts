import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { systemClock } from '../../shared/clock.ts'
import { mutations } from '../../shared/kinds/mutants.ts'
import { namespaces } from '../../shared/kinds/object.ts'
import { kubeClient } from '../../shared/kube/client.ts'
import { mutation } from '../support/builders.ts'
import { type CollectedSpan, collector } from '../support/collector.ts'
import { installCrds } from '../support/crds.ts'
import { embeddedApi } from '../support/embedded.ts'
import { eventually } from '../support/eventually.ts'
import { newFolder } from '../support/folder.ts'
import { type FunctionProcess, functionProcess } from '../support/process.ts'

/** Traces and metrics of real processes at a collector: a change, from the watcher to the function's writes. */

vi.setConfig({ testTimeout: 20_000 })

const { server } = embeddedApi({ rollout: false })
let collected: Awaited<ReturnType<typeof collector>>
let watcher: FunctionProcess
let reconciler: FunctionProcess
let spans: CollectedSpan[]

beforeAll(async () => {
  collected = await collector()
  const client = kubeClient({ transport: server.transport(), clock: systemClock, userAgent: 'test' })
  await installCrds(client)
  for (const name of ['shop', 'mutantops'])
    await client.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } })
  const { url } = await server.listen()
  const kubeconfig = join(newFolder(), 'kubeconfig')
  await writeFile(kubeconfig, JSON.stringify(server.kubeconfig(url)), { mode: 0o600 })
  const env = {
    KUBECONFIG: kubeconfig,
    OTEL_EXPORTER_OTLP_ENDPOINT: collected.url,
    OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20not-for-logs',
    OTEL_RESOURCE_ATTRIBUTES: 'k8s.cluster.name=here',
  }
  reconciler = await functionProcess('mutation', env)
  const sinks = {
    SINK_MUTATION: reconciler.url,
    SINK_MUTANTDEPLOYMENT: reconciler.url,
    SINK_RESYNC: reconciler.url,
  }
  watcher = await functionProcess('watcher', { ...env, ...sinks })
  // What the watcher finds when it begins it leaves to a resync.
  const asked = () => reconciler.lines.map(({ type }) => type)
  await eventually(() => expect(asked()).toContain('org.neiam.resync.requested'))
  await client.create(mutations, mutation('web').with('red', 1).in('shop').object())
  await eventually(async () => {
    const made = await client.get(mutations, { namespace: 'shop', name: 'web' })
    expect(made?.status).toMatchObject({ observedGeneration: 1 })
  })
  // At its end each process sends what it has not sent: nobody waits for a period to pass.
  for (const { child, ended } of [watcher, reconciler]) {
    child.kill('SIGTERM')
    expect(await ended).toBe(0)
  }
  spans = collected.spans()
}, 60_000)

afterAll(async () => {
  for (const { child } of [watcher, reconciler]) child.kill('SIGKILL')
  await collected.close()
  await server.stop()
})

const one = (name: string, from = spans) => {
  const found = from.find((span) => span.name === name)
  if (!found) throw new Error(`There is no span ${name}: ${from.map((span) => span.name).join(', ')}`)
  return found
}

it('a change is one trace: what the watcher sends, what the function does with it, and each request of that', () => {
  const published = one('publish org.neiam.object.applied')
  const processed = one(
    'process mutation',
    spans.filter(({ traceId }) => traceId === published.traceId),
  )
  expect(published).toMatchObject({ service: 'mutantops-watcher', kind: 4, isFailed: false })
  expect(published.parentSpanId ?? '').toBe('')
  expect(published.attributes).toMatchObject({
    'cloudevents.event_subject': '/apis/neiam.org/v1/namespaces/shop/mutations/web',
  })
  expect(processed).toMatchObject({ service: 'mutantops-mutation', kind: 5, parentSpanId: published.spanId })
  const requests = spans.filter(({ parentSpanId }) => parentSpanId === processed.spanId)
  expect(requests.map(({ name }) => name).sort()).toEqual([
    'GET deployments',
    'GET mutations',
    'PATCH deployments',
    'POST secrets',
    'PUT mutations/status',
  ])
  for (const request of requests)
    expect(request).toMatchObject({ kind: 3, traceId: published.traceId, service: 'mutantops-mutation' })
})

it('says which process of which cluster it was', () => {
  expect(collected.resources()).toContainEqual(
    expect.objectContaining({ 'service.name': 'mutantops-mutation', 'k8s.cluster.name': 'here' }),
  )
})

it("an event for another function is that function's failure, in a trace too", () => {
  // Here the resync's request goes to the function for Mutations.
  const refused = spans.filter(({ name, isFailed }) => name === 'process mutation' && isFailed)
  expect(refused[0]?.attributes).toMatchObject({ 'cloudevents.event_type': 'org.neiam.resync.requested' })
})

it('the metrics of a function that ends have arrived', () => {
  expect(collected.values()).toContainEqual({
    service: 'mutantops-mutation',
    name: 'mutantops_reconciles_total',
    labels: { kind: 'Mutation', outcome: 'settled' },
    value: 1,
  })
  expect(collected.values()).toContainEqual(
    expect.objectContaining({ name: 'mutantops_reconcile_duration_seconds', value: 1 }),
  )
})

it('a header for the collector reaches it and no log', () => {
  expect(collected.requests[0]?.headers.authorization).toBe('Bearer not-for-logs')
  expect(JSON.stringify([...watcher.lines, ...reconciler.lines])).not.toContain('not-for-logs')
})
