import { writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, it } from 'vitest'
import { stringify } from 'yaml'
import { systemClock } from '../../shared/clock.ts'
import { type KnativeReport, type LocalKnative, localKnative } from '../../shared/local/knative.ts'
import { readManifests } from '../../shared/local/manifests/manifests.ts'
import { eventually } from '../support/eventually.ts'
import { newFolder } from '../support/folder.ts'

const program = fileURLToPath(new URL('./fixtures/function.ts', import.meta.url))
const ref = (name: string) => ({ ref: { apiVersion: 'serving.knative.dev/v1', kind: 'Service', name } })

const service = (name: string, env: Record<string, string>, spec: object = {}) => ({
  apiVersion: 'serving.knative.dev/v1',
  kind: 'Service',
  metadata: { namespace: 'ns', name },
  spec: {
    template: {
      metadata: { annotations: { 'autoscaling.knative.dev/window': '1s' } },
      spec: {
        timeoutSeconds: 5,
        ...spec,
        containers: [
          {
            args: [name],
            env: Object.entries(env).map(([key, value]) => ({ name: key, value })),
            readinessProbe: { httpGet: { path: '/readyz' } },
          },
        ],
      },
    },
  },
})

const broker = {
  apiVersion: 'eventing.knative.dev/v1',
  kind: 'Broker',
  metadata: { namespace: 'ns', name: 'default' },
}
const trigger = {
  apiVersion: 'eventing.knative.dev/v1',
  kind: 'Trigger',
  metadata: { namespace: 'ns', name: 'work' },
  spec: {
    broker: 'default',
    filter: { attributes: { kind: 'Mutation' } },
    subscriber: ref('worker'),
    delivery: {
      retry: 2,
      backoffPolicy: 'linear',
      backoffDelay: 'PT0.05S',
      timeout: 'PT5S',
      deadLetterSink: ref('dead'),
    },
  },
}

let running: LocalKnative | undefined
afterEach(async () => {
  await running?.stop()
  running = undefined
})

/** A local Knative of these objects, whose functions are real processes. */
async function world(...objects: object[]) {
  const folder = newFolder()
  await writeFile(join(folder, 'kustomization.yaml'), stringify({ resources: ['all.yaml'] }))
  await writeFile(join(folder, 'all.yaml'), objects.map((object) => stringify(object)).join('---\n'))
  const reports: KnativeReport[] = []
  const knative = await localKnative({
    manifests: await readManifests(folder),
    launch: { program, baseEnv: process.env, env: () => ({}) },
    clock: systemClock,
    report: (report) => reports.push(report),
  })
  running = knative
  const post = (headers: Record<string, string> = {}, path = '/ns/default') =>
    fetch(knative.brokerUrl + path, {
      method: 'POST',
      body: '{"name":"web"}',
      headers: {
        'ce-specversion': '1.0',
        'ce-id': '1',
        'ce-source': '/test',
        'ce-type': 'org.neiam.object.applied',
        'ce-kind': 'Mutation',
        'content-type': 'application/json',
        ...headers,
      },
    })
  /** What a function printed that it got. */
  const got = (name: string) =>
    reports.flatMap((one) =>
      one.from === 'output' && one.name === name && one.line.startsWith('{') ? [JSON.parse(one.line)] : [],
    )
  const kinds = (from: KnativeReport['from']) =>
    reports.flatMap((one) => (one.from === from && 'report' in one ? [one.report.kind] : []))
  return { knative, post, got, kinds, reports }
}

