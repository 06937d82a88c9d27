import { afterEach, beforeAll, expect, it } from 'vitest'
import { mutations } from '../../shared/kinds/mutants.ts'
import { leases } from '../../shared/kinds/object.ts'
import { realCluster } from '../control-plane/cluster.ts'
import { installCrds } from '../support/crds.ts'
import { type FunctionProcess, functionProcess } from '../support/process.ts'
import { wordSink } from '../support/watcher.ts'

const client = realCluster.client()
const running: FunctionProcess[] = []
const sinks: { close(): Promise<void> }[] = []

beforeAll(() => installCrds(client))
afterEach(async () => {
  for (const { child, ended } of running.splice(0)) {
    child.kill('SIGKILL')
    await ended
  }
  for (const sink of sinks.splice(0)) await sink.close()
})

/** For the tests that wait for a Lease to run out. */
const quickLease = { LEASE_DURATION_SECONDS: '3', RENEW_DEADLINE_SECONDS: '2', RETRY_PERIOD_SECONDS: '1' }

/** A namespace, a sink, and watchers as processes; each marks what it sends with its name. */
async function world(answer?: Parameters<typeof wordSink>[0]) {
  const namespace = await realCluster.newNamespace()
  const sink = await wordSink(answer)
  sinks.push(sink)
  const watcher = async (name: string, env: Record<string, string> = quickLease) => {
    const started = await functionProcess('watcher', {
      KUBECONFIG: realCluster.kubeconfigFile,
      K_SINK: sink.url,
      K_CE_OVERRIDES: JSON.stringify({ extensions: { sentby: name } }),
      WATCH_NAMESPACES: namespace,
      POD_NAMESPACE: namespace,
      POD_NAME: name,
      ...env,
    })
    running.push(started)
    return started
  }
  const create = (name: string) => {
    const spec = { deployment: { metadata: { name } }, variants: [] }
    const metadata = { namespace, name }
    return client.create(mutations, { apiVersion: 'neiam.org/v1', kind: 'Mutation', metadata, spec })
  }
  const sentBy = (name: string) => sink.events.filter(({ extensions }) => extensions.sentby === name)
  const namesSentBy = (name: string) => sentBy(name).map(({ extensions }) => extensions.name ?? 'resync')
  return { namespace, sink, watcher, create, sentBy, namesSentBy }
}

it('a watcher that is killed in the middle of a burst is followed by the other, which asks for what was missed', async () => {
  const { sink, watcher, create, namesSentBy } = await world()
  const first = await watcher('first')
  await expect.poll(() => namesSentBy('first'), { timeout: 10_000 }).toEqual(['resync'])
  await watcher('second')
  let killedMs = 0
  for (let index = 0; index < 60; index++) {
    if (index === 30) {
      killedMs = performance.now()
      first.child.kill('SIGKILL')
    }
    await create(`o${index}`)
  }
  await expect.poll(() => namesSentBy('second'), { timeout: 10_000 }).toContain('resync')
  // The lease's duration and one retry, and a second for a busy machine.
  expect(performance.now() - killedMs).toBeLessThan(3_000 + 1_000 + 1_000)
  // What was made before this resync is found by it; what is made after it is told.
  await create('later')
  await expect.poll(() => namesSentBy('second'), { timeout: 10_000 }).toContain('later')
  expect(namesSentBy('first')).toEqual(expect.arrayContaining(['o0', 'o20']))
  expect(sink.events.filter(({ extensions }) => extensions.sentby === undefined)).toEqual([])
})

it('a watcher that is told to end hands over within 2 s, and nothing made or deleted meanwhile is lost', async () => {
  const { namespace, sink, watcher, create, namesSentBy } = await world()
  const first = await watcher('first', {})
  await expect.poll(() => namesSentBy('first'), { timeout: 10_000 }).toEqual(['resync'])
  await watcher('second', {})
  await create('doomed')
  await expect.poll(() => namesSentBy('first'), { timeout: 10_000 }).toContain('doomed')

  const endedMs = performance.now()
  first.child.kill('SIGTERM')
  const changes: { name: string; atMs: number }[] = []
  const change = async (name: string, made: Promise<unknown>) => {
    await made
    changes.push({ name, atMs: performance.now() })
  }
  let tookOverMs: number | undefined
  for (let index = 0; tookOverMs === undefined || index < 20; index++) {
    await change(`o${index}`, create(`o${index}`))
    if (index === 1) await change('doomed', client.delete(mutations, { namespace, name: 'doomed' }))
    if (namesSentBy('second').includes('resync')) tookOverMs ??= performance.now()
    expect(performance.now() - endedMs).toBeLessThan(10_000)
  }
  // Half a second for a busy machine.
  expect(tookOverMs - endedMs).toBeLessThan(2_000 + 500)
  expect(await first.ended).toBe(0)

  // What was changed before the resync was asked for is found by it (of what was deleted there is nothing to find);
  // what was changed later is told.
  await create('last')
  await expect.poll(() => namesSentBy('second'), { timeout: 10_000 }).toContain('last')
  const told = new Set(sink.events.map(({ extensions }) => extensions.name))
  const lost = changes.filter(({ name, atMs }) => atMs > (tookOverMs ?? 0) && !told.has(name))
  expect(lost).toEqual([])
}, 30_000)

it('a watcher that was frozen past its lease sends nothing when it wakes, and campaigns again (case 42)', async () => {
  const held: (() => void)[] = []
  let isHolding = false
  const { namespace, watcher, create, sentBy, namesSentBy } = await world((response) => {
    const answer = () => response.writeHead(202).end()
    if (isHolding) held.push(answer)
    else answer()
  })
  const first = await watcher('first')
  await expect.poll(() => namesSentBy('first'), { timeout: 10_000 }).toEqual(['resync'])
  isHolding = true
  // 32 are on their way and the rest is queued.
  for (let index = 0; index < 60; index++) await create(`o${index}`)
  await expect.poll(() => held.length, { timeout: 10_000 }).toBe(32)
  first.child.kill('SIGSTOP')
  await watcher('second')
  await expect.poll(() => namesSentBy('second'), { timeout: 15_000 }).toContain('resync')
  isHolding = false
  for (const answer of held) answer()
  const before = sentBy('first').length
  first.child.kill('SIGCONT')
  const says = (msg: string) => first.lines.some((line) => line.msg === msg)
  await expect.poll(() => says('no longer leading'), { timeout: 10_000 }).toBe(true)
  await create('later')
  await expect.poll(() => namesSentBy('second'), { timeout: 10_000 }).toContain('later')
  expect(sentBy('first')).toHaveLength(before)
  // It is not lost for good: when the other goes in order, it takes over within a retry period.
  running[1]?.child.kill('SIGTERM')
  expect(await running[1]?.ended).toBe(0)
  const holder = async () => (await client.get(leases, { namespace, name: 'mutantops-watcher' }))?.spec
  await expect
    .poll(holder, { timeout: 5_000 })
    .toMatchObject({ holderIdentity: expect.stringMatching(/^first-/) })
})
