import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { systemClock } from '../../shared/clock.ts'
import { fieldManager, mutantDeployments, mutations, ownerLabel } from '../../shared/kinds/mutants.ts'
import {
  configMaps,
  deployments,
  type KubeObject,
  leases,
  type StoredObject,
} from '../../shared/kinds/object.ts'
import { kubeClient } from '../../shared/kube/client.ts'
import { installCrds } from '../support/crds.ts'
import { startWatcher, type WatcherRun, wordSink } from '../support/watcher.ts'
import type { TestApi } from '../support/world.ts'

const template = (labels: object) => ({
  metadata: { labels },
  spec: { containers: [{ name: 'web', image: 'nginx:1' }] },
})
const base = {
  metadata: { name: 'web' },
  spec: { selector: { matchLabels: { app: 'web' } }, template: template({ app: 'web' }) },
}

function mutation(namespace: string, name: string, variants: object[] = []): KubeObject {
  return {
    apiVersion: 'neiam.org/v1',
    kind: 'Mutation',
    metadata: { namespace, name },
    spec: { deployment: base, variants },
  }
}

function childOf(owner: StoredObject, name: string): KubeObject {
  const { namespace = '', name: ownerName, uid } = owner.metadata
  const reference = {
    apiVersion: 'neiam.org/v1',
    kind: 'Mutation',
    name: ownerName,
    uid,
    controller: true,
    blockOwnerDeletion: true,
  }
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { namespace, name, labels: { [ownerLabel]: ownerName }, ownerReferences: [reference] },
    spec: { replicas: 1, selector: { matchLabels: { app: name } }, template: template({ app: name }) },
  }
}

