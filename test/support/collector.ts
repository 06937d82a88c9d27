import { httpServer } from './http.ts'

/** A span as OTLP's JSON has it, as far as tests look. */
export interface CollectedSpan {
  service: string
  traceId: string
  spanId: string
  parentSpanId: string
  name: string
  /** 1 internal, 3 client, 4 producer, 5 consumer. */
  kind: number
  isFailed: boolean
  attributes: Record<string, unknown>
}

export interface CollectedValue {
  service: string
  name: string
  labels: Record<string, unknown>
  value: number
}

interface KeyValue {
  key: string
  value: { stringValue?: string; intValue?: string | number; boolValue?: boolean }
}
interface Scopes {
  resource: { attributes: KeyValue[] }
  scopeSpans?: {
    spans: (Omit<CollectedSpan, 'attributes'> & { attributes: KeyValue[]; status?: { code?: number } })[]
  }[]
  scopeMetrics?: { metrics: Metric[] }[]
}
interface Metric {
  name: string
  sum?: { dataPoints: Point[] }
  gauge?: { dataPoints: Point[] }
  histogram?: { dataPoints: Point[] }
}
interface Point {
  attributes: KeyValue[]
  asDouble?: number
  asInt?: string | number
  count?: string | number
}

const recordOf = (pairs: KeyValue[]) =>
  Object.fromEntries(
    pairs.map(({ key, value }) => [key, value.stringValue ?? value.intValue ?? value.boolValue]),
  )

/** An OTLP collector (HTTP, JSON) on a loopback port that keeps what it gets. `status` is what it answers. */
export async function collector(options: { status?: () => number } = {}) {
  const server = await httpServer((_, response) => {
    response.writeHead(options.status?.() ?? 200, { 'content-type': 'application/json' }).end('{}')
  })
  const bodiesOf = (path: string) =>
    server.requests
      .filter(({ url }) => url === path)
      .map(({ body }) => JSON.parse(body) as Record<string, Scopes[]>)
  const serviceOf = ({ resource }: Scopes) => String(recordOf(resource.attributes)['service.name'])

  return {
    url: server.url,
    requests: server.requests,
    resources: () =>
      bodiesOf('/v1/traces').flatMap(({ resourceSpans = [] }) =>
        resourceSpans.map(({ resource }) => recordOf(resource.attributes)),
      ),
    spans: (): CollectedSpan[] =>
      bodiesOf('/v1/traces').flatMap(({ resourceSpans = [] }) =>
        resourceSpans.flatMap((one) =>
          (one.scopeSpans ?? []).flatMap(({ spans }) =>
            spans.map(({ status, attributes, ...span }) => ({
              ...span,
              service: serviceOf(one),
              isFailed: status?.code === 2,
              attributes: recordOf(attributes),
            })),
          ),
        ),
      ),
    /** Each value of the latest export that has it. */
    values: (): CollectedValue[] =>
      bodiesOf('/v1/metrics').flatMap(({ resourceMetrics = [] }) =>
        resourceMetrics.flatMap((one) =>
          (one.scopeMetrics ?? []).flatMap(({ metrics }) =>
            metrics.flatMap(({ name, sum, gauge, histogram }) =>
              ((sum ?? gauge ?? histogram)?.dataPoints ?? []).map(
                ({ attributes, asDouble, asInt, count }) => ({
                  service: serviceOf(one),
                  name,
                  labels: recordOf(attributes),
                  value: Number(asDouble ?? asInt ?? count),
                }),
              ),
            ),
          ),
        ),
      ),
    close: () => server.close(),
  }
}
