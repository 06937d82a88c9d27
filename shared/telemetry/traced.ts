import type { CloudEvent } from '../cloudevents/event.ts'
import type { Sink } from '../cloudevents/sink.ts'
import type { Transport } from '../kube/request.ts'
import type { Attributes, Telemetry } from './telemetry.ts'

/** What stands in the spans of an event (OpenTelemetry's semantic conventions for CloudEvents). */
export function eventAttributes({ id, source, type, subject }: CloudEvent): Attributes {
  return {
    'cloudevents.event_id': id,
    'cloudevents.event_source': source,
    'cloudevents.event_type': type,
    ...(subject !== undefined && { 'cloudevents.event_subject': subject }),
  }
}

/** A sink whose sends are spans. Each event says so in its `traceparent` (CloudEvents' distributed tracing extension). */
export function tracedSink(sink: Sink, telemetry: Telemetry): Sink {
  return {
    ...sink,
    send: (event, options) =>
      telemetry.span(
        `publish ${event.type}`,
        { kind: 'producer', parent: event.extensions.traceparent, attributes: eventAttributes(event) },
        async (span) => {
          const traced = { ...event, extensions: { ...event.extensions, traceparent: span.traceparent } }
          const answer = await sink.send(traced, options)
          span.set({ 'http.response.status_code': answer.status })
          if (answer.status >= 300) span.fail(String(answer.status))
          return answer
        },
      ),
  }
}

/** A wire to the API server whose requests are spans of the work that makes them; other requests are none (watches). */
export function tracedTransport(transport: Transport, telemetry: Telemetry): Transport {
  return {
    ...transport,
    fetch(url, init) {
      if (!telemetry.isTracing()) return transport.fetch(url, init)
      const method = init.method ?? 'GET'
      const { pathname, hostname } = new URL(url)
      const attributes = { 'http.request.method': method, 'url.path': pathname, 'server.address': hostname }
      return telemetry.span(
        `${method} ${resourceIn(pathname)}`,
        { kind: 'client', attributes },
        async (span) => {
          const headers = { ...(init.headers as Record<string, string>), traceparent: span.traceparent }
          const response = await transport.fetch(url, { ...init, headers })
          span.set({ 'http.response.status_code': response.status })
          // A 404 and a 409 are answers that a reconcile counts on.
          if (response.status >= 400 && ![404, 409].includes(response.status))
            span.fail(String(response.status))
          return response
        },
      )
    },
  }
}

/** The plural, and the subresource: `mutations/status`. Names would make each span's name another one. */
function resourceIn(path: string): string {
  const parts = path.split('/').slice(path.startsWith('/api/') ? 3 : 4)
  const [resource = '', , subresource] =
    parts[0] === 'namespaces' && parts.length > 2 ? parts.slice(2) : parts
  return subresource ? `${resource}/${subresource}` : resource
}
