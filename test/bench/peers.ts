import type { Results } from './results.ts'

/**
 * The same job by three other reconcilers of the same resources, written for this comparison and measured once: kube-rs (two
 * informers), controller-runtime (reads only from its cache, compares before it writes) and Metacontroller 4 (a Node hook).
 * Requests repeat exactly; their seconds are another machine's, so only an order of size.
 */
const others: Record<string, [kubeRs: string, controllerRuntime: string, metacontroller: string]> = {
  'created from nothing': ['26.3 (11.7), 19.3 s', '5.0 (5.0), 12.8 s', '7.0 (5.0), 8.0 s'],
  'the watcher started again': ['8–10.7 (3–4)', '0 (0)', '1.0 (0)'],
  'resync, in sync': ['8 (3)', '0 (0)', '1.0 (0)'],
  'one child of each made ready': [
    '22.0 (9.2) for all three',
    '1.0 (1.0) for all three',
    '3.0 (1.0) for all three',
  ],
  'one variant changed on all': ['25.5 (10.8), 20 s', '2.0 (2.0), 8.2 s', '4.0 (2.0), 8.0 s'],
  'one variant removed from all': ['20.6 (8.8), 15 s', '2.0 (2.0), 5.7 s', '4.0 (2.0), 5.8 s'],
  '100 children deleted by hand': ['15.1 (5.6), 2.1 s', '1.5 (1.5), 1.2 s', '3.5 (1.5), 1.5 s'],
}

/** A table of ours beside the others: requests for each object (of these writes), and seconds. */
export function besideOthers({ rows }: Results): string {
  const lines = rows.map(({ what, requests, writes, per, wallSeconds }) => {
    const ours = `${(requests / per).toFixed(2)} (${(writes / per).toFixed(2)}), ${wallSeconds.toFixed(1)} s`
    return `| ${[what, ours, ...(others[what] ?? [])].join(' | ')} |`
  })
  return `## Beside others

The same job by others, on another machine of two cores: requests for each object (of these writes) repeat exactly, seconds
are an order of size. A function has no cache, so it reads before it writes, where controller-runtime reads from memory;
and nothing of it runs when nothing changes.

| | mutantops | kube-rs | controller-runtime | Metacontroller |
| --- | --: | --: | --: | --: |
${lines.join('\n')}
`
}
