import { kubeClient } from '../../shared/kube/client.ts'
import { createLog, type Logger } from '../../shared/log.ts'
import { type Elector, type ElectorOptions, elector } from '../../shared/runtime/elector.ts'
import type { VirtualClock } from '../support/clock.ts'
import type { LeaseWire, Trouble } from './lease-wire.ts'

export interface Candidate {
  name: string
  elector: Elector
  /** Ends its campaign without a word, as a crash of the elector would. */
  kill(): void
  trouble: Trouble
  counts: { acquired: number; lost: number; error: number; conflict: number }
}

export const timing = { leaseDurationSeconds: 15, renewDeadlineSeconds: 10, retryPeriodSeconds: 2 }

export function silentLog(lines: string[] = []): Logger {
  return createLog({ name: 'test', level: 'debug', destination: { write: (line) => lines.push(line) } })
}

/** A process that campaigns for the Lease of `wire` from now on. */
export function candidate(
  clock: VirtualClock,
  wire: LeaseWire,
  name: string,
  options: Partial<ElectorOptions> = {},
): Candidate {
  const counts = { acquired: 0, lost: 0, error: 0, conflict: 0 }
  const dead = new AbortController()
  const made: Candidate = {
    name,
    counts,
    trouble: {},
    kill: () => dead.abort(new Error('killed')),
    elector: elector({
      client: kubeClient({ transport: wire.transport(() => made.trouble), clock, userAgent: name }),
      clock,
      log: silentLog(),
      namespace: 'test',
      leaseName: 'work',
      identity: name,
      metrics: {
        acquired: () => counts.acquired++,
        lost: () => counts.lost++,
        error: () => counts.error++,
        conflict: () => counts.conflict++,
      },
      ...timing,
      ...options,
    }),
  }
  made.elector.run(dead.signal).catch(() => {})
  return made
}
