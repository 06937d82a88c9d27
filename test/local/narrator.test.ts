import { describe, expect, it } from 'vitest'
import type { KnativeReport } from '../../shared/local/knative.ts'
import { lineText, look } from '../../shared/local/session/look.ts'
import { tellKnative, tellSight } from '../../shared/local/session/narrator.ts'
import type { ChildSight, MutantSight } from '../../shared/local/session/spectator.ts'

const event = {
  attributes: {
    specversion: '1.0',
    id: '1',
    source: '/',
    type: 'org.neiam.object.applied',
    kind: 'Mutation',
    namespace: 'default',
    name: 'web',
  },
  data: new Uint8Array(0),
}
/** As anybody may post one. */
const { namespace: _namespace, name: _name, ...anonymous } = event.attributes
const nameless = { ...event, attributes: anonymous }
const told = (report: KnativeReport) => tellKnative(report)?.text
const output = (entry: object | string) =>
  told({ from: 'output', name: 'mutation', line: typeof entry === 'string' ? entry : JSON.stringify(entry) })

const object: MutantSight = {
  uid: 'u',
  resourceVersion: '1',
  namespace: 'default',
  name: 'web',
  kind: 'Mutation',
  generation: 1,
  summary: undefined,
  message: undefined,
  isReady: false,
  isDeleting: false,
}
const child: ChildSight = {
  uid: 'c',
  resourceVersion: '1',
  namespace: 'default',
  name: 'web-red',
  owner: 'Mutation web',
  replicas: 2,
  ready: 0,
}

