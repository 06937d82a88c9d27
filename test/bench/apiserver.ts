import { apiServer } from '../../shared/apiserver/server.ts'

/**
 * What the embedded API costs, in process: `node test/bench/apiserver.ts`. Prints one line per figure; all numbers are of one run on
 * the machine at hand.
 */

const objects = 10_000
const watchers = 100
const writes = 1_000

const elapsedFrom = (startMs: number) => performance.now() - startMs
const say = (what: string, ms: number, unit = 'ms') =>
  console.log(`${what.padEnd(52)} ${ms.toFixed(2)} ${unit}`)

const startMs = performance.now()
const server = apiServer()
say('start', elapsedFrom(startMs))
const { fetch, baseUrl } = server.transport()

async function call(method: string, path: string, body?: unknown, type = 'application/json') {
  const headers = { 'content-type': type }
  const response = await fetch(baseUrl + path, {
    method,
    headers,
    body: body === undefined ? null : JSON.stringify(body),
  })
  return (await response.json()) as {
    items: unknown[]
    metadata: { continue?: string; resourceVersion: string }
  }
}

async function timed(what: string, count: number, act: (index: number) => Promise<unknown>): Promise<void> {
  const beginMs = performance.now()
  for (let index = 0; index < count; index++) await act(index)
  say(`${what} (${count})`, elapsedFrom(beginMs) / count, 'ms each')
}

const base = '/api/v1/namespaces/default/configmaps'
const configMap = (index: number) => ({
  metadata: { name: `c${index}`, labels: { n: String(index % 10) } },
  data: { a: 'b' },
})
const deployment = (index: number) => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: `d${index}` },
  spec: {
    selector: { matchLabels: { app: 'x' } },
    template: { metadata: { labels: { app: 'x' } }, spec: { containers: [{ name: 'c', image: 'i' }] } },
  },
})

await timed('create a ConfigMap', objects, (index) => call('POST', base, configMap(index)))
await timed('apply a new Deployment', writes, (index) =>
  call(
    'PATCH',
    `/apis/apps/v1/namespaces/default/deployments/d${index}?fieldManager=bench`,
    deployment(index),
    'application/apply-patch+yaml',
  ),
)
await timed('apply an unchanged Deployment', writes, (index) =>
  call(
    'PATCH',
    `/apis/apps/v1/namespaces/default/deployments/d${index}?fieldManager=bench`,
    deployment(index),
    'application/apply-patch+yaml',
  ),
)
await timed('list all', 5, () => call('GET', base))
await timed('list a tenth by label', 5, () => call('GET', `${base}?labelSelector=n%3D3`))
await timed('list in pages of 500', 1, async () => {
  for (let token: string | undefined = ''; token !== undefined; )
    token = (await call('GET', `${base}?limit=500&continue=${token}`)).metadata.continue
})

const { resourceVersion } = (await call('GET', `${base}?limit=1`)).metadata
const lineFeed = 10
const reading = Array.from({ length: watchers }, async () => {
  const response = await fetch(`${baseUrl}${base}?watch=1&resourceVersion=${resourceVersion}`, {})
  let seen = 0
  for await (const chunk of response.body ?? []) {
    for (const byte of chunk) if (byte === lineFeed) seen += 1
    if (seen >= writes) break
  }
})
const beginMs = performance.now()
for (let index = 0; index < writes; index++)
  await call('PATCH', `${base}/c${index}`, { data: { a: String(index) } }, 'application/merge-patch+json')
await Promise.all(reading)
say(`${writes} writes, each seen by ${watchers} watchers`, elapsedFrom(beginMs))
say('memory (RSS)', process.memoryUsage().rss / 2 ** 20, 'MiB')
await server.stop()
