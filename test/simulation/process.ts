import { ConnectionReset, type Trouble, withTrouble } from '../../shared/apiserver/faults.ts'
import type { Clock } from '../../shared/clock.ts'
import { type KubeClient, kubeClient, type Transport } from '../../shared/kube/client.ts'

/** A request as those who check the invariants see it. */
export interface Seen {
  method: string
  /** Without the query. */
  path: string
  body: unknown
  /** What the process last read of the object it works on. */
  lastRead: Record<string, unknown>
}

/** Told of each write of a process: before it reaches the server, and (by what it gives) once it was answered. */
export type Witness = (seen: Seen) => Promise<(answer: { status: number; body: unknown }) => Promise<void>>

/** A process of the operator: it can be killed at any of its requests, and paused as by a machine that sleeps. */
export interface Process {
  client: KubeClient
  clock: Clock
  /** How many requests it has begun. */
  requests(): number
  /** What it wrote: `PATCH /apis/…`, when the server took it. */
  writes: string[]
  kill(): void
  pause(): void
  resume(): void
  /** Resolves when it is dead. */
  dead: Promise<void>
  isDead(): boolean
}

export interface ProcessOptions {
  transport: Transport
  clock: Clock
  /** The trouble that meets a request. */
  troubles?: (method: string, isWatch: boolean) => Trouble[]
  witness?: Witness
  /** It dies at the n-th request (from 0), before or after it took effect. */
  dies?: { at: number; effect: 'before' | 'after' } | undefined
  onFlight?: (change: 1 | -1) => void
}

const never = () => new Promise<never>(() => {})

export function startProcess(options: ProcessOptions): Process {
  const { clock, transport, dies } = options
  const writes: string[] = []
  const lastRead: Record<string, unknown> = {}
  let count = 0
  let isDead = false
  let resume: (() => void) | undefined
  let paused: Promise<void> | undefined
  let die = () => {}
  const dead = new Promise<void>((resolve) => {
    die = resolve
  })
  const kill = () => {
    isDead = true
    die()
  }
  /** Nothing goes on in a process that is dead, and nothing for now in one that is paused. */
  const passes = async () => {
    while (paused && !isDead) await paused
    if (isDead) await never()
  }
  const ownClock: Clock = {
    ...clock,
    async sleep(ms, signal) {
      await clock.sleep(ms, signal)
      await passes()
      signal?.throwIfAborted()
    },
  }

  async function carried(url: string, init: RequestInit): Promise<Response> {
    const method = init.method ?? 'GET'
    const path = new URL(url).pathname
    if (method === 'GET') {
      const response = await transport.fetch(url, init)
      if (!/[?&]watch=/.test(url) && response.status === 200) lastRead[path] = await response.clone().json()
      return response
    }
    const body = typeof init.body === 'string' ? JSON.parse(init.body) : undefined
    const witnessed = await options.witness?.({ method, path, body, lastRead: { ...lastRead } })
    // What is under way takes effect though its sender is gone.
    const { signal: _, ...rest } = init
    const response = await transport.fetch(url, rest)
    const answer = await response
      .clone()
      .json()
      .catch(() => undefined)
    if (response.status < 300) writes.push(`${method} ${path}`)
    await witnessed?.({ status: response.status, body: answer })
    return response
  }

  async function fetch(url: string, init: RequestInit): Promise<Response> {
    await passes()
    const number = count++
    const isWatch = /[?&]watch=/.test(url)
    if (dies?.at === number && dies.effect === 'before') kill()
    await passes()
    if (!isWatch) options.onFlight?.(1)
    try {
      const met = options.troubles?.(init.method ?? 'GET', isWatch) ?? []
      const refusal = met.find((trouble) => 'status' in trouble)
      const signal = init.signal ?? new AbortController().signal
      if (refusal && 'status' in refusal) return statusResponse(refusal.status)
      return await withTrouble(clock, met, signal, () => carried(url, init))
    } catch (error) {
      if (error instanceof ConnectionReset) throw new TypeError('fetch failed', { cause: error })
      throw error
    } finally {
      if (!isWatch) options.onFlight?.(-1)
      if (dies?.at === number && dies.effect === 'after') kill()
      await passes()
    }
  }

  return {
    client: kubeClient({
      transport: { baseUrl: transport.baseUrl, fetch },
      clock: ownClock,
      userAgent: 'sim',
    }),
    clock: ownClock,
    requests: () => count,
    writes,
    kill,
    pause() {
      paused ??= new Promise((resolve) => {
        resume = resolve
      })
    },
    resume() {
      paused = undefined
      resume?.()
    },
    dead,
    isDead: () => isDead,
  }
}

function statusResponse(code: number): Response {
  const status = { kind: 'Status', apiVersion: 'v1', status: 'Failure', code, message: 'trouble', reason: '' }
  return Response.json(status, { status: code })
}
