import { type BrokerReport, broker, type Subscription } from '../../shared/local/events/broker.ts'
import { deliveryOf } from '../../shared/local/events/delivery.ts'
import { settle, virtualClock } from './clock.ts'

/** What came to a subscriber of the {@link localBroker}. */
export interface Arrived {
  url: string
  method: string
  atMs: number
  headers: Record<string, string>
  data: string
}

/** How a subscriber answers its n-th request (from 0). */
export type Answering = (n: number, signal: AbortSignal) => Response | Promise<Response>

export const subscriberUrl = 'http://subscriber.test/'
export const deadLetterUrl = 'http://dead.test/'
export const ingressUrl = 'http://broker-ingress.test/t/default'

/** One Broker `t/default` with one Trigger for everything of type `asked`, in virtual time and without sockets. */
export function localBroker(
  options: {
    answer?: Answering
    deadLetter?: Answering
    delivery?: Record<string, unknown>
    /** More subscriptions, by their URL. */
    also?: Partial<Subscription>[]
  } = {},
) {
  const clock = virtualClock()
  const arrived: Arrived[] = []
  const reports: BrokerReport[] = []
  const counts = new Map<string, number>()
  const subscription: Subscription = {
    namespace: 't',
    name: 'asked',
    broker: 'default',
    accepts: ({ type }) => type === 'asked',
    subscriberUrl,
    delivery: deliveryOf(
      'd',
      options.delivery ?? { retry: 1, backoffPolicy: 'linear', backoffDelay: 'PT1S' },
    ),
    deadLetterUrl,
  }
  const answers: Record<string, Answering | undefined> = {
    [subscriberUrl]: options.answer,
    [deadLetterUrl]: options.deadLetter,
  }
  const made = broker({
    brokers: ['t/default'],
    subscriptions: [subscription, ...(options.also ?? []).map((one) => ({ ...subscription, ...one }))],
    brokerUrl: () => ingressUrl,
    clock,
    report: (report) => reports.push(report),
    async post(url, init) {
      if (url === ingressUrl) return made.app.fetch(new Request(url, init))
      const n = counts.get(url) ?? 0
      counts.set(url, n + 1)
      arrived.push({
        url,
        method: init.method ?? 'GET',
        atMs: clock.monotonicMs(),
        headers: Object.fromEntries(new Headers(init.headers)),
        data: Buffer.from(await new Response(init.body ?? null).arrayBuffer()).toString('latin1'),
      })
      const answer = answers[url]
      const response = answer && init.signal ? await answer(n, init.signal) : undefined
      return response ?? new Response(null, { status: 204 })
    },
  })

  return {
    broker: made,
    clock,
    arrived,
    reports,
    at: (url: string) => arrived.filter((one) => one.url === url),
    /** Posts to the ingress as it stands: a body as bytes, for text would get a content type. */
    post: (headers: [string, string][], body: string | null, path = '/t/default') =>
      made.app.request(`http://broker-ingress.test${path}`, {
        method: 'POST',
        headers,
        body: body === null ? null : new TextEncoder().encode(body),
      }),
    /** Posts an event that the Trigger wants, and lets ten minutes pass. */
    async deliver(headers: Record<string, string> = {}) {
      const event = {
        'ce-specversion': '1.0',
        'ce-id': 'i',
        'ce-source': '/s',
        'ce-type': 'asked',
        ...headers,
      }
      await this.post(Object.entries({ 'content-type': 'application/json', ...event }), '{"a":1}')
      await settle()
      await clock.advance(600_000)
    },
  }
}
