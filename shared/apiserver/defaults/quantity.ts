/**
 * Quantities (`500m`, `1Gi`, `1e3`) as the API stores them. In lists of resources (requests, limits) they are rounded up
 * to thousandths.
 */

type Format = 'decimal' | 'binary' | 'exponent'

/** A value in billionths, which is as fine as the API keeps it, and how it was written. */
interface Quantity {
  nanos: bigint
  format: Format
}

const decimalSuffixes = ['n', 'u', 'm', '', 'k', 'M', 'G', 'T', 'P', 'E']
const binarySuffixes = ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei']
const nano = 1_000_000_000n
const milli = 1_000_000n
const exponentMax = 1000
const spelling = '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'

/** Why a text is no quantity, in the server's words; undefined when it is one. */
export function quantityError(text: string): string | undefined {
  if (parsed(text)) return undefined
  const hasForm = /^[+-]?(?:\d+\.?\d*|\.\d+)[eEinumkKMGTP]*[-+]?\d*$/.test(text)
  return hasForm
    ? "unable to parse quantity's suffix"
    : `quantities must match the regular expression '${spelling}'`
}

/** The spelling kept in a list of resources; undefined when the text is no quantity. */
export function resourceQuantity(text: string): string | undefined {
  const quantity = parsed(text)
  if (!quantity || isSettled(text)) return quantity && text
  return spelled({ ...quantity, nanos: dividedUp(quantity.nanos, milli) * milli })
}

/** The spelling kept elsewhere; undefined when the text is no quantity. */
export function plainQuantity(text: string): string | undefined {
  const quantity = parsed(text)
  return quantity && (isSettled(text) ? text : spelled(quantity))
}

/** No fraction, the largest suffix that needs none, binary suffixes only for whole numbers from 1Ki on. */
function spelled({ nanos, format }: Quantity): string {
  if (nanos === 0n) return '0'
  const isBinary = format === 'binary' && nanos % nano === 0n && abs(nanos) >= 1024n * nano
  return isBinary ? binary(nanos / nano) : decimal(nanos, format === 'exponent')
}

/** Whether the number needs no shifting to be canonical; the server then keeps the text, odd as it may be (`+5`). */
function isSettled(text: string): boolean {
  const [, whole = '', fraction = '', suffix = ''] = /^[+-]?0*(\d*)\.?(\d*)(.*)$/.exec(text) ?? []
  const value = BigInt(whole + fraction)
  const power = binarySuffixes.indexOf(suffix)
  if (power > 0) return fraction === '' && value % 1024n !== 0n && value < 8n * 1024n ** BigInt(6 - power)
  const exponent = /^[eE]./.test(suffix) ? Number(suffix.slice(1)) : (decimalSuffixes.indexOf(suffix) - 3) * 3
  const scale = exponent - fraction.length
  return whole.length + fraction.length <= 18 && value % 1000n !== 0n && scale % 3 === 0 && scale >= -3
}

/** How two quantities compare: negative, 0 or positive. Both must be quantities. */
export function compareQuantities(a: string, b: string): number {
  const [left, right] = [parsed(a)?.nanos ?? 0n, parsed(b)?.nanos ?? 0n]
  return left < right ? -1 : left > right ? 1 : 0
}

function parsed(text: string): Quantity | undefined {
  const match = /^([+-]?)(\d*)(?:\.(\d*))?(?:([eE][+-]?\d+)|([numkMGTPE]|[KMGTPE]i)?)$/.exec(text)
  const [, sign = '', whole = '', fraction = '', exponent, suffix = ''] = match ?? []
  if (!match || whole + fraction === '') return undefined
  const digits = BigInt(whole + fraction) * (sign === '-' ? -1n : 1n)
  const factor = factorOf(exponent, suffix)
  if (!factor) return undefined
  const exact = digits * nano * factor.times
  const nanos = dividedUp(exact, 10n ** BigInt(fraction.length) * factor.over)
  return { nanos, format: factor.format }
}

function factorOf(exponent: string | undefined, suffix: string) {
  if (exponent !== undefined) return powerOfTen(Number(exponent.slice(1)), 'exponent')
  const power = binarySuffixes.indexOf(suffix)
  if (power > 0) return { times: 1024n ** BigInt(power), over: 1n, format: 'binary' as const }
  return powerOfTen((decimalSuffixes.indexOf(suffix) - 3) * 3, 'decimal')
}

function powerOfTen(power: number, format: Format) {
  if (Math.abs(power) > exponentMax) return undefined
  const factor = 10n ** BigInt(Math.abs(power))
  return power < 0 ? { times: 1n, over: factor, format } : { times: factor, over: 1n, format }
}

const int64Max = 2n ** 63n - 1n

function binary(value: bigint): string {
  let [rest, power] = [value > int64Max ? int64Max : value, 0]
  while (power < binarySuffixes.length - 1 && rest % 1024n === 0n) {
    rest /= 1024n
    power++
  }
  return `${rest}${binarySuffixes[power]}`
}

function decimal(nanos: bigint, withExponent: boolean): string {
  let [rest, power] = [nanos, 0]
  while (power < decimalSuffixes.length - 1 && rest % 1000n === 0n) {
    rest /= 1000n
    power++
  }
  const exponent = (power - 3) * 3
  const suffix = withExponent ? (exponent === 0 ? '' : `e${exponent}`) : decimalSuffixes[power]
  return `${rest}${suffix}`
}

const abs = (value: bigint): bigint => (value < 0n ? -value : value)

/** Division that rounds away from zero. */
function dividedUp(value: bigint, by: bigint): bigint {
  const quotient = value / by
  return value % by === 0n ? quotient : quotient + (value < 0n ? -1n : 1n)
}
