/**
 * An ISO 8601 duration as a Trigger's delivery spells it (`PT10S`, `PT0.5S`, `P1DT2H`), in ms. Months and years have
 * no fixed length and are refused. Throws, naming `what`, for anything else.
 */
export function isoDurationMs(what: string, text: unknown): number {
  const parts =
    typeof text === 'string'
      ? /^P(?=\d|T\d)(?:(\d+)D)?(?:T(?:(\d+(?:\.\d+)?)H)?(?:(\d+(?:\.\d+)?)M)?(?:(\d+(?:\.\d+)?)S)?)?$/.exec(
          text,
        )
      : null
  if (!parts) throw new Error(`${what}: "${text}" is no ISO 8601 duration (like PT10S)`)
  const [days, hours, minutes, seconds] = parts.slice(1).map((part) => Number(part ?? 0))
  return (((days ?? 0) * 24 + (hours ?? 0)) * 60 + (minutes ?? 0)) * 60_000 + (seconds ?? 0) * 1000
}

const goUnitsMs: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 }

/**
 * A duration as Go and the annotations of Knative Serving spell it (`30s`, `1m30s`), in ms. Throws, naming `what`, for
 * anything else.
 */
export function goDurationMs(what: string, text: string): number {
  if (text === '0') return 0
  if (!/^(\d+(\.\d+)?(ms|s|m|h))+$/.test(text))
    throw new Error(`${what}: "${text}" is no duration (like 30s)`)
  let sumMs = 0
  for (const [, number, unit] of text.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h)/g))
    sumMs += Number(number) * (goUnitsMs[unit ?? ''] ?? 0)
  return sumMs
}
