import { Hono } from 'hono'
import type { Clock } from '../../clock.ts'
import { MalformedEvent } from './malformed-event.ts'
import { readEvent } from './read-event.ts'
import { traceHeaders } from './trace-context.ts'
import { type WireEvent, withAttributes } from './wire-event.ts'

export interface IngressOptions {
  /** `namespace/name` of each Broker. */
  brokers: string[]
  clock: Clock
  report(report: { kind: 'hop limit'; broker: string; event: WireEvent }): void
  /** Takes an event into a Broker, stamped with its time of arrival and the hops it has left. */
  accept(broker: string, event: WireEvent, headers: Headers): void
  /** Whether there is no room for more. */
  full(): boolean
}

/** How often an event may come back as a reply: the default of Knative's ingress. */
const hopsMax = 255
/** The extension that holds how often what comes of an event may still come back. */
export const hopsAttribute = 'knativebrokerttl'
/** Longest event taken, in bytes. Every broker must carry 64 KiB. */
const eventLengthMax = 8 * 1024 * 1024
/** Headers that go on with an event, besides the event's own and the trace (knative/eventing, pkg/utils/headers.go). */
const passedOn = /^(x-request-id|retry-after|knative-.*|x-b3-.*)$/

const allow = { allow: 'POST, OPTIONS', 'content-length': '0' }

/** The HTTP side, with the answers of Knative's ingress (pkg/broker/ingress), plus a reason in the body of a refusal. */
export function ingress(options: IngressOptions): Hono {
  const app = new Hono()
  app.on('OPTIONS', '*', (c) =>
    c.body(null, 200, { ...allow, 'webhook-allowed-origin': '*', 'webhook-allowed-rate': '*' }),
  )
  app.post('*', (c) => take(c.req.raw, options))
  app.all('*', (c) => c.body(null, 405, allow))
  return app
}

/** Which of a request's or answer's headers go on with its event: those that are passed, and the trace. */
export function handedOn(headers: Headers): {
  passed: Record<string, string>
  trace: Record<string, string>
} {
  const passed = Object.fromEntries([...headers].filter(([name]) => passedOn.test(name)))
  return { passed, trace: traceHeaders(headers) }
}

async function take(request: Request, options: IngressOptions): Promise<Response> {
  const name = brokerOf(request.url)
  if (name === undefined) return refusal(404, 'No broker named')
  if (name === '') return refusal(400, 'The path must be /NAMESPACE/BROKER')
  const body = await readBody(request)
  if (body === 'too long') return refusal(413, `An event may have ${eventLengthMax} bytes`)
  if (body === 'cut off') return refusal(400, 'The body was cut off')
  let event: WireEvent
  try {
    event = readEvent(request.headers, body)
  } catch (error) {
    if (!(error instanceof MalformedEvent)) throw error
    return refusal(error.status, error.message)
  }
  if (!options.brokers.includes(name)) return refusal(404, `No Broker ${name}`)
  const hops = hopsLeft(event)
  if (hops <= 0) {
    options.report({ kind: 'hop limit', broker: name, event })
    return refusal(400, `The event came back as a reply ${hopsMax} times`)
  }
  if (options.full()) return refusal(503, 'Too many events are under way')
  const stamp = { knativearrivaltime: options.clock.now().toISOString(), [hopsAttribute]: String(hops) }
  options.accept(name, withAttributes(event, stamp), request.headers)
  return new Response(null, { status: 202, headers: allow })
}

function refusal(status: number, message: string): Response {
  return new Response(message, { status, headers: { allow: allow.allow } })
}

/** `namespace/name` as the URL has it, escapes and query included; undefined for none, '' for another path. */
function brokerOf(url: string): string | undefined {
  const { pathname, search } = new URL(url)
  const target = pathname + search
  if (target === '/') return undefined
  const [start, namespace, name, ...more] = target.replace(/\/$/, '').split('/')
  return start === '' && name !== undefined && more.length === 0 ? `${namespace}/${name}` : ''
}

/** A new event gets the whole number of hops; a reply has one less than what it answers. */
function hopsLeft(event: WireEvent): number {
  const text = event.attributes[hopsAttribute] ?? ''
  const hops = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text) ? Math.trunc(Number(text)) : Number.NaN
  return Math.abs(hops) < 2 ** 31 ? Math.max(0, hops - 1) : hopsMax
}

async function readBody(request: Request): Promise<Uint8Array<ArrayBuffer> | 'too long' | 'cut off'> {
  const chunks: Uint8Array[] = []
  let length = 0
  try {
    for await (const chunk of request.body ?? []) {
      length += chunk.length
      if (length > eventLengthMax) return 'too long'
      chunks.push(chunk)
    }
  } catch {
    return 'cut off'
  }
  return new Uint8Array(Buffer.concat(chunks))
}
