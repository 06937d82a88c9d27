import { Hono } from 'hono'
import type { Clock } from '../clock.ts'
import { type Delivery, deadLetter, type Failure } from './delivery.ts'
import { type Dispatch, dispatch, type Outcome, type Post } from './dispatch.ts'
import type { Filter } from './filters.ts'
import { gate } from './gate.ts'
import { MalformedEvent, readEvent, type WireEvent, withAttributes } from './wire-event.ts'

/** A Trigger with its references resolved. */
export interface Subscription {
  namespace: string
  name: string
  broker: string
  accepts: Filter
  subscriberUrl: string
  delivery: Delivery
  /** Where events go that were given up; undefined: nowhere. */
  deadLetterUrl: string | undefined
}

/** What happened to an event, for those who watch and count. */
export type BrokerReport = { event: WireEvent } & (
  | { kind: 'accepted'; broker: string; subscriptions: string[] }
  | { kind: 'delivered'; trigger: string; tries: number; status: number }
  | { kind: 'retrying'; trigger: string; tries: number; reason: string; waitMs: number }
  | { kind: 'dead letter'; trigger: string; tries: number; reason: string }
  | { kind: 'lost'; trigger: string; reason: string }
  | { kind: 'hop limit'; broker: string }
)

export interface BrokerOptions {
  /** `namespace/name` of each Broker. */
  brokers: string[]
  subscriptions: Subscription[]
  /** The URL of a Broker's ingress, to which replies go. */
  brokerUrl(namespace: string, name: string): string
  post: Post
  clock: Clock
  report(report: BrokerReport): void
}

export interface Broker {
  /** `POST /NAMESPACE/NAME` takes an event, as Knative's ingress does. */
  app: Hono
  /** How many deliveries are not done yet. */
  pending(): number
  /** Resolves once everything accepted so far, and all that came of it, is delivered or given up. */
  settled(): Promise<void>
  /** Ends; gives how many deliveries were dropped by that. */
  stop(): Promise<number>
}

/** How often an event may come back as a reply: the default of Knative's ingress. */
const hopsMax = 255
const hopsAttribute = 'knativebrokerttl'
/** Longest event taken, in bytes. Every broker must carry 64 KiB. */
const eventLengthMax = 8 * 1024 * 1024
/** Deliveries kept at once, all Triggers together; past it the ingress answers 503 and the sender tries again. */
const pendingMax = 100_000
/** Tries under way at once per Trigger. */
const triesAtOnceMax = 100
/** Headers that go on with an event, besides the event's own (knative/eventing, pkg/utils/headers.go; W3C trace). */
const passedOn = /^(x-request-id|knative-.*|x-b3-.*|traceparent|tracestate)$/

/**
 * An in-process stand-in for Knative's channel-based Broker. An event is answered 202 when it has been accepted, and
 * kept in memory until each Trigger that wants it has delivered it or sent it to its dead letter sink. Nothing is kept
 * over a restart: the watcher's resync at start repairs that.
 */
