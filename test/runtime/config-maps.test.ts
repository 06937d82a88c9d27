import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { apiServer } from '../../shared/apiserver/server.ts'
import { configMaps } from '../../shared/kinds/object.ts'
import { kubeClient } from '../../shared/kube/client.ts'
import { configMapStore } from '../../shared/runtime/config-maps.ts'
import { type FaultyWire, faultyWire } from '../../shared/runtime/faulty-wire.ts'
import { virtualClock } from '../support/clock.ts'
import { silentLog } from './candidates.ts'

async function world(
  names = ['settings'],
  objects: Record<string, object> = {},
  fault: FaultyWire['fault'] = () => undefined,
) {
  const clock = virtualClock()
  const server = apiServer({ clock })
  const wire = faultyWire(server.transport(), clock)
  wire.fault = fault
  const admin = kubeClient({ transport: server.transport(), clock, userAgent: 'test' })
  const put = (name: string, fields: object) => {
    const object = {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name, namespace: 'default' },
      ...fields,
    }
    return admin.apply(configMaps, object, { fieldManager: 'test', force: true })
  }
  for (const [name, fields] of Object.entries(objects)) await put(name, fields)
  const lines: string[] = []
  const counts = { updates: 0, errors: 0 }
  const store = configMapStore({
    client: kubeClient({ transport: wire, clock, userAgent: 'test' }),
    clock,
    log: silentLog(lines),
    namespace: 'default',
    names,
    metrics: () => ({ update: () => counts.updates++, error: () => counts.errors++ }),
  })
  const stop = new AbortController()
  const running = store.run(stop.signal)
  return { clock, wire, admin, put, store, counts, lines, stop, running }
}

describe('AC7: reads of a live ConfigMap', () => {
  const data = { text: 'plain', number: '7', settings: '{"color":"red"}', broken: '{"color":', empty: '' }

  it('give text, bytes and JSON; what is not there is undefined', async () => {
    const binaryData = {
      text8: Buffer.from('grün').toString('base64'),
      bytes: Buffer.from([0xff, 0xfe]).toString('base64'),
    }
    const { store, clock } = await world(['settings'], { settings: { data, binaryData } })
    await clock.advance(0)
    expect(store.value('settings', 'text')).toBe('plain')
    expect(store.value('settings', 'empty')).toBe('')
    expect(store.value('settings', 'text8')).toBe('grün')
    expect(store.value('settings', 'bytes')).toBeUndefined()
    expect(store.get('settings')?.binaryData.bytes).toEqual(Buffer.from([0xff, 0xfe]))
    expect(store.value('settings', 'none')).toBeUndefined()
    expect(store.value('settings', 'constructor')).toBeUndefined()
    expect(store.value('unknown', 'text')).toBeUndefined()
    expect(store.get('unknown')).toBeUndefined()
  })

  it('typed: a missing or bad value is an answer that says what and where, never a throw', async () => {
    const { store, clock } = await world(['settings'], { settings: { data } })
    await clock.advance(0)
    const schema = z.object({ color: z.string() })
    const read = (key: string) => store.json('settings', key, schema.parse)
    expect(read('settings')).toEqual({ ok: true, value: { color: 'red' } })
    expect(store.json('settings', 'number')).toEqual({ ok: true, value: 7 })
    expect(read('none')).toEqual({
      ok: false,
      reason: 'missing',
      error: 'ConfigMap settings has no value none',
    })
    expect(read('broken')).toEqual({
      ok: false,
      reason: 'invalid',
      error: 'ConfigMap settings, value broken: it is not JSON',
    })
    expect(read('number')).toMatchObject({ ok: false, reason: 'invalid' })
    const odd = store.json('settings', 'number', () => {
      throw 'not even an error'
    })
    expect(odd).toEqual({
      ok: false,
      reason: 'invalid',
      error: 'ConfigMap settings, value number: not even an error',
    })
  })
})

describe('AC7: states', () => {
  it('waiting, present, missing; synced when the API has answered for each', async () => {
    const { store, clock, wire } = await world(['a', 'b'], { a: { data: {} } }, ({ path }) =>
      path.includes('metadata.name%3Db') ? { status: 500 } : undefined,
    )
    expect(store.states()).toEqual({ a: 'waiting', b: 'waiting' })
    await clock.advance(0)
    expect(store.states()).toEqual({ a: 'present', b: 'waiting' })
    expect([store.isSynced(), store.isSynced('a'), store.isSynced('b')]).toEqual([false, true, false])
    wire.fault = () => undefined
    await clock.advance(5_000)
    expect(store.states()).toEqual({ a: 'present', b: 'missing' })
    expect(store.isSynced()).toBe(true)
  })

  it('without a client everything stays waiting', async () => {
    const clock = virtualClock()
    const store = configMapStore({ clock, log: silentLog(), namespace: 'default', names: ['a'] })
    await store.run(new AbortController().signal)
    expect(store.states()).toEqual({ a: 'waiting' })
  })
})

