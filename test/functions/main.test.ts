import { execFileSync } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { objectEvent } from '../../shared/cloudevents/envelope.ts'
import { binaryOf } from '../../shared/cloudevents/write.ts'
import { type FunctionProcess, functionProcess } from '../support/process.ts'
import { rawConnection, statusOf } from '../support/socket.ts'

/** An API server that answers when the test says so: what is in flight stays in flight. */
let api: { url: string; held: ServerResponse[]; kubeconfig: string }
const stops: (() => Promise<unknown>)[] = []

beforeEach(async () => {
  const held: ServerResponse[] = []
  const server = createServer((_, response) => held.push(response))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const folder = await mkdtemp(join(tmpdir(), 'mutantops-'))
  const kubeconfig = join(folder, 'kubeconfig')
  await writeFile(
    kubeconfig,
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [{ name: 'c', cluster: { server: url, 'insecure-skip-tls-verify': true } }],
      users: [{ name: 'u', user: { token: 'secret' } }],
      contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
      'current-context': 'x',
    }),
  )
  api = { url, held, kubeconfig }
  stops.push(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
    await rm(folder, { recursive: true })
  })
})
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop()
})

async function started(env: Record<string, string> = {}, before: string[] = []): Promise<FunctionProcess> {
  const running = await functionProcess('mutation', { KUBECONFIG: api.kubeconfig, ...env }, { before })
  stops.push(async () => {
    running.child.kill('SIGKILL')
    await running.ended
  })
  return running
}

const { headers } = binaryOf(
  objectEvent({
    cluster: 'c',
    verb: 'applied',
    owner: { apiVersion: 'neiam.org/v1', kind: 'Mutation', namespace: 'shop', name: 'web', uid: 'u' },
    changed: { uid: 'u', resourceVersion: '1' },
    cause: 'object',
  }),
)
const request = (extra: Record<string, string> = {}) =>
  `POST / HTTP/1.1\r\n${Object.entries({
    host: 'x',
    ...headers,
    'content-type': 'text/plain',
    'content-length': '0',
    ...extra,
  })
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('')}\r\n`

/** Lets the reconcile in flight find that its object is gone. */
async function release(): Promise<void> {
  const answered = new Set<ServerResponse>()
  await expect
    .poll(() => {
      for (const response of api.held.filter((one) => !answered.has(one))) {
        answered.add(response)
        const isList = !response.req.url?.includes('/mutations/')
        response.writeHead(isList ? 200 : 404, { 'content-type': 'application/json' })
        response.end(JSON.stringify(isList ? { items: [], metadata: {} } : { kind: 'Status', code: 404 }))
      }
      return answered.size
    })
    .toBe(2)
}

