import { afterEach, describe, expect, it } from 'vitest'
import { configMaps } from '../../shared/kinds/object.ts'
import { kubeClient } from '../../shared/kube/client.ts'
import { type Change, type InformerLimits, informer, type Kept } from '../../shared/kube/informer.ts'
import { createLog } from '../../shared/log.ts'
import { virtualClock } from '../support/clock.ts'
import { listWatchApi, statusOf } from '../support/list-watch.ts'

const stops: AbortController[] = []
afterEach(() => {
  for (const stop of stops.splice(0)) stop.abort()
})

/** An informer of an API that is as `prepare` leaves it. */
function world(
  prepare: (api: ReturnType<typeof listWatchApi>) => void = () => {},
  limits: Partial<InformerLimits> = {},
) {
  const clock = virtualClock()
  const api = listWatchApi(clock)
  prepare(api)
  const lines: { level: string; msg: string }[] = []
  const log = createLog({ name: 'test', destination: { write: (line) => lines.push(JSON.parse(line)) } })
  const client = kubeClient({ transport: api.transport, clock, userAgent: 'test' })
  const counts: Record<string, number> = {}
  const changes: string[] = []
  const stop = new AbortController()
  stops.push(stop)
  const watched = informer<Kept>({
    client,
    resource: configMaps,
    clock,
    log,
    limits,
    keep: ({ metadata: { uid, resourceVersion } }) => ({ uid, resourceVersion }),
    onCount: (what) => {
      counts[what] = (counts[what] ?? 0) + 1
    },
    onChange: (change) => changes.push(wordsOf(change)),
  })
  const done = watched.run(stop.signal)
  const names = () => [...watched.list()].map(({ uid }) => uid.split('-')[0]).sort()
  return { clock, api, watched, done, stop, lines, counts, changes, names }
}

/** `watch +a` appeared, `~a` changed, `-a` gone. */
function wordsOf({ how, name, before, after }: Change<Kept>): string {
  return `${how} ${before ? (after ? '~' : '-') : '+'}${name}`
}

const msOf = (requests: { atMs: number }[]) => requests.map(({ atMs }) => atMs)

describe('an informer', () => {
  it('lists, then follows, and tells each change once with what it was', async () => {
    const { clock, api, watched, changes, names } = world((empty) => empty.put('a'))
    await clock.advance(0)
    expect(changes).toEqual(['initial +a'])
    await watched.synced
    api.put('b')
    api.put('a')
    api.remove('b')
    await clock.advance(0)
    expect(changes.slice(1)).toEqual(['watch +b', 'watch ~a', 'watch -b'])
    expect(names()).toEqual(['a'])
    expect(watched.state()).toEqual({ namespace: undefined, phase: 'watching', isSynced: true, objects: 1 })
    expect(api.requests[0]?.url.searchParams.get('resourceVersion')).toBeNull()
  })

  it('goes on where it was when a watch ends, with no wait and no list', async () => {
    const { clock, api, changes, counts } = world()
    await clock.advance(2_000)
    api.endWatches()
    api.put('a')
    await clock.advance(0)
    expect(changes).toEqual(['watch +a'])
    expect(api.requests.map(({ isWatch }) => isWatch)).toEqual([false, true, true])
    expect(counts).toEqual({})
  })

  it('takes the version of a bookmark, so that a quiet watch does not grow too old', async () => {
    const { clock, api, counts } = world()
    await clock.advance(2_000)
    api.tell('{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"500"}}}')
    await clock.advance(0)
    api.endWatches()
    await clock.advance(0)
    expect(api.requests.at(-1)?.url.searchParams.get('resourceVersion')).toBe('500')
    expect(api.requests.at(-1)?.url.searchParams.get('allowWatchBookmarks')).toBe('true')
    expect(counts).toEqual({})
  })

  it('notices that a connection is half open, and misses nothing (case 1)', async () => {
    const { clock, api, watched, changes, counts } = world()
    await clock.advance(0)
    api.freezeWatches()
    for (const name of 'abcde') api.put(name)
    await clock.advance(89_000)
    expect(changes).toEqual([])
    await clock.advance(2_000)
    expect(changes).toEqual(['watch +a', 'watch +b', 'watch +c', 'watch +d', 'watch +e'])
    expect(counts).toEqual({ error: 1, restart: 1 })
    expect(watched.state().phase).toBe('watching')
  })
})