describe('AC7, case 47: watching', () => {
  it('each request names its ConfigMap by a field selector, so that a Role can name it', async () => {
    const { clock, wire } = await world(['a', 'b'], { a: { data: {} } })
    await clock.advance(600_000)
    expect(wire.requests.length).toBeGreaterThan(4)
    for (const request of wire.requests) expect(request).toMatch(/fieldSelector=metadata\.name%3D[ab](&|$)/)
  })

  it('a denied watch is tried again every 5 s, counted each time, warned of once, and what was known stays', async () => {
    const { store, clock, wire, counts, lines, put } = await world(['settings'], {
      settings: { data: { a: '1' } },
    })
    await clock.advance(0)
    wire.fault = () => ({ status: 403 })
    await clock.advance(240_000)
    const before = counts.errors
    await clock.advance(60_000)
    expect(counts.errors - before).toBe(12)
    expect(store.value('settings', 'a')).toBe('1')
    expect(lines.filter((line) => line.includes('cannot watch')).length).toBe(1)
    await put('settings', { data: { a: '2' } })
    wire.fault = () => undefined
    await clock.advance(5_000)
    expect(store.value('settings', 'a')).toBe('2')
    await clock.advance(240_000)
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([
      {
        msg: 'cannot watch the ConfigMap',
        configMap: 'settings',
        needs: 'list and watch on configmaps with resourceNames [settings]',
        err: { code: 403 },
      },
      { msg: 'watching the ConfigMap again', configMap: 'settings' },
    ])
  })

  it('a deletion and a new one under the same name are both seen by the watch alone', async () => {
    const { store, clock, wire, put, admin, counts } = await world(['settings'], {
      settings: { data: { a: '1' } },
    })
    await clock.advance(0)
    await admin.delete(configMaps, { namespace: 'default', name: 'settings' })
    await clock.advance(100)
    expect(store.states()).toEqual({ settings: 'missing' })
    await put('settings', { data: { a: '2' } })
    await put('other', { data: { a: '3' } })
    await clock.advance(100)
    expect(store.value('settings', 'a')).toBe('2')
    expect(counts).toEqual({ updates: 3, errors: 0 })
    expect(wire.requests.length).toBe(2)
  })

  it('when the list is allowed and the watch is not, it is warned of once all the same, and lists go on', async () => {
    const { store, clock, counts, lines, put } = await world(
      ['settings'],
      { settings: { data: { a: '1' } } },
      ({ path }) => (path.includes('watch=') ? { status: 403 } : undefined),
    )
    await clock.advance(60_000)
    expect(counts.errors).toBe(13)
    expect(lines.length).toBe(1)
    await put('settings', { data: { a: '2' } })
    await clock.advance(5_000)
    expect(store.value('settings', 'a')).toBe('2')
  })

  it('a watch that the server ends goes on from where it was, without a new list', async () => {
    const { store, clock, wire, put, counts } = await world(['settings'], { settings: { data: { a: '1' } } })
    await clock.advance(1_000_000)
    expect(wire.requests.filter((request) => !request.includes('watch=')).length).toBe(1)
    await put('settings', { data: { a: '2' } })
    await clock.advance(100)
    expect(store.value('settings', 'a')).toBe('2')
    expect(counts).toEqual({ updates: 2, errors: 0 })
  })

  it('a version that is too old means list again: no error, and nothing is missed', async () => {
    const { store, clock, wire, put, counts } = await world(['settings'], { settings: { data: { a: '1' } } })
    await clock.advance(0)
    wire.fault = ({ path }) => (path.includes('watch=') ? { status: 410 } : undefined)
    await clock.advance(240_000)
    await put('settings', { data: { a: '2' } })
    await clock.advance(2_000)
    expect(store.value('settings', 'a')).toBe('2')
    expect(counts.errors).toBe(0)
    const before = wire.requests.length
    await clock.advance(10_000)
    // No storm either.
    expect(wire.requests.length - before).toBeLessThan(60)
  })

  it('a server that ends each watch at once is asked at most once a second', async () => {
    const { clock, wire } = await world()
    const under = wire.fetch
    wire.fetch = async (url, init) => {
      if (!url.includes('watch=')) return under(url, init)
      wire.requests.push('watch')
      return new Response('', { status: 200 })
    }
    await clock.advance(240_000)
    const before = wire.requests.length
    await clock.advance(10_000)
    expect(wire.requests.length - before).toBeLessThanOrEqual(11)
  })

  it('ends with its signal, and a subscriber hears no more when it has stopped listening', async () => {
    const { store, clock, put, stop, running } = await world()
    const heard: string[] = []
    const unsubscribe = store.subscribe((name) => heard.push(name))
    await clock.advance(0)
    unsubscribe()
    await put('settings', { data: { a: '1' } })
    await clock.advance(100)
    expect(heard).toEqual(['settings'])
    stop.abort()
    await clock.advance(0)
    await running
  })
})