/** What the watcher tells of what happens, as stories about a cluster; `api` is the real one or the embedded one. */
export function watcherSuite(api: TestApi): void {
  const client = kubeClient({ transport: api.transport(), clock: systemClock, userAgent: 'mutantops-test' })
  const open: { stop?(): Promise<void>; close?(): Promise<void> }[] = []

  beforeAll(() => installCrds(client))
  afterEach(async () => {
    for (const one of open.splice(0).toReversed()) await (one.stop ?? one.close)?.call(one)
  })

  const apply = (object: KubeObject) => client.apply(deployments, object, { fieldManager, force: true })

  async function world(answer?: Parameters<typeof wordSink>[0]) {
    const namespace = await api.newNamespace()
    const sink = await wordSink(answer)
    open.push(sink)
    const watcher = async (identity?: string): Promise<WatcherRun> => {
      const started = await startWatcher(client, namespace, sink.url, {}, identity)
      open.push(started)
      return started
    }
    /** Waits until exactly these events have come since the last look, and for as long again for one too many. */
    const told = async (...words: string[]) => {
      await expect.poll(sink.words, { timeout: 10_000 }).toEqual(words)
      await marker()
      expect(sink.words()).toEqual([...words, 'applied MutantDeployment marker'])
      sink.clear()
    }
    /** Once this event has come, all that happened before it in the API has been told (each watch is in order). */
    const marker = async () => {
      const metadata = {
        namespace,
        name: 'marker',
        annotations: { at: `${sink.events.length}-${Math.random()}` },
      }
      const object = {
        apiVersion: 'neiam.org/v1',
        kind: 'MutantDeployment',
        metadata,
        spec: { deployment: base, mutations: [] },
      }
      await client.apply(mutantDeployments, object, { fieldManager: 'test' })
      await expect
        .poll(() => sink.words().at(-1), { timeout: 10_000 })
        .toBe('applied MutantDeployment marker')
    }
    return { namespace, sink, watcher, told }
  }

  describe('what happens to an object', () => {
    it('is told once: made, changed, deleted; a status write is not', async () => {
      const { namespace, watcher, told } = await world()
      await watcher()
      await told('resync')
      const made = await client.create(mutations, mutation(namespace, 'web'))
      await told('applied Mutation web')

      const status = { message: 'hello', observedGeneration: 1 }
      const reported = await client.replace(mutations, { ...made, status }, { subresource: 'status' })
      await told()

      const metadata = { ...reported.metadata, annotations: { note: 'x' } }
      await client.replace(mutations, { ...reported, metadata })
      await told('applied Mutation web')

      await client.delete(mutations, { namespace, name: 'web' })
      await told('deleted Mutation web')
    })

    it('with a finalizer is told when its deletion begins and when it is gone (case 10)', async () => {
      const { namespace, sink, watcher, told } = await world()
      await watcher()
      const held = mutation(namespace, 'web')
      held.metadata = { ...held.metadata, finalizers: ['example.org/held'] }
      await told('resync')
      await client.create(mutations, held)
      await told('applied Mutation web')
      await client.delete(mutations, { namespace, name: 'web' })
      await told('applied Mutation web')
      await client.patchJson(mutations, { namespace, name: 'web' }, [
        { op: 'remove', path: '/metadata/finalizers' },
      ])
      await expect.poll(() => sink.words()).toContain('deleted Mutation web')
    })
  })

  describe('what happens to a child', () => {
    it('is told as its owner, but for what our own apply did', async () => {
      const { namespace, sink, watcher, told } = await world()
      await watcher()
      await told('resync')
      const owner = await client.create(mutations, mutation(namespace, 'web'))
      await told('applied Mutation web')
      const target = { namespace, name: 'web-red' }

      const child = childOf(owner, 'web-red')
      await apply(child)
      await apply({ ...child, metadata: { ...child.metadata, annotations: { note: 'x' } } })
      await told()

      await client.patchJson(deployments, target, [{ op: 'replace', path: '/spec/replicas', value: 7 }])
      await told('applied Mutation web')

      const live = (await client.get(deployments, target)) as StoredObject
      const status = { replicas: 7, observedGeneration: live.metadata.generation }
      await client.replace(deployments, { ...live, status }, { subresource: 'status' })
      await told('applied Mutation web')
      expect(sink.events).toEqual([])

      await client.patchJson(deployments, target, [{ op: 'remove', path: '/metadata/ownerReferences' }])
      await told('applied Mutation web')

      await apply(child)
      await client.delete(deployments, target)
      await expect.poll(() => sink.words()).toContain('applied Mutation web')
    })

    it('of an owner that is gone is told to the one that has its name now, if there is one', async () => {
      const { namespace, sink, watcher, told } = await world()
      await watcher()
      await told('resync')
      const first = await client.create(mutations, mutation(namespace, 'web'))
      const held = childOf(first, 'web-red')
      held.metadata = { ...held.metadata, finalizers: ['example.org/held'] }
      await apply(held)
      await told('applied Mutation web')
      await client.delete(mutations, { namespace, name: 'web' })
      // The collector begins to delete the child; it is not told, for nobody is there to be told.
      const isTerminating = async () =>
        (await client.get(deployments, { namespace, name: 'web-red' }))?.metadata.deletionTimestamp !==
        undefined
      await expect.poll(isTerminating, { timeout: 30_000 }).toBe(true)
      await told('deleted Mutation web')
      const second = await client.create(mutations, mutation(namespace, 'web'))
      await told('applied Mutation web')
      const unhold = [{ op: 'remove' as const, path: '/metadata/finalizers' }]
      await client.patchJson(deployments, { namespace, name: 'web-red' }, unhold)
      await expect.poll(() => sink.words()).toContain('applied Mutation web')
      expect(sink.events[0]?.data).toMatchObject({ uid: second.metadata.uid })
    })
  })

  describe('two watchers', () => {
    it('one sends; when it stops the other takes over at once and asks for a resync', async () => {
      const { namespace, sink, watcher, told } = await world()
      const first = await watcher('first')
      await told('resync')
      const second = await watcher('second')
      await client.create(mutations, mutation(namespace, 'a'))
      await told('applied Mutation a')
      expect(await second.ready()).toMatchObject({ status: 'running', leader: { leading: false } })
      expect(await first.ready()).toMatchObject({ leader: { leading: true }, sink: 'up', interrupted: [] })

      await first.stop()
      expect(await client.get(leases, { namespace, name: 'watcher' })).toMatchObject({
        spec: { leaseDurationSeconds: 1 },
      })
      await expect.poll(() => sink.words(), { timeout: 2_500 }).toEqual(['resync'])
      await told('resync')
      await client.create(mutations, mutation(namespace, 'b'))
      await told('applied Mutation b')
    })
  })

  describe('its ConfigMap', () => {
    it('pauses it, and what changed meanwhile is told once when it goes on', async () => {
      const { namespace, watcher, told } = await world()
      const { ready, metrics, lines } = await watcher()
      const put = (data: Record<string, string>) =>
        client.apply(
          configMaps,
          { apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace, name: 'mutantops-watcher' }, data },
          { fieldManager: 'test' },
        )
      await told('resync')
      expect(await ready()).toMatchObject({ paused: false })
      await put({ paused: 'true', logLevel: 'debug' })
      await expect.poll(ready, { timeout: 5_000 }).toMatchObject({ paused: true })
      expect(await metrics()).toMatch(/^mutantops_watcher_paused 1$/m)

      const made = await client.create(mutations, mutation(namespace, 'a'))
      await client.replace(mutations, { ...made, metadata: { ...made.metadata, annotations: { note: 'x' } } })
      await client.create(mutations, mutation(namespace, 'b'))
      await expect.poll(metrics, { timeout: 5_000 }).toMatch(/^mutantops_watcher_queue_depth 2$/m)
      await expect.poll(metrics, { timeout: 5_000 }).toMatch(/^mutantops_watcher_folded 1$/m)

      // A value that is not valid changes nothing: it stays paused.
      await put({ paused: 'no', logLevel: 'debug' })
      const warned = () => lines.filter(({ msg }) => msg === 'settings not taken')
      await expect.poll(warned, { timeout: 5_000 }).toEqual([
        expect.objectContaining({
          configMap: `${namespace}/mutantops-watcher`,
          problems: ['paused is not true or false'],
        }),
      ])
      expect(await ready()).toMatchObject({ paused: true })
      await client.delete(configMaps, { namespace, name: 'mutantops-watcher' })
      await told('applied Mutation a', 'applied Mutation b')
      expect(await ready()).toMatchObject({ paused: false })
    })
  })

  describe('the metrics', () => {
    it('tell what is watched, what was sent and what waits', async () => {
      let answer = 503
      const { namespace, sink, watcher } = await world((response) => {
        response.writeHead(answer).end()
      })
      const { metrics, ready } = await watcher()
      await expect
        .poll(metrics, { timeout: 5_000 })
        .toMatch(/^mutantops_watcher_sends_total\{status="503"\} [1-9]/m)
      await client.create(mutations, mutation(namespace, 'a'))
      await expect.poll(metrics).toMatch(/^mutantops_watcher_queue_depth 2$/m)
      expect(await metrics()).toMatch(/^mutantops_watcher_objects\{kind="Mutation"\} 1$/m)
      expect(await ready()).toMatchObject({ sink: 'down' })
      answer = 202
      await expect.poll(metrics, { timeout: 10_000 }).toMatch(/^mutantops_watcher_queue_depth 0$/m)
      await expect.poll(metrics).toMatch(/^mutantops_watcher_sends_total\{status="202"\} [12]$/m)
      expect(new Set(sink.words())).toEqual(new Set(['resync', 'applied Mutation a']))
    })
  })
}
