import { expect, test } from 'vitest'
import { apiServer } from '../../shared/apiserver/server.ts'

/** The test that the README shows. */
test('a ConfigMap is there after a refusal', async () => {
  const api = apiServer()
  const { baseUrl, fetch } = api.transport()
  const url = `${baseUrl}/api/v1/namespaces/default/configmaps`
  const body = JSON.stringify({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'web' },
    data: { a: '1' },
  })
  await fetch(url, { method: 'POST', body, headers: { 'content-type': 'application/json' } })
  api.faults.add({ on: { verb: 'get', resource: 'configmaps' }, trouble: { status: 503 }, times: 1 })
  expect((await fetch(`${url}/web`, {})).status).toBe(503)
  expect((await fetch(`${url}/web`, {})).status).toBe(200)
  await api.stop()
})
