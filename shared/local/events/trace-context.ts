/** The W3C headers of a trace that Knative's processes hand on, each as their propagator writes it. */
export function traceHeaders(headers: Headers): Record<string, string> {
  const found: Record<string, string> = {}
  const traceparent = traceparentOf(headers.get('traceparent') ?? '')
  if (traceparent !== undefined) {
    found.traceparent = traceparent
    const tracestate = tracestateOf(headers.get('tracestate') ?? '')
    if (tracestate !== '') found.tracestate = tracestate
  }
  const baggage = baggageOf(headers.get('baggage') ?? '')
  if (baggage !== '') found.baggage = baggage
  return found
}

const sampledAndRandom = 3

/** Always in version 00; undefined for what is none, and then the trace ends here. */
function traceparentOf(text: string): string | undefined {
  const parts = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/.exec(text)
  if (!parts) return undefined
  const [, version = '', trace = '', span = '', flags = '', more] = parts
  const bits = Number.parseInt(flags, 16)
  if (version === 'ff' || /^0+$/.test(trace) || /^0+$/.test(span)) return undefined
  if (version === '00' && (more !== undefined || bits > sampledAndRandom)) return undefined
  return `00-${trace}-${span}-${(bits & sampledAndRandom).toString(16).padStart(2, '0')}`
}

/** All of it or nothing. */
function tracestateOf(text: string): string {
  const members = text
    .split(',')
    .map((member) => member.trim())
    .filter(Boolean)
  const valid = members.every((member) =>
    /^[a-z0-9][a-z0-9_*/@-]{0,255}=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,256}$/.test(member),
  )
  return valid ? members.join(',') : ''
}

/** Without the members that are none. */
function baggageOf(text: string): string {
  const members = text.split(',').map((member) => member.trim())
  return members.filter((member) => /^[\w!#$%&'*+.^`|~-]+\s*=[^\s",\\]*$/.test(member)).join(',')
}
