import { Hono } from 'hono'
import type { Registry } from 'prom-client'
import type { HealthReport } from './health.ts'

/** How far a process has come. */
export type Phase = 'starting' | 'running' | 'stopping'

export interface ProbeOptions {
  phase(): Phase
  /** Shown by /readyz once the process runs. */
  health(): Promise<HealthReport>
  /** Whether an API that is down takes traffic away too. An outage of the API should seldom stop an app. */
  readiness: boolean
  registry: Registry
}

/**
 * What a kubelet and a Prometheus ask, as a Hono app of its own: `/livez` (the process can answer), `/startupz` (it has
 * started), `/readyz` (it wants traffic, with the health report) and `/metrics`.
 */
export function probes({ phase, health, readiness, registry }: ProbeOptions): Hono {
  const app = new Hono()
  app.get('/livez', (c) => c.json({ status: 'alive' }))
  app.get('/startupz', (c) => c.json({ status: phase() }, phase() === 'starting' ? 503 : 200))
  app.get('/readyz', async (c) => {
    if (phase() !== 'running') return c.json({ status: phase() }, 503)
    const kubernetes = await health()
    const ready = !(readiness && kubernetes.status === 'down')
    return c.json({ status: ready ? 'ready' : 'not ready', kubernetes }, ready ? 200 : 503)
  })
  app.get('/metrics', async (c) =>
    c.body(await registry.metrics(), 200, { 'content-type': registry.contentType }),
  )
  return app
}
