import type { Clock } from '../clock.ts'

/** Values that fall due at their moments, by one sleeper however many there are. */
export interface Alarm<T> {
  /** `onDue(value)` is called at `atMs` of the monotonic clock, or soon when that has passed. */
  set(atMs: number, value: T): void
  /** How many wait. */
  size(): number
}

/** Makes an {@link Alarm}; it ends when `signal` is aborted. */
export function alarm<T>(clock: Clock, signal: AbortSignal, onDue: (value: T) => void): Alarm<T> {
  /** A binary heap: no entry is due before its parent, the one at half its place. */
  const heap: { atMs: number; value: T }[] = []
  let wakesAtMs = Number.POSITIVE_INFINITY
  let sleeper = new AbortController()
  signal.addEventListener('abort', () => sleeper.abort(), { once: true })

  function arm(): void {
    const first = heap[0]
    if (!first || signal.aborted || first.atMs >= wakesAtMs) return
    sleeper.abort()
    sleeper = new AbortController()
    wakesAtMs = first.atMs
    clock.sleep(Math.max(0, first.atMs - clock.monotonicMs()), sleeper.signal).then(onWake, () => {})
  }

  function onWake(): void {
    wakesAtMs = Number.POSITIVE_INFINITY
    const nowMs = clock.monotonicMs()
    for (let first = heap[0]; first && first.atMs <= nowMs; first = heap[0]) {
      removeFirst(heap)
      onDue(first.value)
    }
    arm()
  }

  return {
    set(atMs, value) {
      heap.push({ atMs, value })
      rise(heap, heap.length - 1)
      arm()
    },
    size: () => heap.length,
  }
}

type Heap = { atMs: number }[]

const atOf = (heap: Heap, place: number) => heap[place]?.atMs ?? Number.POSITIVE_INFINITY

function swap(heap: Heap, a: number, b: number): void {
  const [one, other] = [heap[a], heap[b]]
  if (!one || !other) return
  heap[a] = other
  heap[b] = one
}

function rise(heap: Heap, from: number): void {
  for (let place = from; place > 0; ) {
    const parent = (place - 1) >> 1
    if (atOf(heap, parent) <= atOf(heap, place)) return
    swap(heap, parent, place)
    place = parent
  }
}

function removeFirst(heap: Heap): void {
  swap(heap, 0, heap.length - 1)
  heap.pop()
  for (let place = 0; ; ) {
    const left = 2 * place + 1
    const smaller = atOf(heap, left + 1) < atOf(heap, left) ? left + 1 : left
    if (atOf(heap, place) <= atOf(heap, smaller)) return
    swap(heap, place, smaller)
    place = smaller
  }
}
