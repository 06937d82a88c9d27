import type { Results } from './results.ts'

/** The rows of a run as two bars each: requests for each object (writes darker), and time as a ratio to the control. */
export function plot({ rows, controlSeconds }: Results): string {
  const [left, rowHeight, half, gap] = [190, 34, 250, 50]
  const [top, width] = [44, left + 2 * half + gap + 60]
  const height = top + rows.length * rowHeight + 16
  const requestsMax = Math.max(...rows.map((row) => row.requests / row.per))
  const ratioMax = Math.max(1, ...rows.map((row) => row.wallSeconds / controlSeconds))
  const second = left + half + gap
  const scale = (value: number, max: number) => Math.round((value / max) * half)
  const lines = rows.flatMap((row, index) => {
    const y = top + index * rowHeight
    const [requests, writes] = [row.requests / row.per, row.writes / row.per]
    const ratio = row.wallSeconds / controlSeconds
    return [
      text(left - 8, y + 16, row.what, 'end'),
      bar(left, y, scale(requests, requestsMax), '#9ec5e8'),
      bar(left, y, scale(writes, requestsMax), '#2f6fa7'),
      text(left + scale(requests, requestsMax) + 5, y + 16, requests.toFixed(2)),
      bar(second, y, scale(ratio, ratioMax), '#8fbf9f'),
      text(second + scale(ratio, ratioMax) + 5, y + 16, ratio.toFixed(2)),
    ]
  })
  const one = second + scale(1, ratioMax)
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="12">
<title>Requests for each object, and time as a ratio to a plain client</title>
<rect width="100%" height="100%" fill="#fff"/>
${text(left, 20, 'requests for each object (dark: writes)')}
${text(second, 20, 'time, as a ratio to the plain client')}
<line x1="${one}" x2="${one}" y1="${top - 10}" y2="${height - 10}" stroke="#999" stroke-dasharray="3 3"/>
${lines.join('\n')}
</svg>
`
}

function bar(x: number, y: number, width: number, fill: string): string {
  return `<rect x="${x}" y="${y}" width="${width}" height="24" fill="${fill}"/>`
}

function text(x: number, y: number, content: string, anchor = 'start'): string {
  return `<text x="${x}" y="${y}" text-anchor="${anchor}" fill="#222">${content}</text>`
}