describe('the local Knative as a whole', () => {
  it('starts a function for its first event and stops it when there are no more', async () => {
    const w = await world(
      broker,
      trigger,
      service('worker', { ANSWER: '204' }),
      service('dead', { ANSWER: '204' }),
    )
    expect(w.kinds('function')).toEqual([])
    expect((await w.post()).status).toBe(202)
    await eventually(() => expect(w.got('worker')).toHaveLength(1))
    expect(w.got('worker')[0]).toMatchObject({
      body: '{"name":"web"}',
      got: { 'ce-kind': 'Mutation', 'ce-id': '1', prefer: 'reply', 'content-type': 'application/json' },
    })
    await eventually(() => expect(w.kinds('function')).toEqual(['starting', 'ready', 'idle', 'stopped']))
    expect(w.kinds('broker')).toEqual(['accepted', 'delivered'])
  })

  it('tries again, and sends what a function keeps refusing to the dead letter function', async () => {
    const w = await world(
      broker,
      trigger,
      service('worker', { ANSWER: '503' }),
      service('dead', { ANSWER: '204' }),
    )
    await w.post()
    await eventually(() => expect(w.got('dead')).toHaveLength(1))
    expect(w.got('worker')).toHaveLength(3)
    expect(w.got('dead')[0].got).toMatchObject({
      'ce-knativeerrorcode': '503',
      'ce-knativeerrordest': 'http://worker.ns.svc.cluster.local',
    })
  })

  it('an event that no Trigger wants starts nothing', async () => {
    const w = await world(broker, trigger, service('worker', {}), service('dead', {}))
    expect((await w.post({ 'ce-kind': 'Other' })).status).toBe(202)
    expect((await w.post({}, '/ns/none')).status).toBe(404)
    expect(w.kinds('function')).toEqual([])
    expect(w.reports[0]).toMatchObject({ report: { kind: 'accepted', subscriptions: [] } })
  })

  it('a function that crashes on an event gets it again in a new process', async () => {
    const w = await world(
      broker,
      { ...trigger, spec: { ...trigger.spec, subscriber: { ...ref('worker'), uri: '/crash' } } },
      service('worker', {}),
      service('dead', { ANSWER: '204' }),
    )
    await w.post()
    await eventually(() => expect(w.got('dead')).toHaveLength(1))
    expect(w.kinds('function').filter((kind) => kind === 'crashed')).toHaveLength(3)
  })

  it('a process of a Deployment runs from the start, sends to the broker, and is started again after its end', async () => {
    const deployment = {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { namespace: 'ns', name: 'watcher' },
      spec: {
        template: {
          spec: { containers: [{ args: ['watcher'], readinessProbe: { httpGet: { path: '/readyz' } } }] },
        },
      },
    }
    const binding = {
      apiVersion: 'sources.knative.dev/v1',
      kind: 'SinkBinding',
      metadata: { namespace: 'ns', name: 'watcher' },
      spec: {
        subject: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'watcher' },
        sink: { ref: { apiVersion: 'eventing.knative.dev/v1', kind: 'Broker', name: 'default' } },
      },
    }
    const w = await world(broker, deployment, binding)
    await w.knative.ready
    const [started] = w.reports.flatMap((one) => (one.from === 'process' ? [one.report.pid] : []))
    process.kill(started ?? 0, 'SIGKILL')
    await eventually(() =>
      expect(w.kinds('process')).toEqual(['starting', 'ready', 'crashed', 'starting', 'ready']),
    )
  })

  it('a function can be called directly', async () => {
    const w = await world(broker, trigger, service('worker', {}), service('dead', {}))
    const answer = await fetch(`${w.knative.functionsUrl}/ns/worker/x`, { method: 'POST', body: 'hi' })
    expect(await answer.json()).toMatchObject({ path: '/x', body: 'hi', method: 'POST' })
  })

  it('what a web page sends is refused', async () => {
    const w = await world(broker, trigger, service('worker', {}), service('dead', {}))
    expect((await w.post({ origin: 'http://evil.test' })).status).toBe(403)
    const { port } = new URL(w.knative.functionsUrl)
    const answer = await rawRequest(
      Number(port),
      'POST /ns/worker/ HTTP/1.1\r\nhost: evil.test\r\ncontent-length: 0\r\nconnection: close\r\n\r\n',
    )
    expect(answer).toMatch(/^HTTP\/1\.1 403/)
    expect(w.kinds('function')).toEqual([])
  })

  it('takes a chunked body, and refuses one that is cut off', async () => {
    const w = await world(broker, trigger, service('worker', { ANSWER: '204' }), service('dead', {}))
    const head = (rest: string) =>
      `POST /ns/default HTTP/1.1\r\nhost: localhost\r\nce-specversion: 1.0\r\nce-id: 1\r\nce-source: /\r\nce-type: t\r\nce-kind: Mutation\r\n${rest}\r\n\r\n`
    const { port } = new URL(w.knative.brokerUrl)
    const chunked = `${head('transfer-encoding: chunked\r\nconnection: close')}2\r\n{}\r\n0\r\n\r\n`
    expect(await rawRequest(Number(port), chunked)).toMatch(/^HTTP\/1\.1 202/)
    await rawRequest(Number(port), `${head('content-length: 100')}{}`, { hangUp: true })
    await eventually(() => expect(w.got('worker')).toHaveLength(1))
    expect(w.got('worker')[0].body).toBe('{}')
    expect(w.kinds('broker').filter((kind) => kind === 'accepted')).toHaveLength(1)
  })
})

/** Writes bytes to a port and gives all that comes back. */
function rawRequest(port: number, text: string, { hangUp = false } = {}): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.write(text)
      if (hangUp) socket.end()
    })
    let answer = ''
    socket.on('data', (data) => {
      answer += data
    })
    socket.on('close', () => resolve(answer))
    socket.on('error', reject)
  })
}
