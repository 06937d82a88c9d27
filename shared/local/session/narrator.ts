import { isObject } from '../../kinds/object.ts'
import type { CronReport } from '../cron.ts'
import type { BrokerReport } from '../events/broker.ts'
import type { WireEvent } from '../events/wire-event.ts'
import type { KnativeReport } from '../knative.ts'
import type { RevisionReport } from '../processes/revision.ts'
import type { SupervisorReport } from '../processes/supervisor.ts'
import type { ChildSight, MutantSight, Sight } from './spectator.ts'

/** One line for the user: a word that says what it is about, and what happened. */
export interface Line {
  word: string
  text: string
  tone: 'plain' | 'good' | 'bad' | 'quiet'
}

/** What to tell of a report of the local Knative; undefined when a calm reader would not miss it. */
export function tellKnative(one: KnativeReport): Line | undefined {
  switch (one.from) {
    case 'broker':
      return tellBroker(one.report)
    case 'function':
    case 'process':
      return tellProcess(one.report)
    case 'cron':
      return tellCron(one.report)
    case 'output':
      return tellOutput(one.name, one.line)
  }
}

/** What to tell of a change in the cluster. */
export function tellSight(sight: Sight): Line | undefined {
  if (!sight.isNew) return undefined
  return sight.of === 'object' ? tellObject(sight.before, sight.after) : tellChild(sight.before, sight.after)
}

function tellBroker(report: BrokerReport): Line | undefined {
  const about = aboutOf(report.event)
  switch (report.kind) {
    case 'accepted': {
      const to = report.subscriptions.join(', ') || 'nobody'
      return { word: 'event', text: `${about} → ${to}`, tone: 'plain' }
    }
    case 'delivered':
      if (report.tries === 1) return undefined
      return {
        word: 'event',
        text: `${about} delivered to ${report.trigger} at try ${report.tries}`,
        tone: 'good',
      }
    case 'retrying':
      return {
        word: 'retry',
        text: `${about} to ${report.trigger}: ${report.reason}; again ${inSeconds(report.waitMs)}`,
        tone: 'bad',
      }
    case 'dead letter':
      return {
        word: 'given up',
        text: `${about} to ${report.trigger} after ${plural(report.tries, 'try', 'tries')}: ${report.reason}; to the dead letter sink`,
        tone: 'bad',
      }
    case 'lost':
      return { word: 'lost', text: `${about} to ${report.trigger}: ${report.reason}`, tone: 'bad' }
    case 'hop limit':
      return { word: 'dropped', text: `${about}: it came back as a reply too often (hop limit)`, tone: 'bad' }
  }
}

/** `applied Mutation default/storefront`, `resync requested`. */
function aboutOf({ attributes }: WireEvent): string {
  const { type = '', kind, namespace, name, cause } = attributes
  const verb = /^org\.neiam\.object\.(\w+)$/.exec(type)?.[1]
  if (verb && kind) {
    const because = cause === 'child' ? ' (a child of it changed)' : ''
    const which = namespace && name ? `${namespace}/${name}` : 'without a name'
    return `${verb} ${kind} ${which}${because}`
  }
  return (
    { 'dev.knative.sources.ping': 'cron: resync', 'org.neiam.resync.requested': 'resync requested' }[type] ??
    type
  )
}

function tellProcess(report: RevisionReport | SupervisorReport): Line | undefined {
  const { service, pid } = report
  switch (report.kind) {
    case 'starting':
      return undefined
    case 'ready':
      return {
        word: 'started',
        text: `${service} (pid ${pid}), ready after ${Math.round(report.tookMs)} ms`,
        tone: 'plain',
      }
    case 'idle':
      return { word: 'idle', text: `${service}: no event for a while, so it is stopped`, tone: 'quiet' }
    case 'stopped':
      return { word: 'stopped', text: `${service} (pid ${pid})`, tone: 'quiet' }
    case 'crashed': {
      const how = report.signal ?? `code ${report.code}`
      const pause = report.pauseMs === 0 ? '' : `; again not before ${report.pauseMs} ms`
      return { word: 'crashed', text: `${service} (pid ${pid}) ended with ${how}${pause}`, tone: 'bad' }
    }
  }
}

function tellCron(report: CronReport): Line | undefined {
  if (report.kind === 'fired') return undefined
  return { word: 'lost', text: `The cron event ${report.ping}: ${report.reason}`, tone: 'bad' }
}

