import { fileURLToPath } from 'node:url'
import { apps } from '../../functions/apps.ts'
import { functionConfig } from '../../functions/config.ts'
import { systemClock } from '../../shared/clock.ts'
import { objectEvent } from '../../shared/cloudevents/envelope.ts'
import type { CloudEvent } from '../../shared/cloudevents/event.ts'
import { binaryOf } from '../../shared/cloudevents/write.ts'
import {
  type Broker,
  type BrokerReport,
  broker,
  type Subscription,
} from '../../shared/local/events/broker.ts'
import type { Post } from '../../shared/local/events/dispatch.ts'
import { listenLocally } from '../../shared/local/listen.ts'
import { placeOf } from '../../shared/local/manifests/addresses.ts'
import { readManifests } from '../../shared/local/manifests/manifests.ts'
import type { MutantBuilder } from './builders.ts'
import { functionContext, type TestContext } from './function.ts'
import type { World } from './world.ts'

const knative = fileURLToPath(new URL('../../knative/', import.meta.url))

/** The shipped Triggers, the local broker and the real functions on a world's API, all in this process. */
export interface DeliveryWorld {
  broker: Broker
  brokerUrl: string
  reports: BrokerReport[]
  /** The context of each function, with its log. */
  contexts: Record<string, TestContext>
  /** Every answer that a function gave through the broker. */
  answers: { name: string; type: string; status: number; body: string }[]
  /** Sends an event to the broker, as the watcher does. */
  send(event: CloudEvent): Promise<number>
  /** The event that the watcher would send of an object as it is now. */
  eventOf(object: MutantBuilder): Promise<CloudEvent>
  /** Asks a function directly. */
  ask(name: string, path: string, init: RequestInit): Promise<Response>
  stop(): Promise<void>
}

export interface DeliveryOptions {
  env?: Record<string, string>
  /** Changes the shipped subscriptions. */
  subscriptions?(shipped: Subscription[]): Subscription[]
  /** Whether the broker, having said 202, forgets this event (the n-th, from 1). */
  forgets?(count: number): boolean
}

export async function deliveryWorld(w: World, options: DeliveryOptions = {}): Promise<DeliveryWorld> {
  const manifests = await readManifests(knative)
  const reports: BrokerReport[] = []
  const answers: DeliveryWorld['answers'] = []
  const contexts: Record<string, TestContext> = {}
  const running: Record<string, Awaited<ReturnType<NonNullable<(typeof apps)[string]>>>> = {}

  const ask = async (name: string, path: string, init: RequestInit) =>
    (await running[name]?.app.fetch(new Request(`http://function${path}`, init))) ??
    new Response(null, { status: 404 })
  const post: Post = async (url, init) => {
    const place = placeOf(url)
    if (place.kind === 'broker') return made.app.fetch(new Request(url, init))
    if (place.kind !== 'service') throw new Error(`Nobody is at ${url}`)
    const response = await ask(place.name, '/', init)
    const type = new Headers(init.headers).get('ce-type') ?? ''
    answers.push({ name: place.name, type, status: response.status, body: await response.clone().text() })
    return response
  }
  const made = broker({
    brokers: manifests.brokers,
    subscriptions: (options.subscriptions ?? ((shipped) => shipped))(manifests.subscriptions),
    brokerUrl: (namespace, name) =>
      `http://broker-ingress.knative-eventing.svc.cluster.local/${namespace}/${name}`,
    post,
    clock: systemClock,
    report: (report) => reports.push(report),
  })
  let count = 0
  const front = {
    fetch: (request: Request) => {
      count++
      return options.forgets?.(count) ? new Response(null, { status: 202 }) : made.app.fetch(request)
    },
  }
  const ingress = await listenLocally(front)
  const brokerUrl = `${ingress.url}/mutantops/default`
  const config = functionConfig({ K_SINK: brokerUrl, ...options.env })
  for (const { name, functionName } of manifests.services) {
    const ctx = functionContext(w.context.client, { name })
    contexts[name] = ctx
    const app = await apps[functionName]?.(ctx, config)
    if (app) running[name] = app
  }
  return {
    broker: made,
    brokerUrl,
    reports,
    contexts,
    answers,
    ask,
    async send(event) {
      const { headers, body } = binaryOf(event)
      const response = await fetch(brokerUrl, { method: 'POST', headers, body: body as string | null })
      return response.status
    },
    async eventOf(object) {
      const { uid, resourceVersion } = (await w.get(object)).metadata
      const { namespace } = w
      const owner = { apiVersion: 'neiam.org/v1', kind: object.kind.kind, namespace, name: object.name, uid }
      return objectEvent({
        cluster: 'here',
        verb: 'applied',
        owner,
        changed: { uid, resourceVersion },
        cause: 'object',
      })
    },
    async stop() {
      await made.stop()
      await ingress.close()
      for (const { stop } of Object.values(running)) await stop?.()
    },
  }
}
