import { isObject } from '../kinds/object.ts'
import { attributeError, type CloudEvent, isAttributeName, UnreadableEvent } from './event.ts'
import { readEvent } from './wire.ts'
import { structuredOf } from './write.ts'

/**
 * A tape holds the CloudEvents that went through a door, one a line, in structured mode: to see what happened, and to
 * have it happen again (see replay.ts). What could be a secret is taken out before it is written, not after.
 */

/** A tape that is not one: which line, and what is wrong with it. */
export class UnreadableTape extends Error {
  override readonly name = 'UnreadableTape'
  /** From 1. */
  readonly line: number

  constructor(line: number, problem: string, cause?: unknown) {
    super(`Line ${line} of the tape: ${problem}`, { cause })
    this.line = line
  }
}

/** What stands where something was taken out. */
export const redacted = 'redacted'

/** One event as its line of a tape, without what could be a secret. Throws for an event that no tape can give back. */
export function tapeLine(event: CloudEvent): string {
  const line = structuredOf(withoutSecrets(event))
  eventOfLine(line)
  return `${line}\n`
}

/**
 * Reads a whole tape. Strict: throws an {@link UnreadableTape} for a line that is no event, an attribute that a door
 * would overlook, an empty line, and a last line without its end, which a process was killed at writing.
 */
export function readTape(text: string): CloudEvent[] {
  if (text === '') return []
  const lines = text.split('\n')
  if (lines.pop() !== '') throw new UnreadableTape(lines.length + 1, 'it was cut off')
  return lines.map((line, index) => {
    try {
      return eventOfLine(line)
    } catch (error) {
      if (!(error instanceof UnreadableEvent)) throw error
      throw new UnreadableTape(index + 1, error.message, error)
    }
  })
}

function eventOfLine(line: string): CloudEvent {
  const headers: [string, string][] = [['content-type', 'application/cloudevents+json']]
  const event = readEvent({ headers, body: Buffer.from(line) })
  for (const [name, value] of Object.entries(JSON.parse(line) as Record<string, unknown>)) {
    if (name === 'data' || name === 'data_base64') continue
    if (!isAttributeName(name)) throw attributeError(JSON.stringify(name), 'has a name that none may have')
    if (typeof value !== 'string') throw attributeError(name, 'is not a string')
  }
  return event
}

/** Names whose values nobody but their owner may read. */
const secretName = /^(?:authorization|token|password|passwd|apikey|accesskey|privatekey|clientsecret)$/i
/** Holds the object as its owner wrote it, secrets included, in one text. */
const lastApplied = 'kubectl.kubernetes.io/last-applied-configuration'

function withoutSecrets(event: CloudEvent): CloudEvent {
  const extensions = Object.fromEntries(
    Object.entries(event.extensions).map(([name, value]) => [name, secretName.test(name) ? redacted : value]),
  )
  if (event.data === undefined) return { ...event, extensions }
  // Nobody can say what stands in bytes.
  const data = event.data instanceof Uint8Array ? Buffer.from(redacted) : cleaned(event.data)
  return { ...event, extensions, data }
}

/** A copy in which values of variables, the content of a Secret, and what is named like a secret are replaced. */
function cleaned(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(cleaned)
  if (!isObject(value)) return value
  const isSecret = value.kind === 'Secret'
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => {
      if (secretName.test(name) || name === lastApplied) return [name, redacted]
      if (isSecret && (name === 'data' || name === 'stringData')) return [name, hidden(inner)]
      return [name, name === 'env' ? variables(inner) : cleaned(inner)]
    }),
  )
}

/** Both forms of an environment: a list of names and values, and a map from name to value. */
function variables(env: unknown): unknown {
  if (!Array.isArray(env)) return hidden(env)
  return env.map((one) => (isObject(one) && 'value' in one ? { ...one, value: redacted } : one))
}

function hidden(value: unknown): unknown {
  if (!isObject(value)) return value === undefined || value === null ? value : redacted
  return Object.fromEntries(Object.keys(value).map((name) => [name, redacted]))
}
