import { AsyncLocalStorage } from 'node:async_hooks'
import {
  type Context,
  type Histogram,
  isSpanContextValid,
  type Meter,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  trace,
} from '@opentelemetry/api'
import { OTLPMetricExporter } from '@opentelemetry/exporter-metrics-otlp-http'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources'
import {
  MeterProvider,
  PeriodicExportingMetricReader,
  type PushMetricExporter,
} from '@opentelemetry/sdk-metrics'
import { BatchSpanProcessor, type SpanExporter, TracerProvider } from '@opentelemetry/sdk-trace'
import { type Clock, withTimeout } from '../clock.ts'
import type { Logger } from '../log.ts'
import { version } from '../version.ts'
import type { OpenSpan, SpanOptions, Telemetry } from './telemetry.ts'

/** What a metric is; its name is Prometheus' own, unit and `_total` included. */
export interface MetricDefinition {
  type: 'counter' | 'gauge' | 'histogram'
  help: string
  buckets?: readonly number[]
}

export interface OtlpOptions {
  /** Stands in `service.name`, unless OTEL_SERVICE_NAME says something else. */
  service: string
  /** Stands in `service.instance.id`. */
  instance: string
  /** Whether spans are sent, and metrics. */
  traces: boolean
  metrics: boolean
  /** The metrics that may be noted, by name. */
  definitions: Record<string, MetricDefinition>
  clock: Clock
  log: Logger
}

/** A function lives for a minute or so; this often it tells its metrics, besides once at its end, in ms. */
const metricsApartMs = 15_000
const stopMs = 2_000

/**
 * Telemetry to an OTLP endpoint (HTTP, JSON). Where and how is told by the variables of the OpenTelemetry specification,
 * which the exporters read themselves: OTEL_EXPORTER_OTLP_ENDPOINT and its siblings, OTEL_RESOURCE_ATTRIBUTES,
 * OTEL_SERVICE_NAME. A collector that takes nothing costs a line in the log, and no more. Nothing is made global.
 */
export function otlp(options: OtlpOptions): Telemetry {
  const resource = resourceFromAttributes({
    'service.name': `mutantops-${options.service}`,
    'service.version': version,
    'service.instance.id': options.instance,
  }).merge(detectResources({ detectors: [envDetector] }))
  const told = trouble(options.log)
  const spans = () =>
    new BatchSpanProcessor({ exporter: watched<SpanExporter>(new OTLPTraceExporter(), told) })
  const tracers = new TracerProvider({ resource, spanProcessors: options.traces ? [spans()] : [] })
  const reader = () =>
    new PeriodicExportingMetricReader({
      exporter: watched<PushMetricExporter>(new OTLPMetricExporter(), told),
      exportIntervalMillis: metricsApartMs,
    })
  const meters = new MeterProvider({ resource, readers: options.metrics ? [reader()] : [] })
  const inside = new AsyncLocalStorage<Context>()
  const tracer = tracers.getTracer('mutantops', version)
  const notes = instruments(meters.getMeter('mutantops', version), options.definitions)

  return {
    span(name, { kind, parent, attributes = {} }, work) {
      const context = contextOf(parent) ?? inside.getStore() ?? ROOT_CONTEXT
      const span = tracer.startSpan(name, { kind: kinds[kind], attributes }, context)
      return inside.run(trace.setSpan(context, span), () => within(span, work))
    },
    isTracing: () => inside.getStore() !== undefined,
    note: (name, labels, value) => notes.get(name)?.(labels, value),
    async stop() {
      const sent = Promise.allSettled([tracers.shutdown(), meters.shutdown()])
      await withTimeout(options.clock, stopMs, 'Sending the last telemetry', () => sent).catch(told)
    },
  }
}

const kinds: Record<SpanOptions['kind'], SpanKind> = {
  client: SpanKind.CLIENT,
  producer: SpanKind.PRODUCER,
  consumer: SpanKind.CONSUMER,
}

async function within<T>(span: Span, work: (open: OpenSpan) => Promise<T>): Promise<T> {
  const fail = (message: string) => span.setStatus({ code: SpanStatusCode.ERROR, message })
  try {
    return await work({
      traceparent: traceparentOf(span),
      set: (attributes) => void span.setAttributes(attributes),
      fail,
    })
  } catch (error) {
    fail(error instanceof Error ? error.name : 'failed')
    throw error
  } finally {
    span.end()
  }
}

function traceparentOf(span: Span): string {
  const { traceId, spanId, traceFlags } = span.spanContext()
  return `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`
}

/** The context that a `traceparent` names, if it is a valid one. */
function contextOf(traceparent: string | undefined): Context | undefined {
  const [, traceId = '', spanId = '', flags = ''] =
    /^(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})/.exec(traceparent ?? '') ?? []
  const traceFlags = Number.parseInt(flags, 16) & TraceFlags.SAMPLED
  const parent = { traceId, spanId, traceFlags, isRemote: true }
  return isSpanContextValid(parent) ? trace.setSpanContext(ROOT_CONTEXT, parent) : undefined
}

type Note = (labels: Record<string, string>, value: number) => void

function instruments(meter: Meter, definitions: Record<string, MetricDefinition>): Map<string, Note> {
  return new Map(
    Object.entries(definitions).map(([name, definition]) => [name, instrument(meter, name, definition)]),
  )
}

function instrument(
  meter: Meter,
  name: string,
  { type, help: description, buckets }: MetricDefinition,
): Note {
  if (type === 'counter') {
    const counter = meter.createCounter(name, { description })
    return (labels, value) => counter.add(value, labels)
  }
  if (type === 'gauge') {
    const gauge = meter.createGauge(name, { description })
    return (labels, value) => gauge.record(value, labels)
  }
  const advice = buckets && { explicitBucketBoundaries: [...buckets] }
  const histogram: Histogram = meter.createHistogram(name, { description, ...(advice && { advice }) })
  return (labels, value) => histogram.record(value, labels)
}

/** An exporter as it is, whose results are looked at. */
function watched<E extends Pick<SpanExporter | PushMetricExporter, 'export'>>(
  exporter: E,
  told: (error?: Error) => void,
): E {
  const send = exporter.export.bind(exporter) as (
    batch: unknown,
    done: (result: { code: number; error?: Error }) => void,
  ) => void
  const succeeded = 0
  exporter.export = ((batch: unknown, done: (result: { code: number; error?: Error }) => void) =>
    send(batch, (result) => {
      told(result.code === succeeded ? undefined : (result.error ?? new Error('unknown')))
      done(result)
    })) as E['export']
  return exporter
}

/** Logs when sending begins to fail, and when it works again. What went wrong is named, but no address. */
function trouble(log: Logger): (error?: Error) => void {
  let isFailing = false
  return (error) => {
    if (error && !isFailing)
      log.warn({ reason: codeOf(error) }, 'the OTLP endpoint takes nothing: traces and metrics are lost')
    if (!error && isFailing) log.info('the OTLP endpoint takes traces and metrics again')
    isFailing = error !== undefined
  }
}

function codeOf(error: Error): string {
  const { code } = error as NodeJS.ErrnoException
  return code === undefined ? error.name : String(code)
}
