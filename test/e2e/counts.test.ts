import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll } from 'vitest'
import { serve } from '../../functions/serve.ts'
import { systemClock } from '../../shared/clock.ts'
import { kubeClient } from '../../shared/kube/client.ts'
import { embeddedApi } from '../support/embedded.ts'
import { newFolder } from '../support/folder.ts'
import { type CountedRequest, countsSuite } from './counts-suite.ts'

const { server } = embeddedApi({ rollout: false })
const requests: CountedRequest[] = []
afterAll(() => server.stop())

countsSuite(async () => {
  const app = {
    fetch(request: Request) {
      const { pathname, search } = new URL(request.url)
      const userAgent = request.headers.get('user-agent') ?? ''
      requests.push({ userAgent, method: request.method, uri: pathname + search })
      return server.fetch(request)
    },
  }
  const { port } = await serve({ app, port: 0, host: '127.0.0.1', clock: systemClock })
  const config = server.kubeconfig(`http://127.0.0.1:${port}`) as { clusters: { cluster: object }[] }
  for (const one of config.clusters)
    one.cluster = { server: `http://127.0.0.1:${port}`, 'insecure-skip-tls-verify': true }
  const kubeconfigFile = join(newFolder(), 'kubeconfig')
  await writeFile(kubeconfigFile, JSON.stringify(config), { mode: 0o600 })
  return {
    admin: kubeClient({ transport: server.transport(), clock: systemClock, userAgent: 'test' }),
    kubeconfigFile,
    requests: async () => [...requests],
  }
})
