import { beforeEach, expect } from 'vitest'
import { accepts, refusal, types, type WatchLine } from './api.ts'
import { configMap } from './objects.ts'
import type { Part } from './suite.ts'

const told = (lines: WatchLine[]) =>
  lines.map(({ type, object }) =>
    `${type} ${object.metadata?.name ?? object.metadata?.annotations?.['k8s.io/initial-events-end'] ?? ''}`.trim(),
  )
const initialEnd = 'BOOKMARK true'

export function watchContract({ api, it }: Part): void {
  let base = ''
  /** The version of a list made after the first two objects were there. */
  let version = ''
  beforeEach(async () => {
    base = `/api/v1/namespaces/${await api().namespace()}/configmaps`
    for (const name of ['one', 'two'])
      await api().post(base, configMap(name, { metadata: { labels: { at: 'start' } } }))
    const { body } = await api().get(`${base}?labelSelector=at`)
    version = body.metadata?.resourceVersion ?? ''
  })
  /** Only what the tests made: a controller puts a ConfigMap of its own into each namespace. */
  const watching = (query: string, seconds = 5) =>
    `${base}?watch=1&timeoutSeconds=${seconds}&labelSelector=at&${query}`

  /** Reads a watch that is to tell so many events; a marker written after them shows that no more came. */
  async function read(query: string, count: number, accept = types.json as string): Promise<WatchLine[]> {
    const marker = configMap('zz-marker', { metadata: { labels: { at: 'marker' } } })
    let marking: Promise<unknown> | undefined
    const isMarker = (line: WatchLine) => JSON.stringify(line).includes('zz-marker')
    const enough = (lines: WatchLine[]) => {
      if (lines.length >= count) marking ??= api().post(base, marker)
      return lines.some(isMarker)
    }
    const lines = await api().watch(watching(query), enough, { accept })
    await marking
    return lines.filter((line) => !isMarker(line))
  }

  it('from a version it tells what came after, in order', async () => {
    await api().post(base, configMap('three', { metadata: { labels: { at: 'late' } } }))
    await api().patch(`${base}/one`, { data: { a: '1' } })
    await api().del(`${base}/two`)
    const lines = await read(`resourceVersion=${version}`, 3)
    expect(told(lines)).toEqual(['ADDED three', 'MODIFIED one', 'DELETED two'])
    const versions = lines.map(({ object }) => Number(object.metadata?.resourceVersion))
    expect(versions).toEqual(versions.toSorted((a, b) => a - b))
    expect(Number(version)).toBeLessThan(versions[0] ?? 0)
  })

  it('what happens while it is open comes at once', async () => {
    const path = `${base}?watch=1&labelSelector=at&resourceVersion=${version}`
    const watched = api().watch(path, (lines) => lines.length === 2)
    await api().patch(`${base}/one`, { data: { a: '1' } })
    await api().patch(`${base}/one`, { data: { a: '2' } })
    const lines = await watched
    expect(lines.map(({ object }) => object.data)).toEqual([{ a: '1' }, { a: '2' }])
  })

  it('without a version, and from 0, it begins with what is there', async () => {
    expect(told(await read('', 2))).toEqual(['ADDED one', 'ADDED two'])
    expect(told(await read('resourceVersion=0', 2))).toEqual(['ADDED one', 'ADDED two'])
  })

  it('without a version and with bookmarks, a bookmark ends what was there', async () => {
    const lines = await read('allowWatchBookmarks=true', 3)
    expect(told(lines)).toEqual(['ADDED one', 'ADDED two', initialEnd])
  })

  it('sendInitialEvents: what is there, then a bookmark that says so', async () => {
    const query = 'sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true'
    const lines = await read(query, 3)
    expect(told(lines)).toEqual(['ADDED one', 'ADDED two', initialEnd])
    const end = lines.at(-1)?.object
    expect(end).toEqual({
      kind: 'ConfigMap',
      apiVersion: 'v1',
      metadata: {
        resourceVersion: expect.stringMatching(/^\d+$/),
        annotations: { 'k8s.io/initial-events-end': 'true' },
      },
    })
    expect(Number(end?.metadata?.resourceVersion)).toBeGreaterThanOrEqual(Number(version))
  })

  it('sendInitialEvents on an empty collection: the bookmark alone', async () => {
    const query = 'sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true'
    const path = base.replace('configmaps', 'secrets')
    expect(told(await api().watch(`${path}?watch=1&timeoutSeconds=1&${query}`))).toEqual([initialEnd])
  })

  it('sendInitialEvents without bookmarks: no end is told', async () => {
    const query = 'sendInitialEvents=true&resourceVersionMatch=NotOlderThan'
    expect(told(await read(query, 2))).toEqual(['ADDED one', 'ADDED two'])
  })

  it('sendInitialEvents=false: only what comes', async () => {
    const query = 'sendInitialEvents=false&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true'
    expect(told(await read(query, 0))).toEqual([])
  })

  it('an object that comes into a selector is ADDED, one that leaves it DELETED', async () => {
    const move = (at: string | null) => api().patch(`${base}/one`, { metadata: { labels: { at } } })
    await move(null)
    await api().patch(`${base}/one`, { data: { unseen: 'yes' } })
    await move('back')
    await move('elsewhere')
    const lines = await read(`resourceVersion=${version}`, 3)
    expect(told(lines)).toEqual(['DELETED one', 'ADDED one', 'MODIFIED one'])
    // What is told of the leaver is its last seen state, at the version of the change.
    expect(lines[0]?.object.metadata?.labels).toEqual({ at: 'start' })
    expect(Number(lines[0]?.object.metadata?.resourceVersion)).toBeGreaterThan(Number(version))
  })

  it('a single object is watched by its name', async () => {
    await api().patch(`${base}/two`, { data: { a: '1' } })
    const query = `resourceVersion=${version}&fieldSelector=metadata.name%3Dtwo`
    expect(told(await api().watch(watching(query, 1)))).toEqual(['MODIFIED two'])
  })

  it('metadata alone, when asked', async () => {
    const lines = await api().watch(watching('fieldSelector=metadata.name%3Done', 1), undefined, {
      accept: accepts.metadata,
    })
    expect(lines.map(({ object }) => Object.keys(object).sort())).toEqual([
      ['apiVersion', 'kind', 'metadata'],
    ])
    expect(lines[0]?.object.kind).toBe('PartialObjectMetadata')
  })

  it('as a table, the columns come with the first row only', async () => {
    const lines = await read('', 2, accepts.table)
    const tables = lines.map(
      ({ object }) =>
        object as unknown as { columnDefinitions: unknown[] | null; rows: { cells: unknown[] }[] },
    )
    expect(tables.map(({ columnDefinitions }) => columnDefinitions?.length ?? null)).toEqual([3, null])
    expect(tables.map(({ rows }) => rows[0]?.cells[0])).toEqual(['one', 'two'])
  })

  it('a version yet to come is waited for', async () => {
    expect(await api().watch(watching('resourceVersion=999999999', 1))).toEqual([])
  })

  const refused = (query: string, code: number, message: string) =>
    it(`${query} is refused`, async () => {
      const answer = await api().get(`${base}?watch=1&${query}`)
      expect(refusal(answer)).toMatchObject({ code, message })
    })
  const invalid = 'ListOptions.meta.k8s.io "" is invalid: '
  refused(
    'sendInitialEvents=true',
    422,
    `${invalid}resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan`,
  )
  refused(
    'resourceVersionMatch=NotOlderThan&resourceVersion=1',
    422,
    `${invalid}resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided`,
  )
  refused(
    'resourceVersion=abc',
    500,
    'resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing "abc": invalid syntax',
  )
  refused('timeoutSeconds=x', 400, 'strconv.ParseInt: parsing "x": invalid syntax')
}
