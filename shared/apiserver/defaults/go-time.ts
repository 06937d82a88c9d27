/** Times as the API's own types read and write them. */

/** `time`: RFC 3339, stored with whole seconds. `microTime`: RFC 3339 with exactly six fraction digits. */
export type TimeType = 'time' | 'microTime'

const layouts = {
  time: '2006-01-02T15:04:05Z07:00',
  microTime: '2006-01-02T15:04:05.000000Z07:00',
} as const

const elements: [layout: string, pattern: RegExp][] = [
  ['2006', /^\d{4}/],
  ['-', /^-/],
  ['01', /^\d\d/],
  ['-', /^-/],
  ['02', /^\d\d/],
  ['T', /^T/],
  ['15', /^\d\d/],
  [':', /^:/],
  ['04', /^\d\d/],
  [':', /^:/],
  ['05', /^\d\d/],
]
const zone: [string, RegExp] = ['Z07:00', /^(?:Z|[+-]\d\d:\d\d)/]

/** The canonical spelling in UTC, or the words with which the server refuses the text. */
export function canonicalTime(text: string, type: TimeType): { time: string } | { error: string } {
  const quoted = JSON.stringify(text)
  const steps = [...elements, ...(type === 'microTime' ? [microseconds] : []), zone]
  let rest = text
  for (const [layout, pattern] of steps) {
    const found = pattern.exec(rest)?.[0]
    if (found === undefined)
      return {
        error: `parsing time ${quoted} as ${JSON.stringify(layouts[type])}: cannot parse ${JSON.stringify(rest)} as "${layout}"`,
      }
    rest = rest.slice(found.length)
    if (layout === '05' && type === 'time') rest = rest.replace(/^[.,]\d+/, '')
  }
  if (rest !== '') return { error: `parsing time ${quoted}: extra text: ${JSON.stringify(rest)}` }
  const wrong = outOfRange(text)
  if (wrong) return { error: `parsing time ${quoted}: ${wrong} out of range` }
  return { time: inUtc(text, type) }
}

const microseconds: [string, RegExp] = ['.000000', /^[.,]\d{6}/]

function outOfRange(text: string): string | undefined {
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = (text.match(/\d+/g) ?? []).map(
    Number,
  )
  if (month < 1 || month > 12) return 'month'
  if (hour > 23) return 'hour'
  if (minute > 59) return 'minute'
  if (second > 59) return 'second'
  return day < 1 || day > new Date(Date.UTC(year, month, 0)).getUTCDate() ? 'day' : undefined
}

function inUtc(text: string, type: TimeType): string {
  const seconds = new Date(`${text.slice(0, 19)}${/(?:Z|[+-]\d\d:\d\d)$/.exec(text)?.[0] ?? 'Z'}`)
  const whole = seconds.toISOString().slice(0, 19)
  return type === 'time' ? `${whole}Z` : `${whole}.${text.slice(20, 26)}Z`
}