export function broker(options: BrokerOptions): Broker {
  const stopping = new AbortController()
  const under = new Set<Promise<void>>()
  const gates = new Map(options.subscriptions.map((subscription) => [subscription, gate(triesAtOnceMax)]))

  function accept(name: string, event: WireEvent, headers: Record<string, string>): void {
    const [namespace = '', brokerName = ''] = name.split('/')
    const offered = withAttributes(event, { [hopsAttribute]: undefined })
    const wanted = options.subscriptions.filter(
      (one) => one.namespace === namespace && one.broker === brokerName && one.accepts(offered.attributes),
    )
    options.report({
      kind: 'accepted',
      broker: name,
      event: offered,
      subscriptions: wanted.map((one) => one.name),
    })
    for (const subscription of wanted) {
      const delivery = deliver({ subscription, event: offered, hops: hopsOf(event), headers })
        .catch(() => {})
        .finally(() => under.delete(delivery))
      under.add(delivery)
    }
  }

  async function send(parcel: Parcel, url: string, event: WireEvent, prefer: boolean): Promise<Outcome> {
    const { subscription, headers } = parcel
    const what: Dispatch = {
      url,
      event,
      headers: { ...headers, 'kn-namespace': subscription.namespace, ...(prefer && { prefer: 'reply' }) },
      delivery: subscription.delivery,
      onRetry: (tries, { reason }, waitMs) =>
        options.report({ kind: 'retrying', trigger: subscription.name, event, tries, reason, waitMs }),
    }
    const places = gates.get(subscription) ?? gate(triesAtOnceMax)
    return dispatch(what, { post: options.post, clock: options.clock, signal: stopping.signal, places })
  }

  async function deliver(parcel: Parcel): Promise<void> {
    const { subscription, event } = parcel
    const outcome = await send(parcel, subscription.subscriberUrl, event, true)
    if (outcome.kind === 'failed') return giveUp(parcel, subscription.subscriberUrl, outcome)
    const { tries, status, reply } = outcome
    options.report({ kind: 'delivered', trigger: subscription.name, event, tries, status })
    if (!reply) return
    const url = options.brokerUrl(subscription.namespace, subscription.broker)
    const sent = await send(
      parcel,
      url,
      withAttributes(reply, { [hopsAttribute]: String(parcel.hops) }),
      false,
    )
    if (sent.kind === 'failed') await giveUp(parcel, url, sent)
  }

  /** The dead letter is the event that was delivered, also when it was its reply that nobody took. */
  async function giveUp(
    parcel: Parcel,
    url: string,
    { tries, failure }: { tries: number; failure: Failure },
  ): Promise<void> {
    const { name: trigger, deadLetterUrl } = parcel.subscription
    const { event } = parcel
    if (deadLetterUrl === undefined) {
      options.report({
        kind: 'lost',
        trigger,
        event,
        reason: `${failure.reason}, and there is no dead letter sink`,
      })
      return
    }
    options.report({ kind: 'dead letter', trigger, event, tries, reason: failure.reason })
    const outcome = await send(parcel, deadLetterUrl, deadLetter(event, url, failure), false)
    if (outcome.kind === 'failed')
      options.report({
        kind: 'lost',
        trigger,
        event,
        reason: `the dead letter sink: ${outcome.failure.reason}`,
      })
  }

  return {
    app: ingress(options, { accept, full: () => under.size >= pendingMax || stopping.signal.aborted }),
    pending: () => under.size,
    async settled() {
      while (under.size > 0) await Promise.all(under)
    },
    async stop() {
      const dropped = under.size
      stopping.abort(new Error('The broker stops'))
      await Promise.all(under)
      return dropped
    },
  }
}

interface Parcel {
  subscription: Subscription
  event: WireEvent
  /** How often what comes of this event may still come back. */
  hops: number
  headers: Record<string, string>
}

interface Intake {
  accept(broker: string, event: WireEvent, headers: Record<string, string>): void
  full(): boolean
}

/** The HTTP side, with the answers of Knative's ingress (pkg/broker/ingress), plus a reason in the body of a refusal. */
function ingress(options: BrokerOptions, intake: Intake): Hono {
  const app = new Hono()
  app.on('OPTIONS', '*', (c) =>
    c.body(null, 200, {
      allow: 'POST, OPTIONS',
      'webhook-allowed-origin': '*',
      'webhook-allowed-rate': '*',
    }),
  )
  app.post('/:namespace/:name/', (c) => take(c.req.raw, `${c.req.param('namespace')}/${c.req.param('name')}`))
  app.post('/:namespace/:name', (c) => take(c.req.raw, `${c.req.param('namespace')}/${c.req.param('name')}`))
  app.post('/', (c) => c.text('No broker named', 404))
  app.post('*', (c) => c.text('The path must be /NAMESPACE/BROKER', 400))
  app.all('*', (c) => c.body(null, 405, { allow: 'POST, OPTIONS' }))

  async function take(request: Request, name: string): Promise<Response> {
    const body = await readBody(request)
    if (body === 'too long') return new Response(`An event may have ${eventLengthMax} bytes`, { status: 413 })
    if (body === 'cut off') return new Response('The body was cut off', { status: 400 })
    let event: WireEvent
    try {
      event = readEvent(request.headers, body)
    } catch (error) {
      if (!(error instanceof MalformedEvent)) throw error
      return new Response(error.message, { status: 400 })
    }
    if (!options.brokers.includes(name)) return new Response(`No Broker ${name}`, { status: 404 })
    const hops = hopsLeft(event)
    if (hops <= 0) {
      options.report({ kind: 'hop limit', broker: name, event })
      return new Response(`The event came back as a reply ${hopsMax} times`, { status: 400 })
    }
    if (intake.full()) return new Response('Too many events are under way', { status: 503 })
    const stamp = { knativearrivaltime: options.clock.now().toISOString(), [hopsAttribute]: String(hops) }
    intake.accept(name, withAttributes(event, stamp), passedOnOf(request.headers))
    return new Response(null, { status: 202 })
  }
  return app
}

/** A new event gets the whole number of hops; a reply has one less than what it answers. */
function hopsLeft(event: WireEvent): number {
  const text = event.attributes[hopsAttribute]
  if (text === undefined || !/^-?\d{1,9}$/.test(text)) return hopsMax
  return Math.max(0, Number(text) - 1)
}

function hopsOf(event: WireEvent): number {
  return Number(event.attributes[hopsAttribute])
}

function passedOnOf(headers: Headers): Record<string, string> {
  return Object.fromEntries([...headers].filter(([name]) => passedOn.test(name)))
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
