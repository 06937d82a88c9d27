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
  return options.destination ? pino(settings, options.destination) : pino(settings)
}
