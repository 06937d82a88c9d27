import { besideOthers } from './peers.ts'
import type { Results, Row } from './results.ts'

/** What a run of the convergence bench found, as the text of RESULTS.md, with what has changed since an earlier one. */
export function table(results: Results, earlier: Results | undefined): string {
  const { count, controlSeconds, rows } = results
  const lines = rows.map((row) => {
    const before = earlier?.rows.find(({ what }) => what === row.what)
    return `| ${[
      row.what,
      row.wallSeconds.toFixed(1),
      ratio(row, results),
      before && earlier ? ratio(before, earlier) : '',
      each(row, 'requests'),
      each(row, 'writes'),
      before ? difference(row, before) : '',
      row.ourCpuSeconds.toFixed(1),
      row.apiserverCpuSeconds.toFixed(1),
    ].join(' | ')} |`
  })
  return `# Convergence

${count} Mutations of three variants each on a real kube-apiserver without a controller manager; the bundled functions, one
process each, behind the local broker. ${results.machine}; ${results.date.slice(0, 10)}. Made by \`npm run bench\`.

The control is a plain client that makes the same objects, ${controlSeconds.toFixed(1)} s here: compare seconds only as ratios to it.
Requests are those of our processes in the audit log, but for the Lease and the watcher's own settings, and include what
follows until all is quiet.${earlier ? ` The run before was on ${earlier.date.slice(0, 10)}.` : ''}

![Requests for each object, and time as a ratio to the control](convergence.svg)

| | wall s | × control | the run before | requests each | of these writes | changed | own CPU s | API server CPU s |
| --- | --: | --: | --: | --: | --: | --: | --: | --: |
${lines.join('\n')}

One at a time, unloaded, from a create to its last child: p50 ${results.p50Ms.toFixed(0)} ms, p99 ${results.p99Ms.toFixed(0)} ms (the client polls)${
    earlier ? `; the run before ${earlier.p50Ms.toFixed(0)} and ${earlier.p99Ms.toFixed(0)} ms` : ''
  }. Peak memory of the watcher: ${results.watcherPeakMiB.toFixed(0)} MiB${earlier ? ` (${earlier.watcherPeakMiB.toFixed(0)})` : ''}.

What a million objects would cost: [SCALE.md](SCALE.md). How a function starts: [COLD-START.md](COLD-START.md).

${besideOthers(results)}`
}

function each(row: Row, what: 'requests' | 'writes'): string {
  return (row[what] / row.per).toFixed(2)
}

function ratio(row: Row, { controlSeconds }: Results): string {
  return (row.wallSeconds / controlSeconds).toFixed(2)
}

/** By how many requests for each object a run differs from the one before. */
function difference(row: Row, before: Row): string {
  const more = row.requests / row.per - before.requests / before.per
  return Math.abs(more) < 0.005 ? '0' : `${more > 0 ? '+' : ''}${more.toFixed(2)}`
}
