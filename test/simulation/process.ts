import { ConnectionReset, type Trouble, withTrouble } from '../../shared/apiserver/faults.ts'
import type { Clock } from '../../shared/clock.ts'
import { type KubeClient, kubeClient, type Transport } from '../../shared/kube/client.ts'

/** A request as those who check the invariants see it. */
export interface Seen {
  method: string
  /** Without the query. */
  path: string
  body: unknown
  /** What the process last knew at each path, from what it read and from the answers to what it wrote. */
  known: Record<string, unknown>
}

/** Told of each write of a process: before it reaches the server, and (by what it gives) once it was answered. */
export type Witness = (seen: Seen) => Promise<(answer: { status: number; body: unknown }) => Promise<void>>

/**
 * When a process dies: as its batch of that number (from 0) reaches the server. Requests that are under way side by side
 * are one batch; of its n-th write bit n of `survivors` says whether it takes effect all the same. A process does
 * nothing that others see but by its requests, so these are all the moments at which its end makes a difference.
 */
export interface Death {
  batch: number
  survivors: number
}

/** A process of the operator: it can be killed at any of its requests, and paused as by a machine that sleeps. */
export interface Process {
  client: KubeClient
  clock: Clock
  /** How many writes each of its batches had. */
  batches: readonly number[]
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
  /** What happens just before a write reaches the server. */
  beforeWrite?: (method: string, path: string) => Promise<void>
  dies?: Death | undefined
  /** Told when a request reaches the server, and when it is answered. */
  onFlight?: (change: 1 | -1) => void
}

const never = () => new Promise<never>(() => {})
const immediate = () => new Promise<void>((resolve) => setImmediate(resolve))
const isWatch = (url: string) => /[?&]watch=/.test(url)

export function startProcess(options: ProcessOptions): Process {
  const { clock, transport, dies } = options
  const writes: string[] = []
  const known: Record<string, unknown> = {}
  const batches: number[] = []
  let batch: { number: number; closed: Promise<void> } | undefined
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

  /** Waits until all requests that go out side by side have come together; says whether this one takes effect. */
  async function reaches(isWrite: boolean): Promise<boolean> {
    if (!batch) {
      const number = batches.push(0) - 1
      const closed = immediate().then(() => {
        batch = undefined
        if (dies?.batch === number) kill()
      })
      batch = { number, closed }
    }
    const { number, closed } = batch
    const index = batches[number] ?? 0
    if (isWrite) batches[number] = index + 1
    await closed
    return dies?.batch !== number || !isWrite || ((dies.survivors >> index) & 1) === 1
  }

  async function carried(url: string, init: RequestInit): Promise<Response> {
    const method = init.method ?? 'GET'
    const path = new URL(url).pathname
    if (method === 'GET') {
      const response = await transport.fetch(url, init)
      if (!isWatch(url)) known[path] = await bodyOf(response)
      return response
    }
    await options.beforeWrite?.(method, path)
    const body = typeof init.body === 'string' ? JSON.parse(init.body) : undefined
    const witnessed = await options.witness?.({ method, path, body, known: { ...known } })
    // What is under way takes effect though its sender is gone.
    const { signal: _, ...rest } = init
    const response = await transport.fetch(url, rest)
    const answer = await bodyOf(response)
    if (response.status < 300) {
      writes.push(`${method} ${path}`)
      if (method === 'PATCH') known[path] = answer
    }
    await witnessed?.({ status: response.status, body: answer })
    return response
  }

  async function underWay(url: string, init: RequestInit): Promise<Response> {
    options.onFlight?.(1)
    try {
      const takesEffect = isWatch(url) || (await reaches((init.method ?? 'GET') !== 'GET'))
      if (takesEffect) return await carried(url, init)
    } finally {
      options.onFlight?.(-1)
    }
    return never()
  }

  async function fetch(url: string, init: RequestInit): Promise<Response> {
    await passes()
    try {
      const met = options.troubles?.(init.method ?? 'GET', isWatch(url)) ?? []
      const refusal = met.find((trouble) => 'status' in trouble)
      const signal = init.signal ?? new AbortController().signal
      if (refusal && 'status' in refusal) return statusResponse(refusal.status)
      return await withTrouble(clock, met, signal, () => underWay(url, init))
    } catch (error) {
      if (error instanceof ConnectionReset) throw new TypeError('fetch failed', { cause: error })
      throw error
    } finally {
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
    batches,
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

/** The object in an answer, which stays readable; undefined when it holds none. */
async function bodyOf(response: Response): Promise<unknown> {
  if (response.status >= 300) return undefined
  return response.clone().json()
}

function statusResponse(code: number): Response {
  const status = { kind: 'Status', apiVersion: 'v1', status: 'Failure', code, message: 'trouble', reason: '' }
  return Response.json(status, { status: code })
}