/** A process logs JSON lines; told are what it wrote, and what went wrong. */
function tellOutput(name: string, text: string): Line | undefined {
  const entry = parsed(text)
  if (!entry)
    return text.trim() === '' ? undefined : { word: 'output', text: `${name}: ${text}`, tone: 'bad' }
  const { level, msg, writes, lookedAt, outOfSync } = entry
  if (msg === 'another holds the lease')
    return {
      word: 'waiting',
      text: `${name}: the Lease ${entry.lease} is held by ${entry.holder}, so that one forwards and this one waits`,
      tone: 'bad',
    }
  if (Array.isArray(writes) && writes.length > 0) {
    const object = nameOfSubject(entry.object) ?? name
    return {
      word: 'wrote',
      text: `${object}: ${shortWrites(writes.map(String))} (${entry.durationMs} ms)`,
      tone: 'plain',
    }
  }
  if (lookedAt !== undefined && level === 'info')
    return {
      word: 'resync',
      text: `looked at ${plural(Number(lookedAt), 'object')}, ${outOfSync} out of sync`,
      tone: 'plain',
    }
  if (level === 'warn' || level === 'error' || level === 'fatal') {
    const problems = Array.isArray(entry.problems) ? entry.problems.join('; ') : undefined
    const why =
      entry.reason ??
      entry.error ??
      problems ??
      entry.hint ??
      (isObject(entry.err) ? entry.err.message : undefined)
    return { word: String(level), text: `${name}: ${msg}${why ? `: ${why}` : ''}`, tone: 'bad' }
  }
  return undefined
}

/** `apply Deployment shop/a`, `apply Deployment shop/b` become `apply Deployment a, b`; of many names some. */
function shortWrites(writes: string[]): string {
  const names = new Map<string, string[]>()
  for (const write of writes) {
    const [, what = write, name = ''] = /^(.+ [A-Z]\w*) (?:[^/ ]+\/)?(\S+)$/.exec(write) ?? []
    names.set(what, [...(names.get(what) ?? []), name])
  }
  return [...names].map(([what, of]) => `${what} ${someOf(of)}`.trim()).join('; ')
}

/** More names than these of one kind would fill the screen. */
const namesMax = 5

function someOf(names: string[]): string {
  const rest = names.length - namesMax
  return rest > 0 ? `${names.slice(0, namesMax).join(', ')} and ${rest} more` : names.join(', ')
}

function parsed(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** `default/storefront` of an event's subject. */
function nameOfSubject(subject: unknown): string | undefined {
  const parts = typeof subject === 'string' ? subject.split('/') : []
  return parts.length === 8 ? `${parts[5]}/${parts[7]}` : undefined
}

function tellObject(before: MutantSight | undefined, after: MutantSight | undefined): Line | undefined {
  const now = after ?? before
  if (!now) return undefined
  const who = `${now.kind} ${now.namespace}/${now.name}`
  if (!after) return { word: 'object', text: `${who} is gone`, tone: 'plain' }
  if (!before) return { word: 'object', text: `${who} created`, tone: 'plain' }
  if (after.isDeleting && !before.isDeleting)
    return { word: 'object', text: `${who} is being deleted`, tone: 'plain' }
  if (after.generation !== before.generation) return { word: 'object', text: `${who} changed`, tone: 'plain' }
  if (after.summary === before.summary && after.message === before.message) return undefined
  const details = [after.summary, after.message].filter(Boolean).join('; ')
  return {
    word: after.isReady ? 'ready' : 'status',
    text: `${who}: ${details}`,
    tone: after.isReady ? 'good' : 'plain',
  }
}

function tellChild(before: ChildSight | undefined, after: ChildSight | undefined): Line | undefined {
  const now = after ?? before
  if (!now) return undefined
  const who = `Deployment ${now.namespace}/${now.name}`
  if (!after) return { word: 'child', text: `${who} is gone`, tone: 'plain' }
  if (!before)
    return {
      word: 'child',
      text: `${who} created for ${after.owner}, ${plural(after.replicas, 'instance')}`,
      tone: 'plain',
    }
  const [was, is] = [before, after].map(({ ready, replicas }) => `${ready}/${replicas}`)
  if (was === is) return undefined
  return {
    word: 'child',
    text: `${who} has ${is} ready`,
    tone: after.ready === after.replicas ? 'good' : 'plain',
  }
}

function plural(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`
}

function inSeconds(ms: number): string {
  return ms === 0 ? 'at once' : `in ${ms / 1000} s`
}
