import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { deadLetterApp } from '../../functions/dead-letter.ts'
import { mutantDeploymentApp } from '../../functions/mutant-deployment.ts'
import { mutationApp } from '../../functions/mutation.ts'
import { resyncApp } from '../../functions/resync.ts'
import { systemClock } from '../../shared/clock.ts'
import { objectEvent, resyncRequest } from '../../shared/cloudevents/envelope.ts'
import { attributesOf } from '../../shared/cloudevents/event.ts'
import { readEvent } from '../../shared/cloudevents/wire.ts'
import { kubeClient } from '../../shared/kube/client.ts'
import { functionContext } from '../support/function.ts'

/** Requests that the functions made of an API that has nothing in it. */
const requests: string[] = []
const client = kubeClient({
  transport: {
    baseUrl: 'http://api',
    fetch: async (url, init) => {
      const { pathname } = new URL(url)
      requests.push(`${init.method} ${pathname}`)
      const isObject = /\/(mutations|mutantdeployments)\/[^/]+$/.test(pathname)
      const body = isObject
        ? { kind: 'Status', code: 404 }
        : { items: [], metadata: { resourceVersion: '1' } }
      return Response.json(body, { status: isObject ? 404 : 200 })
    },
  },
  clock: systemClock,
  userAgent: 'test',
})
const base = functionContext(client)
const nothing = { send: () => Promise.reject(new Error('Sent')), close: async () => {} }
const reconciler = {
  ...base,
  adoption: 'label' as const,
  replies: true,
  record: () => Promise.reject(new Error('Recorded')),
}
const apps = {
  mutation: mutationApp(reconciler),
  'mutant-deployment': mutantDeploymentApp(reconciler),
  resync: resyncApp({ ...base, sink: nothing, namespaces: undefined, needsWork: () => true }),
  'dead-letter': deadLetterApp(reconciler),
}

const good = attributesOf(
  objectEvent({
    cluster: 'c',
    verb: 'applied',
    owner: { apiVersion: 'neiam.org/v1', kind: 'Mutation', namespace: 'shop', name: 'web', uid: 'u' },
    changed: { uid: 'u', resourceVersion: '1' },
    cause: 'object',
  }),
)
const types = [
  'org.neiam.object.applied',
  'org.neiam.object.reconciled',
  'dev.knative.apiserver.resource.update',
  'dev.knative.apiserver.ref.delete',
  'dev.knative.sources.ping',
  'org.neiam.resync.requested',
]
const headerText = fc.string({
  unit: fc.integer({ min: 0x20, max: 0xff }).map((code) => String.fromCharCode(code)),
})
const contentTypes = [
  'application/json',
  'application/cloudevents+json',
  'application/cloudevents-batch+json',
  'text/plain',
  'a',
]
const page = resyncRequest({
  cluster: 'c',
  from: 'resync',
  mode: 'full',
  tick: 't',
  page: { number: 1, position: { pages: {}, after: { namespace: 'a', plural: 'mutations', name: 'b' } } },
})

/** Events that are right but for some attributes and for their data, whole and in pieces, and plain noise. */
const headers = fc
  .record({
    type: fc.constantFrom(...types),
    changes: fc.dictionary(fc.constantFrom(...Object.keys(good), 'x'), headerText),
  })
  .map(({ type, changes }) => ({ ...good, type, ...changes }))
  .map((attributes) =>
    Object.fromEntries(Object.entries(attributes).map(([name, value]) => [`ce-${name}`, value.trim()])),
  )
const structured = fc
  .record({
    type: fc.constantFrom(...types),
    data: fc.oneof(
      fc.json().map((text) => JSON.parse(text)),
      fc.constant(page.data),
    ),
  })
  .map((parts) => JSON.stringify({ ...good, ...parts }))
const body = fc.oneof(
  fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
  structured.map((text) => Buffer.from(text)),
  fc.tuple(structured, fc.nat(400)).map(([text, length]) => Buffer.from(text.slice(0, length))),
  fc.json().map((text) => Buffer.from(text)),
)

const answers = [200, 204, 400, 413, 415, 422]

describe.each(Object.entries(apps))('whatever is posted to %s', (_, app) => {
  test('gets one of the answers of the contract, and nothing is written, sent or recorded', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(headers, fc.constant({})),
        fc.constantFrom(...contentTypes),
        body,
        async (sent, type, bytes) => {
          requests.length = 0
          const request = new Request('http://x/', {
            method: 'POST',
            headers: { ...sent, 'content-type': type },
            body: new Uint8Array(bytes),
          })
          const response = await app.fetch(request)
          const answer = Buffer.from(await response.arrayBuffer())
          expect(answers).toContain(response.status)
          if (response.status === 204) expect(answer).toHaveLength(0)
          if (response.status === 200) readEvent({ headers: response.headers, body: answer })
          for (const path of requests)
            expect(path).toMatch(
              /^GET \/apis\/(neiam\.org|apps)\/v1\/(namespaces\/[a-z0-9-]+\/)?(mutations|mutantdeployments|deployments)(\/[a-z0-9.-]+)?$/,
            )
        },
      ),
      { numRuns: 400 },
    )
    const surprises = base.lines.filter(({ level }) => level === 'error')
    expect(surprises).toEqual([])
  })
})
