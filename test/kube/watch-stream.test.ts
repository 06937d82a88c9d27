import { describe, expect, it } from 'vitest'
import { readWatch, type WatchEvent } from '../../shared/kube/watch-stream.ts'
import { settle, virtualClock } from '../support/clock.ts'

/** A watch whose bytes the test writes. */
function watch(options: { idleTimeoutMs?: number; status?: number; answers?: boolean } = {}) {
  const clock = virtualClock()
  const stop = new AbortController()
  const seen: WatchEvent[] = []
  let bytes: ReadableStreamDefaultController<Uint8Array> | undefined
  let cancelled = false
  let isOpen = false
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => {
      bytes = controller
    },
    cancel: () => {
      cancelled = true
    },
  })
  const events = readWatch({
    what: 'WATCH /things',
    clock,
    idleTimeoutMs: options.idleTimeoutMs,
    signal: stop.signal,
    onOpen: () => {
      isOpen = true
    },
    // It ignores the signal, as a wire may.
    open: async () =>
      options.answers === false
        ? new Promise(() => {})
        : new Response(body, { status: options.status ?? 200 }),
  })
  const outcome = (async () => {
    for await (const event of events) seen.push(event)
    return 'ended'
  })().catch((error: unknown) => error)
  return {
    clock,
    stop,
    seen,
    outcome,
    write: async (part: string | number) => {
      bytes?.enqueue(typeof part === 'number' ? Uint8Array.of(part) : new TextEncoder().encode(part))
      await settle()
    },
    end: () => bytes?.close(),
    isOpen: () => isOpen,
    isCancelled: () => cancelled,
  }
}

const line = (name: string) => `${JSON.stringify({ type: 'ADDED', object: { metadata: { name } } })}\n`
const names = (events: WatchEvent[]) => events.map((event) => event.object.metadata?.name)

describe('a watch', () => {
  it('gives an object per line, wherever the chunks are cut, also inside a character', async () => {
    const { write, seen, end, outcome, isOpen } = watch()
    const bytes = new TextEncoder().encode(line('größe') + line('b'))
    for (const byte of bytes) await write(byte)
    await write(line('c').slice(0, 10))
    end()
    expect(await outcome).toBe('ended')
    expect(names(seen)).toEqual(['größe', 'b'])
    expect(isOpen()).toBe(true)
  })

  it('is dead when nothing came for so long, even where that is shorter than the time it had to open', async () => {
    const { clock, write, seen, outcome } = watch({ idleTimeoutMs: 1_000 })
    await clock.advance(900)
    await write(line('a'))
    await clock.advance(900)
    await write(line('b'))
    await clock.advance(999)
    expect(names(seen)).toEqual(['a', 'b'])
    await clock.advance(1)
    expect(await outcome).toMatchObject({ code: 0, reason: 'Timeout' })
    expect(clock.sleepers()).toBe(0)
  })

  it('is dead when it is not answered within 15 seconds', async () => {
    const { clock, outcome, isOpen } = watch({ answers: false })
    await clock.advance(15_000)
    expect(await outcome).toMatchObject({ code: 0, reason: 'Timeout' })
    expect(isOpen()).toBe(false)
  })

  it("ends with the caller's reason when it is stopped, and lets the connection go", async () => {
    const { stop, write, outcome, isCancelled } = watch()
    await write(line('a'))
    stop.abort(new Error('stopped'))
    expect(await outcome).toEqual(new Error('stopped'))
    await settle()
    expect(isCancelled()).toBe(true)
  })

  it('throws what an ERROR event says, and what is no JSON', async () => {
    const gone = watch()
    await gone.write('{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}}\n')
    expect(await gone.outcome).toMatchObject({ code: 410, reason: 'Expired' })
    const broken = watch()
    await broken.write('{"type":\n')
    expect(await broken.outcome).toMatchObject({ message: 'WATCH /things: a line of the stream is not JSON' })
  })
})