describe('a gap', () => {
  const gaps = {
    'a 410 in the status line': () => {},
    'a 410 as an ERROR event': (api: ReturnType<typeof listWatchApi>) =>
      api.next('watch', () => new Response('{"type":"ERROR","object":{"kind":"Status","code":410}}\n')),
  }

  it.each(Object.entries(gaps))(
    '%s: it lists again and tells only what changed, appeared or vanished',
    async (_, gap) => {
      const { clock, api, changes, counts } = world()
      for (const name of ['same', 'changed', 'gone', 'anew']) api.put(name)
      await clock.advance(2_000)
      changes.length = 0
      api.freezeWatches()
      api.put('changed')
      api.put('appeared')
      api.remove('gone')
      api.remove('anew')
      api.put('anew')
      api.compact()
      gap(api)
      await clock.advance(91_000)
      expect(changes.toSorted()).toEqual([
        'relist +anew',
        'relist +appeared',
        'relist -anew',
        'relist -gone',
        'relist ~changed',
      ])
      expect(counts).toMatchObject({ relist: 1 })
      api.put('later')
      await clock.advance(0)
      expect(changes.at(-1)).toBe('watch +later')
    },
  )

  it('after gap is not listed away in a hot loop', async () => {
    const gone = () => statusOf(410, 'Expired')
    const { clock, api } = world((old) => old.next('watch', ...Array.from({ length: 1_000 }, () => gone)))
    await clock.advance(60_000)
    expect(api.requests.length).toBeLessThan(40)
  })
})

const abcde = (api: ReturnType<typeof listWatchApi>) => {
  for (const name of 'abcde') api.put(name)
}

describe('pages', () => {
  it('are all read, an empty one with a continue token too (case 6)', async () => {
    const { clock, api, watched } = world(
      (full) => {
        const empty = { metadata: { resourceVersion: '100', continue: '0' }, items: [] }
        full.next('list', () => Response.json(empty))
        for (let index = 0; index < 1_201; index++) full.put(`o${index}`)
      },
      { pageSize: 50 },
    )
    await clock.advance(0)
    expect(watched.state()).toMatchObject({ objects: 1_201, isSynced: true })
    expect(api.requests.filter(({ isWatch }) => !isWatch)).toHaveLength(26)
  })

  it('of which one is lost to a 410 tell nobody gone, and the list is begun anew (case 6)', async () => {
    const { clock, api, changes, names } = world(abcde, { pageSize: 2 })
    await clock.advance(2_000)
    changes.length = 0
    api.freezeWatches()
    api.compact()
    // The first page of the new list is read, its second is lost, and meanwhile something of the first is deleted.
    const lost = () => {
      api.remove('a')
      const status = { kind: 'Status', code: 410, reason: 'Expired', metadata: { continue: '2' } }
      return Response.json(status, { status: 410 })
    }
    api.put('b')
    api.compact()
    api.next('list', () => undefined, lost)
    await clock.advance(95_000)
    expect(names()).toEqual(['b', 'c', 'd', 'e'])
    expect(changes.toSorted()).toEqual(['relist -a', 'relist ~b'])
  })

  it('that are lost again and again are given up for a list in one piece', async () => {
    const lost = () => statusOf(410, 'Expired')
    const right = () => undefined
    const { clock, api, watched } = world(
      (full) => {
        abcde(full)
        full.next('list', right, lost, right, lost)
      },
      { pageSize: 2 },
    )
    await clock.advance(60_000)
    expect(watched.state()).toMatchObject({ objects: 5, isSynced: true })
    expect(api.requests.find(({ url, isWatch }) => !isWatch && !url.searchParams.has('limit'))).toBeDefined()
  })
})

