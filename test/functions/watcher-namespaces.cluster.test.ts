import { afterEach, beforeAll, expect, it } from 'vitest'
import { mutations } from '../../shared/kinds/mutants.ts'
import { realCluster } from '../control-plane/cluster.ts'
import { installCrds } from '../support/crds.ts'
import { startWatcher, wordSink } from '../support/watcher.ts'

const admin = realCluster.client()
const open: { stop?(): Promise<void>; close?(): Promise<void> }[] = []

beforeAll(() => installCrds(admin))
afterEach(async () => {
  for (const one of open.splice(0).toReversed()) await (one.stop ?? one.close)?.call(one)
})

const namespaceCount = 60

async function manyNamespaces(): Promise<string[]> {
  return Promise.all(Array.from({ length: namespaceCount }, () => realCluster.newNamespace()))
}

function create(namespace: string) {
  const spec = { deployment: { metadata: { name: 'web' } }, variants: [] }
  const metadata = { namespace, name: 'web' }
  return admin.create(mutations, { apiVersion: 'neiam.org/v1', kind: 'Mutation', metadata, spec })
}

it('many namespaces cost three lists and three watches when none is named (case 16)', async () => {
  const names = await manyNamespaces()
  await Promise.all(names.map(create))
  const before = (await realCluster.requests()).length
  const userAgent = `case-16/${before}`
  const sink = await wordSink()
  open.push(sink)
  const [lease = 'default'] = names
  open.push(await startWatcher(realCluster.client({ userAgent }), lease, sink.url, { namespaces: undefined }))
  await expect.poll(() => sink.words()[0], { timeout: 10_000 }).toBe('resync')
  await admin.delete(mutations, { namespace: lease, name: 'web' })
  const told = () => sink.events.some((event) => event.extensions.namespace === lease)
  await expect.poll(told, { timeout: 10_000 }).toBe(true)
  const lists = (await realCluster.requests(before)).filter(
    ({ verb, userAgent: who, objectRef }) => who === userAgent && verb === 'list' && objectRef !== undefined,
  )
  // A list of more than a page takes several requests; each goes on where the one before ended.
  const sequences = lists.filter(({ requestURI }) => !requestURI.includes('continue='))
  expect(sequences.map(({ objectRef }) => objectRef?.resource).sort()).toEqual([
    // Its own settings.
    'configmaps',
    'deployments',
    'mutantdeployments',
    'mutations',
  ])
})

it('each change of each namespace is told when they are named (case 16)', async () => {
  const names = await manyNamespaces()
  const sink = await wordSink()
  open.push(sink)
  const watcher = await startWatcher(admin, names[0] ?? '', sink.url, { namespaces: names })
  open.push(watcher)
  await expect.poll(() => sink.words(), { timeout: 40_000 }).toEqual(['resync'])
  expect(await watcher.ready()).toMatchObject({ interrupted: [] })
  await Promise.all(names.map(create))
  const told = () => sink.events.flatMap(({ extensions }) => extensions.namespace ?? []).sort()
  await expect.poll(told, { timeout: 20_000 }).toEqual(names.toSorted())
})
