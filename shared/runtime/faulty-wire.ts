import type { Clock } from '../clock.ts'
import type { Transport } from '../kube/client.ts'

/** What a fault does to a request: another answer, no answer, no connection, or a late answer. */
export type Fault = { status: number } | 'hangs' | 'refused' | { delayMs: number }

export interface FaultyWire extends Transport {
  /** Asked for each request; undefined lets it through. */
  fault: (request: { method: string; path: string }) => Fault | undefined
  /** `GET /api/v1/…?…`, oldest first. */
  requests: string[]
}

/**
 * A wire over another one, with trouble where a test wants it, for tests of apps:
 *
 *     const wire = faultyWire(apiServer().transport(), systemClock)
 *     const k8s = kubernetes({ connect: async () => wire })
 *     wire.fault = ({ path }) => (path.includes('/leases/') ? { status: 503 } : undefined)
 */
export function faultyWire(under: Transport, clock: Clock): FaultyWire {
  const wire: FaultyWire = {
    baseUrl: under.baseUrl,
    requests: [],
    fault: () => undefined,
    async fetch(url, init) {
      const { method = 'GET' } = init
      const path = url.slice(under.baseUrl.length)
      wire.requests.push(`${method} ${path}`)
      const fault = wire.fault({ method, path })
      if (fault === undefined) return under.fetch(url, init)
      if (fault === 'refused') throw Object.assign(new Error('connect'), { code: 'ECONNREFUSED' })
      if (fault === 'hangs') await clock.sleep(Number.MAX_SAFE_INTEGER, init.signal ?? undefined)
      else if ('delayMs' in fault) await clock.sleep(fault.delayMs, init.signal ?? undefined)
      else return Response.json(statusOf(fault.status), { status: fault.status })
      return under.fetch(url, init)
    },
  }
  return wire
}

function statusOf(code: number) {
  return {
    kind: 'Status',
    apiVersion: 'v1',
    status: 'Failure',
    code,
    message: 'secret words',
    reason: 'Fault',
  }
}
