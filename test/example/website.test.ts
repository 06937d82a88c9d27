import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { systemClock } from '../../shared/clock.ts'
import { configMaps, customResourceDefinitions, type StoredObject } from '../../shared/kinds/object.ts'
import { kubeClient } from '../../shared/kube/client.ts'
import { embeddedApi } from '../support/embedded.ts'
import { functionContext } from '../support/function.ts'
import { websiteApp, websites } from './website.ts'

const definition = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'websites.example.org' },
  spec: {
    group: 'example.org',
    scope: 'Namespaced',
    names: { plural: 'websites', kind: 'Website' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: { spec: { type: 'object', properties: { title: { type: 'string' } } } },
          },
        },
      },
    ],
  },
}

describe('the reconciler that the README shows', () => {
  const { server } = embeddedApi()
  const client = kubeClient({ transport: server.transport(), clock: systemClock, userAgent: 'example' })
  const app = websiteApp(functionContext(client))
  const pageOf = (name: string) =>
    client.get<StoredObject & { data: Record<string, string> }>(configMaps, { namespace: 'default', name })

  function post(subject: string): Promise<Response> {
    const headers = { 'ce-specversion': '1.0', 'ce-id': '1', 'ce-source': '/test', 'ce-type': 'changed' }
    return Promise.resolve(
      app.request('/', { method: 'POST', headers: { ...headers, 'ce-subject': subject } }),
    )
  }

  beforeAll(async () => {
    await client.create(customResourceDefinitions, definition)
    await client.create(websites, {
      apiVersion: 'example.org/v1',
      kind: 'Website',
      metadata: { name: 'home', namespace: 'default' },
      spec: { title: 'Hello' },
    })
  })
  afterAll(() => server.stop())

  it('makes the page of a Website', async () => {
    const answer = await post('/apis/example.org/v1/namespaces/default/websites/home')
    expect([answer.status, await answer.text()]).toEqual([204, ''])
    expect((await pageOf('home-page'))?.data).toEqual({ 'index.html': '<h1>Hello</h1>' })
  })

  it('has nothing to do for a Website that is gone, and refuses another kind', async () => {
    expect((await post('/apis/example.org/v1/namespaces/default/websites/gone')).status).toBe(204)
    expect((await post('/apis/example.org/v1/namespaces/default/shops/home')).status).toBe(422)
  })
})
