/**
 * An RFC 3339 time as Knative hands it on: in UTC, nine fraction digits at most and no zero at their end. The year 1
 * (Go's zero time) counts as no time and gives ''; undefined: it is no time. Like Go, a comma may stand for the point
 * and an offset may have 24 hours; a leap second, lower-case letters and the 31st of February are refused.
 */
export function utcTime(text: string): string | undefined {
  const parts = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:[.,](\d+))?(?:Z|([+-])(\d\d):(\d\d))$/.exec(
    text,
  )
  if (!parts) return undefined
  const [year, month, day, hour, minute, second] = parts.slice(1, 7).map(Number) as SixNumbers
  const [fraction = '', sign = '+', offsetHours = '0', offsetMinutes = '0'] = parts.slice(7)
  if (month < 1 || month > 12 || day < 1 || day > daysOf(year, month)) return undefined
  if (hour > 23 || minute > 59 || second > 59) return undefined
  if (Number(offsetHours) > 24 || Number(offsetMinutes) > 60) return undefined
  const offset = (Number(offsetHours) * 60 + Number(offsetMinutes)) * (sign === '-' ? -1 : 1)
  const date = new Date(0)
  date.setUTCFullYear(year, month - 1, day)
  date.setUTCHours(hour, minute - offset, second)
  const whole = date.toISOString().replace(/\.000Z$/, '')
  const digits = fraction.slice(0, 9).replace(/0+$/, '')
  if (whole === '0001-01-01T00:00:00' && digits === '') return ''
  return `${whole}${digits && `.${digits}`}Z`
}

type SixNumbers = [number, number, number, number, number, number]

function daysOf(year: number, month: number): number {
  const date = new Date(0)
  date.setUTCFullYear(year, month, 0)
  return date.getUTCDate()
}
