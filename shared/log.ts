import { writeSync } from 'node:fs'
import { type Logger, pino } from 'pino'

export type { Logger }

/** Field names under which a secret could stand; pino writes `[redacted]` in their place. */
const secretFields = [
  'token',
  'authorization',
  'password',
  'data.token',
  'headers.authorization',
  '*.token',
  '*.authorization',
]

/**
 * A logger that writes one JSON object per line to standard output.
 *
 * `name` is the process ("watcher", "mutation"); `level` one of pino's (`trace` … `fatal`, `silent`).
 * Messages are constant and data goes in fields: `log.warn({ ref, reason }, 'apply refused')`.
 */
export function createLog(options: {
  name: string
  level?: string
  destination?: { write(line: string): void }
}): Logger {
  const settings = {
    name: options.name,
    level: options.level ?? 'info',
    redact: { paths: secretFields, censor: '[redacted]' },
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
  }
  return pino(settings, options.destination ?? standardOutput())
}

const standardOutputFd = 1

/**
 * Standard output, whole lines at once. When the reader is gone or does not read, lines are lost, and nothing else
 * happens: pino's own destination then waits for ever, at the latest when the process wants to end.
 */
function standardOutput(): { write(line: string): void } {
  let isCut = false
  return {
    write(line) {
      const bytes = Buffer.from(isCut ? `\n${line}` : line)
      let written = 0
      try {
        while (written < bytes.length) written += writeSync(standardOutputFd, bytes, written)
        isCut = false
      } catch {
        isCut ||= written > 0
      }
    },
  }
}
