/** What a process tells of its work while it is done: spans of traces, and metrics as they are noted. */
export interface Telemetry {
  /**
   * Runs `work` within a new span, which is the parent of those that begin inside. It ends with `work`; what that throws
   * makes it a failure, and is thrown on.
   */
  span<T>(name: string, options: SpanOptions, work: (span: OpenSpan) => Promise<T>): Promise<T>
  /** Whether this runs inside a span. */
  isTracing(): boolean
  /** Adds to a counter, sets a gauge, or notes one value of a histogram. */
  note(name: string, labels: Record<string, string>, value: number): void
  /** Sends what has not been sent, for 2 s at most. */
  stop(): Promise<void>
}

export interface SpanOptions {
  kind: 'client' | 'producer' | 'consumer'
  /** W3C Trace Context of the span that caused this one, elsewhere; default the span inside which this begins. */
  parent?: string | undefined
  attributes?: Attributes
}

export interface OpenSpan {
  /** For those who go on with the trace elsewhere (W3C Trace Context, version 00). */
  traceparent: string
  set(attributes: Attributes): void
  /** Ends as a failure although `work` does not throw. */
  fail(reason: string): void
}

export type Attributes = Record<string, string | number | boolean>