describe('trouble', () => {
  it('of a server that throttles: no request sooner than it says, one warning, nothing missed (case 3)', async () => {
    const throttled = () => statusOf(429, 'TooManyRequests', 3)
    const { clock, api, changes, lines } = world((busy) => {
      busy.next('list', throttled, throttled, throttled)
      busy.next('watch', throttled)
    })
    await clock.advance(5_000)
    for (let index = 0; index < 200; index++) api.put(`o${index}`)
    await clock.advance(30_000)
    expect(changes).toHaveLength(200)
    for (const [index, { status, atMs }] of api.requests.entries())
      if (status === 429) expect((api.requests[index + 1]?.atMs ?? 0) - atMs).toBeGreaterThanOrEqual(3_000)
    expect(api.requests.filter(({ status }) => status === 400)).toEqual([])
    expect(lines.filter(({ level }) => level === 'warn')).toHaveLength(1)
  })

  it('of a port that is closed for a minute: few tries, jittered, and back within the limit (case 4)', async () => {
    const { clock, api, watched, changes, lines } = world()
    await clock.advance(2_000)
    api.setDown(true)
    const before = api.requests.length
    await clock.advance(30_000)
    expect(watched.state().phase).toBe('retrying')
    await clock.advance(30_000)
    const tries = msOf(api.requests.slice(before))
    expect(tries.length).toBeLessThanOrEqual(15)
    expect(tries.length).toBeGreaterThan(5)
    expect(new Set(tries.map((ms, index) => ms - (tries[index - 1] ?? 0))).size).toBe(tries.length)
    api.setDown(false)
    api.put('a')
    await clock.advance(10_000)
    expect(changes).toEqual(['watch +a'])
    expect(watched.state().phase).toBe('watching')
    expect(lines.map(({ msg }) => msg)).toEqual(['watch interrupted', 'watch restored'])
  })

  it('of a server that accepts a watch and hangs up at once: no hot loop', async () => {
    const hangUp = () => new Response('')
    const { clock, api } = world((rude) => rude.next('watch', ...Array.from({ length: 1_000 }, () => hangUp)))
    await clock.advance(60_000)
    expect(api.requests.length).toBeLessThan(20)
  })

  it('of a right that is missing: counted each time, warned once, tried again every 5 s (case 7)', async () => {
    const denied = () => statusOf(403, 'Forbidden')
    const { clock, api, watched, counts, lines, changes } = world((full) => {
      full.put('a')
      full.next('list', denied, denied, denied, denied)
    })
    await clock.advance(14_000)
    expect(watched.state()).toMatchObject({ phase: 'denied', isSynced: false })
    await clock.advance(8_000)
    expect(counts).toMatchObject({ denied: 4 })
    expect(lines.filter(({ level }) => level === 'warn')).toHaveLength(1)
    expect(changes).toEqual(['initial +a'])
    // Once more, while it watches: it goes on from where it was.
    api.next('watch', denied)
    api.endWatches()
    api.put('b')
    await clock.advance(5_000)
    expect(changes.at(-1)).toBe('watch +b')
    expect(watched.state().phase).toBe('watching')
  })

  it('of its own making, in what handles a change, stops nothing', async () => {
    const clock = virtualClock()
    const api = listWatchApi(clock)
    const seen: string[] = []
    const stop = new AbortController()
    const watched = informer<Kept>({
      client: kubeClient({ transport: api.transport, clock, userAgent: 'test' }),
      resource: configMaps,
      clock,
      log: createLog({ name: 'test', level: 'silent' }),
      keep: ({ metadata: { uid, resourceVersion } }) => ({ uid, resourceVersion }),
      onChange: ({ name }) => {
        seen.push(name)
        if (name === 'bad') throw new Error('a bug')
      },
    })
    const done = watched.run(stop.signal)
    await clock.advance(0)
    api.put('bad')
    api.put('good')
    await clock.advance(0)
    expect(seen).toEqual(['bad', 'good'])
    stop.abort()
    await done
    expect(watched.state().phase).toBe('stopped')
    expect(clock.sleepers()).toBe(0)
  })
})
