/** What a run of the convergence bench found; kept as results.json, for the next run to be compared with. */
export interface Results {
  /** ISO 8601. */
  date: string
  machine: string
  count: number
  controlSeconds: number
  rows: Row[]
  p50Ms: number
  p99Ms: number
  watcherPeakMiB: number
}

export interface Row {
  what: string
  wallSeconds: number
  requests: number
  writes: number
  /** What requests and writes are told per. */
  per: number
  ourCpuSeconds: number
  apiserverCpuSeconds: number
}
