import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { stringify } from 'yaml'
import { readManifests, readObjects } from '../../shared/local/manifests/manifests.ts'
import { newFolder } from '../support/folder.ts'

const knative = fileURLToPath(new URL('../../knative/', import.meta.url))

/** A kustomization of one file with these objects. */
async function folderWith(...objects: object[]): Promise<string> {
  const folder = newFolder()
  await writeFile(join(folder, 'kustomization.yaml'), stringify({ resources: ['all.yaml'] }))
  await writeFile(join(folder, 'all.yaml'), objects.map((object) => stringify(object)).join('---\n'))
  return folder
}

const metadata = { namespace: 'ns', name: 'x' }
const broker = {
  apiVersion: 'eventing.knative.dev/v1',
  kind: 'Broker',
  metadata: { namespace: 'ns', name: 'default' },
}
const trigger = (spec: object) => ({
  apiVersion: 'eventing.knative.dev/v1',
  kind: 'Trigger',
  metadata,
  spec: { broker: 'default', subscriber: { uri: 'http://elsewhere.test/' }, ...spec },
})

describe('readManifests', () => {
  it('reads the very files that are for a cluster', async () => {
    const read = await readManifests(knative)
    expect(read.brokers).toEqual(['mutantops/default'])
    expect(read.subscriptions.map(({ name }) => name)).toEqual(['mutation', 'mutant-deployment', 'resync'])
    expect(read.pings.map(({ schedule, data }) => [schedule, data])).toEqual([
      ['*/5 * * * *', '{"mode":"needed"}'],
      ['7 * * * *', '{"mode":"full"}'],
    ])
    expect(read.services.map(({ name, functionName }) => [name, functionName])).toEqual(
      ['mutation', 'mutant-deployment', 'resync', 'dead-letter'].map((name) => [name, name]),
    )
    expect(read.processes.map(({ name, sinkUrl }) => [name, sinkUrl])).toEqual([
      ['watcher', 'http://broker-ingress.knative-eventing.svc.cluster.local/mutantops/default'],
    ])
    expect(read.apiObjects.map(({ kind }) => kind)).toEqual([
      'Namespace',
      'CustomResourceDefinition',
      'CustomResourceDefinition',
    ])
  })

  it.each([
    ['applied', 'Mutation', ['mutation']],
    ['deleted', 'MutantDeployment', ['mutant-deployment']],
    ['resync', 'Mutation', ['mutation']],
    ['reconciled', 'Mutation', []],
    ['applied', 'Deployment', []],
  ])('an event org.neiam.object.%s of a %s goes to %j', async (verb, kind, names) => {
    const { subscriptions } = await readManifests(knative)
    const event = { specversion: '1.0', id: '1', source: '/x', type: `org.neiam.object.${verb}`, kind }
    expect(subscriptions.filter(({ accepts }) => accepts(event)).map(({ name }) => name)).toEqual(names)
  })

  it('both samples are found', async () => {
    const samples = await readObjects(join(knative, 'samples'))
    expect(samples.map((sample) => sample.metadata?.name)).toEqual(['nginx-mutant', 'storefront'])
  })

  it("a Trigger without delivery has its Broker's, and a Broker without has Knative's default", async () => {
    const own = {
      ...broker,
      metadata: { namespace: 'ns', name: 'own' },
      spec: { delivery: { retry: 3, deadLetterSink: { uri: 'http://dead.test/' } } },
    }
    const folder = await folderWith(broker, own, trigger({}), {
      ...trigger({ broker: 'own' }),
      metadata: { namespace: 'ns', name: 'y' },
    })
    const { subscriptions } = await readManifests(folder)
    expect(subscriptions).toMatchObject([
      {
        delivery: { retries: 10, backoff: { policy: 'exponential', delayMs: 200 } },
        deadLetterUrl: undefined,
      },
      { delivery: { retries: 3 }, deadLetterUrl: 'http://dead.test/' },
    ])
  })

  it.each([
    [
      'a Trigger of no Broker',
      [trigger({})],
      /all\.yaml: Trigger x: spec\.broker: there is no Broker ns\/default/,
    ],
    ['a filter that is not served', [broker, trigger({ filters: [{ cesql: 'TRUE' }] })], /Trigger x.*cesql/],
    [
      'a Trigger without subscriber',
      [broker, trigger({ subscriber: undefined })],
      /Trigger x: spec\.subscriber/,
    ],
    [
      'a subscriber that is not there',
      [
        broker,
        trigger({
          subscriber: { ref: { apiVersion: 'serving.knative.dev/v1', kind: 'Service', name: 'none' } },
        }),
      ],
      /Trigger x: there is no service ns\/none/,
    ],
    [
      'a subscriber without an address',
      [broker, trigger({ subscriber: { ref: { apiVersion: 'v1', kind: 'Service', name: 'a' } } })],
      /a v1 Service has no address here/,
    ],
    [
      'a delivery that is none',
      [broker, trigger({ delivery: { backoffDelay: '1s' } })],
      /spec\.delivery\.backoffDelay/,
    ],
    [
      'a kind that is not known',
      [{ apiVersion: 'v1', kind: 'Pod', metadata }],
      /Pod x: the local Knative does not know/,
    ],
  ])('says what is wrong: %s', async (_, objects, message) => {
    await expect(readManifests(await folderWith(...objects))).rejects.toThrow(message)
  })
})
