/** What a run of the convergence bench found, as the text of RESULTS.md. */
export interface Results {
  date: Date
  machine: string
  count: number
  controlSeconds: number
  rows: {
    what: string
    wallSeconds: number
    requests: number
    writes: number
    per: number
    ourCpuSeconds: number
    apiserverCpuSeconds: number
  }[]
  p50Ms: number
  p99Ms: number
  watcherPeakMiB: number
}

export function table(results: Results): string {
  const { count, controlSeconds, rows } = results
  const lines = rows.map((row) => {
    const per = (value: number) => (value / row.per).toFixed(2)
    return `| ${row.what} | ${row.wallSeconds.toFixed(1)} | ${(row.wallSeconds / controlSeconds).toFixed(2)} | ${per(row.requests)} | ${per(row.writes)} | ${row.ourCpuSeconds.toFixed(1)} | ${row.apiserverCpuSeconds.toFixed(1)} |`
  })
  return `# Convergence

${count} Mutations of three variants each on a real kube-apiserver without a controller manager; the bundled functions, one
process each, behind the local broker. ${results.machine}; ${results.date.toISOString().slice(0, 10)}. Made by \`npm run bench\`.

The control is a plain client that makes the same objects, ${controlSeconds.toFixed(1)} s here: compare seconds only as ratios to it.
Requests are those of our processes in the audit log, but for the Lease, and include what follows until all is quiet.

| | wall s | × control | requests each | of these writes | own CPU s | API server CPU s |
| --- | --: | --: | --: | --: | --: | --: |
${lines.join('\n')}

One at a time, unloaded, from a create to its last child: p50 ${results.p50Ms.toFixed(0)} ms, p99 ${results.p99Ms.toFixed(0)} ms (the client polls).
Peak memory of the watcher: ${results.watcherPeakMiB.toFixed(0)} MiB.
`
}
