/**
 * An ISO 8601 duration as a Trigger's delivery spells it (`PT10S`, `PT0.5S`, `P1DT2H`), in ms. Like Knative it takes a
 * sign, weeks, a decimal comma, and months and years of the mean length. Throws, naming `what`, for anything else.
 */
export function isoDurationMs(what: string, text: unknown): number {
  const number = '(\\d+(?:[.,]\\d+)?)'
  const date = `(?:${number}Y)?(?:${number}M)?(?:${number}W)?(?:${number}D)?`
  const time = `(?:T(?:${number}H)?(?:${number}M)?(?:${number}S)?)?`
  const form = new RegExp(`^([+-]?)P(?=\\d|T\\d)${date}${time}$`)
  const parts = typeof text === 'string' ? form.exec(text) : null
  if (!parts) throw new Error(`${what}: "${text}" is no ISO 8601 duration (like PT10S)`)
  const [, sign, ...amounts] = parts
  let sumMs = 0
  for (const [index, amount] of amounts.entries())
    sumMs += Number((amount ?? '0').replace(',', '.')) * (isoUnitsMs[index] ?? 0)
  return sign === '-' ? -sumMs : sumMs
}

/** Years, months, weeks, days, hours, minutes, seconds. */
const isoUnitsMs = [31_556_952_000, 2_629_746_000, 604_800_000, 86_400_000, 3_600_000, 60_000, 1000]

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
