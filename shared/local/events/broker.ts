import type { Hono } from 'hono'
import type { Clock } from '../../clock.ts'
import { type Delivery, deadLetter, type Failure, type Route } from './delivery.ts'
import { type Dispatch, dispatch, type Outcome, type Post } from './dispatch.ts'
import type { Filter } from './filters.ts'
import { gate } from './gate.ts'
import { handedOn, hopsAttribute, ingress } from './ingress.ts'
import { type WireEvent, withAttributes } from './wire-event.ts'

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

/** Deliveries kept at once, all Triggers together; past it the ingress answers 503 and the sender tries again. */
const pendingMax = 100_000
/** Tries under way at once per Trigger. */
const triesAtOnceMax = 100
/**
 * An in-process stand-in for Knative's channel-based Broker. An event is answered 202 when it has been accepted, and
 * kept in memory until each Trigger that wants it has delivered it or sent it to its dead letter sink. Nothing is kept
 * over a restart: the watcher's resync at start repairs that.
 */
export function broker(options: BrokerOptions): Broker {
  const stopping = new AbortController()
  const under = new Set<Promise<void>>()
  const gates = new Map(options.subscriptions.map((subscription) => [subscription, gate(triesAtOnceMax)]))

  function accept(name: string, event: WireEvent, headers: Headers): void {
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
      const hops = event.attributes[hopsAttribute]
      const delivery = deliver({ subscription, event: offered, hops, ...handedOn(headers) })
        .catch(() => {})
        .finally(() => under.delete(delivery))
      under.add(delivery)
    }
  }

  async function send(parcel: Parcel, url: string, event: WireEvent, through: Route): Promise<Outcome> {
    const { subscription, passed, trace } = parcel
    const prefer = through === 'filter' && { prefer: 'reply' }
    const what: Dispatch = {
      url,
      event,
      headers: { ...passed, ...trace, 'kn-namespace': subscription.namespace, ...prefer },
      delivery: subscription.delivery,
      through,
      onRetry: (tries, { reason }, waitMs) =>
        options.report({ kind: 'retrying', trigger: subscription.name, event, tries, reason, waitMs }),
    }
    const places = gates.get(subscription) ?? gate(triesAtOnceMax)
    return dispatch(what, { post: options.post, clock: options.clock, signal: stopping.signal, places })
  }

  async function deliver(parcel: Parcel): Promise<void> {
    const { subscription, event } = parcel
    const outcome = await send(parcel, subscription.subscriberUrl, event, 'filter')
    if (outcome.kind === 'failed') return giveUp(parcel, subscription.subscriberUrl, outcome)
    const { tries, status, reply } = outcome
    options.report({ kind: 'delivered', trigger: subscription.name, event, tries, status })
    if (!reply) return
    const url = options.brokerUrl(subscription.namespace, subscription.broker)
    // What goes on with a reply are the headers of the answer, no longer those of the event.
    const back = { ...parcel, passed: handedOn(reply.headers).passed }
    const sent = await send(back, url, withHops(reply.event, parcel), 'direct')
    if (sent.kind === 'failed') await giveUp(back, url, sent)
  }

  /** The dead letter is the event as it came from the ingress, also when it was its reply that nobody took. */
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
    const letter = deadLetter(withHops(event, parcel), url, failure)
    const outcome = await send(parcel, deadLetterUrl, letter, 'direct')
    if (outcome.kind === 'failed')
      options.report({
        kind: 'lost',
        trigger,
        event,
        reason: `the dead letter sink: ${outcome.failure.reason}`,
      })
  }

  return {
    app: ingress({ ...options, accept, full: () => under.size >= pendingMax || stopping.signal.aborted }),
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
  hops: string | undefined
  passed: Record<string, string>
  trace: Record<string, string>
}

function withHops(event: WireEvent, { hops }: Parcel): WireEvent {
  return withAttributes(event, { [hopsAttribute]: hops })
}