const canUnshare = (() => {
  try {
    execFileSync('unshare', ['--pid', '--fork', 'true'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
})()

describe('case 54: the end of a process', { timeout: 30_000 }, () => {
  test.each(['SIGTERM', 'SIGINT'] as const)(
    '%s: what is in flight is answered, all else is closed, exit 0',
    async (signal) => {
      const running = await started()
      const idle = await Promise.all(Array.from({ length: 20 }, () => rawConnection(running.port)))
      for (const connection of idle) connection.write('GET /livez HTTP/1.1\r\nhost: x\r\n\r\n')
      await expect.poll(() => idle.every((one) => one.received().includes('204'))).toBe(true)
      const halfBody = await rawConnection(running.port)
      halfBody.write(`${request({ 'content-length': '10' })}half`)
      const halfHead = await rawConnection(running.port)
      halfHead.write('POST / HTTP/1.1\r\nhost: x\r\nce-id')
      const working = await rawConnection(running.port)
      working.write(request())
      await expect.poll(() => api.held.length).toBe(1)

      running.child.kill(signal)
      await Promise.all(idle.map(({ closed }) => closed))
      await expect.poll(() => statusOf(halfBody.received())).toBe(503)
      await expect(rawConnection(running.port)).rejects.toThrow('ECONNREFUSED')
      expect(working.received()).toBe('')
      if (signal === 'SIGTERM') running.child.kill(signal)

      await release()
      await working.closed
      const answeredAtMs = performance.now()
      expect(working.received()).toMatch(/^HTTP\/1\.1 204/)
      expect(working.received().toLowerCase()).toContain('connection: close')
      expect(await running.ended).toBe(0)
      expect(performance.now() - answeredAtMs).toBeLessThan(1_000)
      await halfHead.closed
      expect(running.lines.map(({ msg }) => msg)).toEqual(
        expect.arrayContaining(['listening', 'shutting down', 'event worked on', 'stopped']),
      )
    },
  )

  test('what is in flight is cut when the time for the shutdown is over, and the exit code says so', async () => {
    const running = await started({ DRAIN_SECONDS: '1' })
    const working = await rawConnection(running.port)
    working.write(request())
    await expect.poll(() => api.held.length).toBe(1)
    running.child.kill('SIGTERM')
    await working.closed
    expect(await running.ended).toBe(1)
  })

  test.each([0, 3])(
    'a process whose log nobody reads works on (%i events), and ends just so',
    async (times) => {
      const running = await started()
      running.child.stdout?.destroy()
      for (let time = 0; time < times; time++) {
        const answer = await fetch(running.url, { method: 'POST', body: 'noise' })
        expect(answer.status).toBe(400)
      }
      running.child.kill('SIGTERM')
      expect(await running.ended).toBe(0)
    },
  )

  test.skipIf(!canUnshare)('as PID 1 it ends on SIGTERM just so', async () => {
    // The signal comes from outside its namespace, as the kubelet's does.
    const running = await started({}, ['unshare', '--pid', '--fork', '--kill-child'])
    const inside = execFileSync('pgrep', ['-P', String(running.child.pid)], { encoding: 'utf8' }).trim()
    expect(running.lines[0]).toMatchObject({ msg: 'listening', pid: 1 })
    process.kill(Number(inside), 'SIGTERM')
    expect(await running.ended).toBe(0)
  })
})

test('a resync that no SinkBinding has reached yet runs, and has its events tried again', async () => {
  const running = await functionProcess('resync', { KUBECONFIG: api.kubeconfig })
  stops.push(async () => {
    running.child.kill('SIGKILL')
    await running.ended
  })
  expect((await fetch(`${running.url}/readyz`)).ok).toBe(true)
  const answer = await fetch(running.url, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'text/plain' },
  })
  expect(answer.status).toBe(503)
  expect(answer.headers.get('retry-after')).toBe('10')
  expect(await answer.text()).toContain('SinkBinding')
  expect(running.lines).toContainEqual(
    expect.objectContaining({ level: 'warn', msg: expect.stringContaining('K_SINK') }),
  )
})

describe('a process that cannot start says why and ends with 1', { timeout: 30_000 }, () => {
  test.each([
    ['an unknown function', 'nothing', {}, 'There is no function "nothing"'],
    ['a function of the language', 'constructor', {}, 'There is no function "constructor"'],
    ['a port that is none', 'mutation', { PORT: 'http' }, 'PORT is not a whole number'],
    ['a log level that is none', 'mutation', { LOG_LEVEL: 'loud' }, 'LOG_LEVEL is none of'],
    ['no sink for the watcher', 'watcher', {}, 'K_SINK'],
    ['a namespace that is none', 'resync', { WATCH_NAMESPACES: 'a,B' }, 'WATCH_NAMESPACES'],
    [
      'a kubeconfig that is not there',
      'mutation',
      { KUBECONFIG: '/nowhere/kubeconfig' },
      '/nowhere/kubeconfig',
    ],
  ])('%s', async (_, name, env, message) => {
    const running = await functionProcess(name, { KUBECONFIG: api.kubeconfig, ...env })
    expect(await running.ended).toBe(1)
    expect(running.lines.at(-1)).toMatchObject({ level: 'fatal', msg: 'cannot start' })
    expect(JSON.stringify(running.lines.at(-1))).toContain(message.replaceAll('"', '\\"'))
  })
})
