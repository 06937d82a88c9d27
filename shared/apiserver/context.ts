import type { Clock } from '../clock.ts'
import type { StoredObject } from '../kinds/object.ts'
import type { Registry } from './resources.ts'
import type { Store } from './store.ts'

/** All that the parts of the server share. */
export interface ServerContext {
  store: Store
  registry: Registry
  clock: Clock
  /**
   * New custom resources whose status is but its default: the real server has not stored that yet, so the next write of the
   * object counts as one even when it changes nothing.
   */
  unwritten: WeakSet<StoredObject>
}

/** A moment as the API stamps it: RFC 3339 in whole seconds. */
export function stampOf(date: Date): string {
  return `${date.toISOString().slice(0, 19)}Z`
}

/** A random (version 4) UUID from the clock's chance, so that a seeded clock gives the same ones again. */
export function uidFrom(clock: Clock): string {
  const bytes = Buffer.from(Array.from({ length: 16 }, () => Math.floor(clock.random() * 256)))
  bytes[6] = ((bytes[6] as number) & 0x0f) | 0x40
  bytes[8] = ((bytes[8] as number) & 0x3f) | 0x80
  const hex = bytes.toString('hex')
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-')
}

/** The letters of a generated name: no vowels, so that no word comes out. */
const suffixLetters = 'bcdfghjklmnpqrstvwxz2456789'
const suffixLength = 5
const generatedBaseLengthMax = 58

/** `generateName` with five random letters. */
export function generatedName(base: string, clock: Clock): string {
  const letters = Array.from(
    { length: suffixLength },
    () => suffixLetters[Math.floor(clock.random() * suffixLetters.length)],
  )
  return base.slice(0, generatedBaseLengthMax) + letters.join('')
}
