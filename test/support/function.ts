import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { FunctionContext } from '../../functions/context.ts'
import { lazyMetrics } from '../../functions/metrics.ts'
import { systemClock } from '../../shared/clock.ts'
import type { CloudEvent } from '../../shared/cloudevents/event.ts'
import { readEvent } from '../../shared/cloudevents/wire.ts'
import type { KubeClient } from '../../shared/kube/client.ts'
import { createLog } from '../../shared/log.ts'

export interface TestContext extends FunctionContext {
  /** The lines of its log, parsed. */
  lines: Record<string, unknown>[]
  /** What goes on after its answers. */
  backgrounds: Promise<void>[]
}

/** A function's context with a real log, real metrics and the real clock, unless told otherwise. */
export function functionContext(client: KubeClient, options: Partial<FunctionContext> = {}): TestContext {
  const lines: Record<string, unknown>[] = []
  const backgrounds: Promise<void>[] = []
  return {
    name: 'test',
    client,
    clock: systemClock,
    log: createLog({
      name: 'test',
      level: 'debug',
      destination: { write: (line) => lines.push(JSON.parse(line)) },
    }),
    metrics: lazyMetrics(),
    cluster: 'here',
    deadlineMs: 20_000,
    draining: new AbortController().signal,
    background: (work) => void backgrounds.push(work),
    lines,
    backgrounds,
    ...options,
  }
}

export interface TestSink {
  url: string
  /** The events that came whole, in order. */
  events: CloudEvent[]
  close(): Promise<void>
}

/** A sink on a real socket that keeps what it gets; `answer` answers the n-th event (from 1), 202 by default. */
export async function testSink(
  answer: (response: ServerResponse, event: CloudEvent, number: number) => void = (response) => {
    response.writeHead(202).end()
  },
): Promise<TestSink> {
  const events: CloudEvent[] = []
  const server = createServer(async (request: IncomingMessage, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const headers = Object.entries(request.headers) as [string, string][]
    const event = readEvent({ headers, body: Buffer.concat(chunks) })
    answer(response, event, events.push(event))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    events,
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
