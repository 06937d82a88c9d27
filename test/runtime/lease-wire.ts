import type { Clock } from '../../shared/clock.ts'
import type { Transport } from '../../shared/kube/client.ts'
import type { Lease } from '../../shared/runtime/lease.ts'

/**
 * A wire to one Lease for tests of time: a compare-and-swap register with the answers that a kube-apiserver gives to
 * a GET and a PUT of a Lease, on a virtual clock, with delay, loss and outage as the test says. That the real server
 * answers so is held by the cluster tests.
 */
export interface LeaseWire {
  lease(): Lease | undefined
  /** Writes from outside, as kubectl would. */
  edit(change: (lease: Lease) => Lease | undefined): void
  /** A wire to it for one process, with its own trouble. */
  transport(trouble?: () => Trouble): Transport
  requests: { method: string; status: number; atMs: number; process: string }[]
}

export interface Trouble {
  /** Before the request reaches the server, and before its answer is back, in ms. */
  thereMs?: number
  backMs?: number
  /** The request never arrives, or its answer never does. */
  lost?: 'there' | 'back'
  /** The server's answer instead of its work. */
  status?: number
  /** What somebody else does in the moment before a write of ours arrives. */
  beforeWrite?: () => void
}

export function leaseWire(clock: Clock): LeaseWire {
  let lease: Lease | undefined
  let version = 10
  const requests: LeaseWire['requests'] = []

  function store(next: Lease): Lease {
    version++
    lease = structuredClone({ ...next, metadata: { ...next.metadata, resourceVersion: String(version) } })
    return lease
  }

  function serve(method: string, body: string): { status: number; body: unknown } {
    if (method === 'GET') return lease ? { status: 200, body: lease } : refusal(404, 'NotFound')
    const sent = JSON.parse(body) as Lease
    if (lease === undefined) return { status: 201, body: store(sent) }
    if (sent.metadata?.resourceVersion !== lease.metadata?.resourceVersion) return refusal(409, 'Conflict')
    return { status: 200, body: store(sent) }
  }

  return {
    lease: () => lease,
    edit(change) {
      const next = lease && change(structuredClone(lease))
      if (next) store(next)
      else lease = undefined
    },
    requests,
    transport: (troubleOf = () => ({})) => ({
      baseUrl: 'http://lease.test',
      async fetch(_url, init) {
        const trouble = troubleOf()
        const method = init.method ?? 'GET'
        const signal = init.signal ?? undefined
        const never = () => clock.sleep(Number.MAX_SAFE_INTEGER, signal)
        await clock.sleep(trouble.thereMs ?? 0)
        if (trouble.lost === 'there') await never()
        if (method === 'PUT') trouble.beforeWrite?.()
        const answer = trouble.status
          ? refusal(trouble.status, 'Trouble')
          : serve(method, String(init.body ?? ''))
        const process = new Headers(init.headers).get('user-agent') ?? ''
        requests.push({ method, status: answer.status, atMs: clock.monotonicMs(), process })
        await clock.sleep(trouble.backMs ?? 0)
        if (trouble.lost === 'back') await never()
        return Response.json(answer.body, { status: answer.status })
      },
    }),
  }
}

function refusal(code: number, reason: string) {
  return { status: code, body: { kind: 'Status', apiVersion: 'v1', status: 'Failure', reason, code } }
}
