import { readdirSync, readFileSync } from 'node:fs'

/** What Linux tells of processes. */

const ticksPerSecond = 100

/** User and system time of a process, in s. */
export function cpuSecondsOf(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ') ?? []
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond
}

/** The process whose command line has all of these in it. */
export function pidOf(...parts: string[]): number {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  const found = pids.find((pid) => {
    try {
      const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8')
      return parts.every((part) => command.includes(part))
    } catch {
      return false
    }
  })
  return Number(found)
}

/** The most memory that a process has had resident, in MiB. */
export function peakMiBOf(pid: number): number {
  return Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1_024
}
