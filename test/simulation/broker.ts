import type { Clock } from '../../shared/clock.ts'
import type { CloudEvent } from '../../shared/cloudevents/event.ts'
import { type Sink, SinkError } from '../../shared/cloudevents/sink.ts'
import type { Process } from './process.ts'

/** A broker that refuses, loses, repeats, delays and reorders events, as long as there is trouble. */
export interface Broker {
  /** Takes an event; what comes of it comes later. */
  accept(event: CloudEvent): void
  /** The way to it from a process. */
  sinkFor(by: Process): Sink
}

export interface BrokerOptions {
  clock: Clock
  /** Whether something of this probability goes wrong now. */
  chance(probability: number): boolean
  /** One try of a delivery; gives the status of its answer. */
  tryOnce(event: CloudEvent): Promise<number>
  /** What is done with an event that was given up, with the status of the last try. */
  giveUp(event: CloudEvent, status: number): Promise<void>
  onAccepted(event: CloudEvent): void
  /** Told when a delivery begins and when it is over. */
  onDelivery(change: 1 | -1): void
}

/** The waits of the Triggers' deliveries, as in the manifests. */
const retriesMax = 8
const backoffMs = 10_000
/** Above it a delivery is late on purpose. */
const delayMaxMs = 20_000

/** The longest that one event may be on its way, in ms: all its tries, and then those of its dead letter. */
export const deliveryMaxMs = 2 * ((backoffMs * (retriesMax * (retriesMax - 1))) / 2) + delayMaxMs

export function broker(options: BrokerOptions): Broker {
  const { clock, chance, tryOnce } = options

  async function deliver(event: CloudEvent): Promise<void> {
    options.onDelivery(1)
    if (chance(0.5)) await clock.sleep(clock.random() * delayMaxMs)
    // Some meet functions that cannot be reached, however often they are sent.
    const isLost = chance(0.03)
    for (let tries = 0; ; tries++) {
      const status = isLost ? 503 : await tryOnce(event)
      if (status < 300) break
      const isFinal = status < 500 && ![404, 408, 409, 429].includes(status)
      if (isFinal || tries === retriesMax) {
        await options.giveUp(event, status)
        break
      }
      await clock.sleep(tries * backoffMs)
    }
    options.onDelivery(-1)
  }

  function accept(event: CloudEvent): void {
    options.onAccepted(event)
    if (chance(0.1)) return
    void deliver(event)
    if (chance(0.2)) void deliver(event)
  }

  return {
    accept,
    sinkFor: (by) => ({
      async send(event) {
        if (by.isDead()) await new Promise<never>(() => {})
        if (chance(0.1)) throw new SinkError('no answer', 'reset')
        if (chance(0.1)) return { status: 503, resets: 0 }
        accept(event)
        return { status: 202, resets: 0 }
      },
      close: async () => {},
    }),
  }
}
