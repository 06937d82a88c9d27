import { join } from 'node:path'
import { serve } from '@hono/node-server'
import { Hono } from 'hono'
import { systemClock } from '../../shared/clock.ts'
// In an app of yours: from 'mutantops/kubernetes'.
import { type Kubernetes, kubernetes } from '../../shared/runtime/plugin.ts'

/**
 * A small app with the Kubernetes runtime: of all its processes one leads and announces so once a second, each shows
 * the greeting of the ConfigMap `example` as it is now, and all serve probes and metrics.
 *
 *     npx node test/example/app.ts              # without a cluster (npx: the Node that comes with the packages)
 *     KUBECONFIG=… npx node test/example/app.ts # in one
 *     curl localhost:8080/ localhost:8080/readyz localhost:8080/metrics
 */

const say = (line: object) => process.stdout.write(`${JSON.stringify(line)}\n`)

function greeting({ configMaps }: Kubernetes): string {
  return configMaps.value('example', 'greeting') ?? 'hello'
}

/** Only the leader's. Asks before each deed: a timer that was late may find that the term is over. */
async function announce(signal: AbortSignal, k8s: Kubernetes): Promise<void> {
  while (k8s.leadership.isLeader()) {
    say({ announces: greeting(k8s), pod: k8s.pod.name })
    await systemClock.sleep(1_000, signal)
  }
}

/** What a person can mend is told in a line: a kubeconfig that cannot be read, a port that is taken. */
function fail(error: Error): never {
  process.stderr.write(`${error.message}\n`)
  process.exit(1)
}

function portOf(text: string): number {
  const port = Number(text)
  if (!Number.isInteger(port) || port < 0 || port > 65_535)
    fail(new Error(`PORT must be a port, not "${text}"`))
  return port
}

const k8s = kubernetes({
  folder: join(import.meta.dirname, 'config'),
  tasks: [{ name: 'announce', run: announce }],
})
const app = new Hono()
k8s.install(app)
app.get('/', (c) => {
  const handle = c.get('kubernetes')
  const { mode, pod, leadership } = handle
  return c.json({ greeting: greeting(handle), mode, pod: pod.name, leading: leadership.isLeader() })
})

const server = serve({ fetch: app.fetch, port: portOf(process.env.PORT ?? '8080') }, ({ port }) =>
  say({ port }),
)
server.on('error', fail)
const handle = await k8s.start().catch(fail)
handle.leadership.subscribe(({ leading }) => say({ leading }))
handle.configMaps.subscribe((configMap) => say({ changed: configMap, greeting: greeting(handle) }))

for (const signal of ['SIGTERM', 'SIGINT'])
  process.once(signal, async () => {
    await k8s.stop()
    server.close()
    say({ stopped: true })
  })