describe('what npm start tells', () => {
  it.each<[KnativeReport, string | undefined]>([
    [
      {
        from: 'broker',
        report: { kind: 'accepted', event, broker: 'ns/default', subscriptions: ['mutation'] },
      },
      'applied Mutation default/web → mutation',
    ],
    [
      { from: 'broker', report: { kind: 'accepted', event, broker: 'ns/default', subscriptions: [] } },
      'applied Mutation default/web → nobody',
    ],
    [
      {
        from: 'broker',
        report: { kind: 'accepted', event: nameless, broker: 'ns/default', subscriptions: [] },
      },
      'applied Mutation without a name → nobody',
    ],
    [
      { from: 'broker', report: { kind: 'delivered', event, trigger: 'mutation', tries: 1, status: 204 } },
      undefined,
    ],
    [
      { from: 'broker', report: { kind: 'delivered', event, trigger: 'mutation', tries: 3, status: 204 } },
      'applied Mutation default/web delivered to mutation at try 3',
    ],
    [
      {
        from: 'broker',
        report: { kind: 'retrying', event, trigger: 'mutation', tries: 1, reason: 'answer 503', waitMs: 0 },
      },
      'applied Mutation default/web to mutation: answer 503; again at once',
    ],
    [
      {
        from: 'broker',
        report: {
          kind: 'retrying',
          event,
          trigger: 'mutation',
          tries: 2,
          reason: 'answer 503',
          waitMs: 10_000,
        },
      },
      'applied Mutation default/web to mutation: answer 503; again in 10 s',
    ],
    [
      {
        from: 'broker',
        report: { kind: 'dead letter', event, trigger: 'mutation', tries: 9, reason: 'answer 503' },
      },
      'applied Mutation default/web to mutation after 9 tries: answer 503; to the dead letter sink',
    ],
    [
      { from: 'broker', report: { kind: 'hop limit', event, broker: 'ns/default' } },
      'applied Mutation default/web: it came back as a reply too often (hop limit)',
    ],
    [
      { from: 'function', report: { kind: 'ready', service: 'mutation', pid: 7, tookMs: 480.4 } },
      'mutation (pid 7), ready after 480 ms',
    ],
    [
      {
        from: 'process',
        report: { kind: 'crashed', service: 'watcher', pid: 7, code: 1, signal: null, pauseMs: 500 },
      },
      'watcher (pid 7) ended with code 1; again not before 500 ms',
    ],
    [{ from: 'cron', report: { kind: 'fired', ping: 'resync', status: 202 } }, undefined],
  ])('%j', (report, text) => {
    expect(told(report)).toBe(text)
  })

  it('tells of the log what was written and what went wrong, and of other output everything', () => {
    const written = {
      level: 'info',
      msg: 'event worked on',
      object: '/apis/neiam.org/v1/namespaces/default/mutations/web',
      writes: [
        'apply Deployment default/web-red',
        'apply Deployment default/web-blue',
        'report Mutation default/web',
      ],
      durationMs: 12,
    }
    expect(output(written)).toBe(
      'default/web: apply Deployment web-red, web-blue; report Mutation web (12 ms)',
    )
    expect(output({ ...written, writes: [] })).toBeUndefined()
    const many = Array.from({ length: 200 }, (_, index) => `apply Deployment default/web-${index}`)
    expect(output({ ...written, writes: many })).toBe(
      'default/web: apply Deployment web-0, web-1, web-2, web-3, web-4 and 195 more (12 ms)',
    )
    const settings = {
      level: 'warn',
      msg: 'settings not taken',
      problems: ['paused is not true or false', 'b'],
    }
    expect(output(settings)).toContain('settings not taken: paused is not true or false; b')
    const waits = { level: 'info', msg: 'another holds the lease', lease: 'mutantops/x', holder: 'pod-1' }
    expect(output(waits)).toContain('the Lease mutantops/x is held by pod-1')
    expect(output({ level: 'warn', msg: 'event put off', reason: 'Shutting down' })).toBe(
      'mutation: event put off: Shutting down',
    )
    expect(output({ level: 'info', msg: 'event worked on', lookedAt: 1, outOfSync: 0 })).toBe(
      'looked at 1 object, 0 out of sync',
    )
    expect(output({ level: 'debug', msg: 'x' })).toBeUndefined()
    expect(output('Error: Cannot find module')).toBe('mutation: Error: Cannot find module')
    expect(output('  ')).toBeUndefined()
  })

  it.each<[string, MutantSight | undefined, MutantSight | undefined, string | undefined]>([
    ['a new object', undefined, object, 'Mutation default/web created'],
    ['a change', object, { ...object, generation: 2 }, 'Mutation default/web changed'],
    [
      'a status',
      object,
      { ...object, summary: '1/2 variants ready' },
      'Mutation default/web: 1/2 variants ready',
    ],
    ['a label', object, { ...object, resourceVersion: '2' }, undefined],
    [
      'the beginning of its end',
      object,
      { ...object, isDeleting: true },
      'Mutation default/web is being deleted',
    ],
    ['its end', object, undefined, 'Mutation default/web is gone'],
  ])('tells of an object: %s', (_, before, after, text) => {
    expect(tellSight({ of: 'object', isNew: true, before, after })?.text).toBe(text)
  })

  it.each<[string, ChildSight | undefined, ChildSight | undefined, string | undefined]>([
    ['a new one', undefined, child, 'Deployment default/web-red created for Mutation web, 2 instances'],
    ['instances', child, { ...child, ready: 2 }, 'Deployment default/web-red has 2/2 ready'],
    ['nothing to see', child, { ...child, resourceVersion: '2' }, undefined],
    ['its end', child, undefined, 'Deployment default/web-red is gone'],
  ])('tells of a child: %s', (_, before, after, text) => {
    expect(tellSight({ of: 'child', isNew: true, before, after })?.text).toBe(text)
  })

  it('says nothing of what was there at the start', () => {
    expect(tellSight({ of: 'object', isNew: false, after: object })).toBeUndefined()
  })

  it('uses colours only where they can be seen', () => {
    const line = { word: 'lost', text: 'x', tone: 'bad' as const }
    expect(lineText(line, 1234, look(false))).toBe('   1.2 s  lost        x')
    expect(lineText(line, 1234, look(true))).toContain('\u001b[31m')
  })
})
