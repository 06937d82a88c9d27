import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseAllDocuments } from 'yaml'
import type { CloudEvent } from '../../shared/cloudevents/event.ts'
import { tapeLine } from '../../shared/cloudevents/tape.ts'
import { type MutantKind, mutantKinds } from '../../shared/kinds/mutants.ts'
import { deployments, type KubeObject, type StoredObject } from '../../shared/kinds/object.ts'
import { type Simulation, simulation } from '../simulation/world.ts'
import { base, mutant } from '../support/builders.ts'

/**
 * Records the tapes of this folder anew: `node test/replay/record.ts`. The real watcher and functions run on the embedded
 * API; what the broker is given is the tape. The tape of Knative's ApiServerSource is no recording of Knative: its
 * events are made, in the documented form, of what a run left.
 */

const root = fileURLToPath(new URL('../../', import.meta.url))
const namespace = 'default'

async function recorded(name: string, story: (world: Simulation, events: CloudEvent[]) => Promise<void>) {
  const events: CloudEvent[] = []
  const world = await simulation(1, { onEvent: (event) => events.push(event) })
  await story(world, events)
  await world.stop()
  writeFileSync(`${root}test/replay/tapes/${name}.jsonl`, events.map(tapeLine).join(''))
}

function numbered(index: number, revision = 1) {
  const [kind] = mutantKinds.slice(index % 2) as [MutantKind]
  return mutant(kind, `web-${index}`)
    .in(namespace)
    .on(base(`web-${index}`))
    .with('red', revision)
    .with('blue', 0)
}

async function change({ admin }: Simulation, index: number, revision: number): Promise<void> {
  const object = numbered(index, revision)
  const live = await admin.get(object.kind, { namespace, name: object.name })
  await admin.replace(object.kind, { ...live, spec: object.object().spec } as KubeObject)
}

await recorded('samples', async (world) => {
  await world.startWatcher('a')
  await world.advance(5_000)
  for (const file of readdirSync(`${root}knative/samples`).filter((name) => name.endsWith('.yaml')))
    for (const document of parseAllDocuments(readFileSync(`${root}knative/samples/${file}`, 'utf8'))) {
      const object = document.toJS() as KubeObject
      const kind = mutantKinds.find((one) => one.kind === object.kind)
      if (kind)
        await world.admin.create(kind, {
          ...object,
          metadata: { ...object.metadata, namespace },
        } as KubeObject)
    }
  await world.advance(10_000)
})

await recorded('churn', async (world) => {
  await world.startWatcher('a')
  await world.advance(5_000)
  for (let index = 0; index < 50; index++)
    await world.admin.create(numbered(index).kind, numbered(index).object())
  await world.advance(5_000)
  for (let index = 0; index < 50; index += 3) await change(world, index, 2)
  for (let index = 1; index < 50; index += 5)
    await world.admin.delete(deployments, { namespace, name: `web-${index}-red` })
  await world.advance(5_000)
  for (let index = 48; index < 50; index++)
    await world.admin.delete(numbered(index).kind, { namespace, name: `web-${index}` })
  await world.advance(5_000)
})

await recorded('start', async (world) => {
  for (let index = 0; index < 6; index++)
    await world.admin.create(numbered(index).kind, numbered(index).object())
  await world.startWatcher('a')
  await world.advance(10_000)
})

await recorded('resync', async (world) => {
  for (let index = 0; index < 4; index++)
    await world.admin.create(numbered(index).kind, numbered(index).object())
  await world.advance(310_000)
  await world.admin.delete(deployments, { namespace, name: 'web-2-red' })
  await world.advance(300_000)
})

await recorded('dead-letter', async (world, events) => {
  await world.startWatcher('a')
  await world.advance(5_000)
  await world.admin.create(numbered(0).kind, numbered(0).object())
  await world.advance(5_000)
  const letters = events
    .filter(({ extensions }) => extensions.kind !== undefined)
    .map((event) => ({
      ...event,
      extensions: { ...event.extensions, knativeerrordest: 'http://function/', knativeerrorcode: '503' },
    }))
  events.push(...letters)
})

await recorded('api-server-source', async (world, events) => {
  await world.startWatcher('a')
  await world.advance(5_000)
  for (let index = 0; index < 2; index++)
    await world.admin.create(numbered(index).kind, numbered(index).object())
  await world.advance(5_000)
  events.length = 0
  for (const resource of [...mutantKinds, deployments])
    for (const object of (await world.admin.list(resource, { namespace })).items)
      for (const verb of ['add', 'update', 'delete'])
        for (const mode of ['ref', 'resource']) events.push(ofSource(resource, object, mode, verb))
})

/** As `pkg/adapter/apiserver/events` of knative/eventing makes them. */
function ofSource(
  { kind, plural, group, version }: { kind: string; plural: string; group: string; version: string },
  object: StoredObject,
  mode: string,
  verb: string,
): CloudEvent {
  const { name, uid, resourceVersion } = object.metadata
  const apiVersion = `${group}/${version}`
  return {
    specversion: '1.0',
    id: `${uid}-${resourceVersion}-${mode}-${verb}`,
    source: 'https://10.96.0.1:443',
    type: `dev.knative.apiserver.${mode}.${verb}`,
    subject: `/apis/${apiVersion}/namespaces/${namespace}/${plural}/${name}`,
    datacontenttype: 'application/json',
    extensions: { apiversion: apiVersion, kind, name, namespace },
    data: mode === 'ref' ? { apiVersion, kind, name, namespace } : { ...object, apiVersion, kind },
  }
}
