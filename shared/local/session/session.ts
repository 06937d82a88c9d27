import { join, relative, resolve } from 'node:path'
import { type Clock, TimeoutError, withTimeout } from '../../clock.ts'
import { resyncRequestType } from '../../cloudevents/envelope.ts'
import type { KubeObject } from '../../kinds/object.ts'
import { createLog } from '../../log.ts'
import { version } from '../../version.ts'
import { brokerTape } from '../events/tape.ts'
import { type KnativeReport, type LocalKnative, localKnative } from '../knative.ts'
import { readManifests, readObjects } from '../manifests/manifests.ts'
import { logFiles } from '../processes/log-files.ts'
import { type Api, openApi } from './api.ts'
import { claim } from './claim.ts'
import { applySample, install } from './install.ts'
import { goodbye, hints, type Look, lineText, undelivered } from './look.ts'
import { type Line, tellKnative, tellSight } from './narrator.ts'
import { type MutantSight, type Sight, type Spectator, spectator } from './spectator.ts'
import type { Terminal } from './terminal.ts'

export interface SessionOptions {
  /** The user's cluster; without it the embedded API. */
  cluster: { kubeconfig: string | undefined; context: string | undefined } | undefined
  samples: boolean
  /** End as soon as the samples (or, without them, the watcher) are ready. */
  exitWhenReady: boolean
  /** The project, in whose knative/ the manifests stand. */
  root: string
  /** Where this run's files go. */
  folder: string
  /** Where the embedded API keeps its objects; undefined: nowhere. */
  dataFolder: string | undefined
  /** Where the events that the broker accepts are recorded; undefined: nowhere. */
  tape: string | undefined
  /** The program that runs a function by its name. */
  program: string
  env: Record<string, string | undefined>
  clock: Clock
  look: Look
  terminal: Terminal
  /** Aborted to end the session. */
  signal: AbortSignal
}

/** With `exitWhenReady`: how long it may take, in ms. */
const readyWithinMs = 60_000

/** How long the samples wait for a watcher that watches, in ms; without one they are found by its resync. */
const watchingWithinMs = 3_000

/** A part that has started, and how it is stopped. */
type Stop = () => Promise<void>

/**
 * Runs everything on this machine until `signal` is aborted, or until all is ready with `exitWhenReady`. Gives the exit
 * code: 0, or 1 when it was not ready in time. Throws when something cannot be started; what had started is stopped.
 */
export async function session(options: SessionOptions): Promise<number> {
  const stops: Stop[] = []
  try {
    return await run(options, (stop) => stops.push(stop))
  } finally {
    // In reverse order; the first that fails does not skip the rest.
    for (const stop of stops.reverse())
      await stop().catch((error: unknown) => options.terminal.print(`Stopping: ${messageOf(error)}`))
  }
}

async function run(options: SessionOptions, onStarted: (stop: Stop) => void): Promise<number> {
  const { clock, root, folder, look } = options
  const { print, progress } = options.terminal
  const say = (line: Line | undefined) => {
    if (line) print(lineText(line, clock.monotonicMs(), look))
  }
  print(look.strong(`mutantops ${version}`))
  onStarted(await claim(folder))
  const files = logFiles(join(folder, 'logs'))
  onStarted(() => files.close())
  const manifests = await readManifests(join(root, 'knative'))
  const api = await openApi(options)
  onStarted(() => api.stop())
  await install(api.client, manifests.apiObjects, clock)

  const watcher = watcherSeen(clock)
  const tape =
    options.tape === undefined
      ? undefined
      : brokerTape(options.tape, (error) => print(`Not taped: ${messageOf(error)}`))
  onStarted(async () => tape?.close())
  const report = (one: KnativeReport) => {
    if (one.from === 'broker' && one.report.kind === 'accepted') tape?.record(one.report.event)
    if (one.from === 'output') files.write(one.name, one.line)
    watcher.look(one)
    say(tellKnative(one))
  }
  const env = { ...api.env, NODE_COMPILE_CACHE: join(folder, 'compile-cache') }
  const launch = { program: options.program, baseEnv: options.env, env: () => env }
  const knative = await localKnative({ manifests, launch, clock, report })
  onStarted(() => stopKnative(knative, api, print))
  printPlaces(options, api, knative)

  const watching = watchSamples(progress)
  const log = createLog({ name: 'local', destination: { write: (line) => files.write('local', line) } })
  const onSight = (sight: Sight) => {
    say(tellSight(sight))
    watching.look(spectating.objects())
  }
  const spectating: Spectator = spectator({ client: api.client, clock, log, onSight })
  onStarted(() => spectating.stop())

  const isReady = untilReady(options, { api, knative, spectating, watching, watches: watcher.watches, say })
  isReady.catch(() => {})
  return finish(options, isReady, api)
}

interface Parts {
  api: Api
  knative: LocalKnative
  spectating: Spectator
  watching: ReturnType<typeof watchSamples>
  watches(): Promise<void>
  say(line: Line | undefined): void
}

/** Applies the samples once somebody watches, and waits until they are ready. */
async function untilReady(
  { samples, root, terminal, look, clock }: SessionOptions,
  parts: Parts,
): Promise<void> {
  const { api, knative, spectating, watching, watches, say } = parts
  await Promise.all([knative.ready, spectating.synced])
  await watches()
  const found = spectating.objects().length
  if (found > 0)
    say({
      word: 'found',
      text: `${found} object${found === 1 ? '' : 's'} that ${found === 1 ? 'was' : 'were'} there already`,
      tone: 'plain',
    })
  if (!samples) return
  const objects = await readObjects(join(root, 'knative', 'samples'))
  for (const object of objects) {
    const { namespace, wasThere } = await applySample(api.client, object, api.namespace)
    watching.expect(object, namespace)
    say({
      word: wasThere ? 'kept' : 'applied',
      text: `${object.kind} ${namespace}/${object.metadata?.name}`,
      tone: 'plain',
    })
  }
  watching.look(spectating.objects())
  await watching.done
  terminal.print(look.good(`Both samples are Ready after ${(clock.monotonicMs() / 1000).toFixed(1)} s.`))
}

async function finish(options: SessionOptions, isReady: Promise<void>, api: Api): Promise<number> {
  const { clock, signal, look, exitWhenReady } = options
  const { print } = options.terminal
  const ended = new Promise<'ended'>((resolve) => {
    if (signal.aborted) resolve('ended')
    signal.addEventListener('abort', () => resolve('ended'), { once: true })
  })
  if (exitWhenReady) {
    try {
      const outcome = await withTimeout(clock, readyWithinMs, 'Getting ready', () =>
        Promise.race([isReady, ended]),
      )
      return outcome === 'ended' ? 1 : 0
    } catch (error) {
      if (!(error instanceof TimeoutError)) throw error
      print(look.bad(`Not ready within ${readyWithinMs / 1000} s; the logs are in ${options.folder}/logs`))
      return 1
    }
  }
  const outcome = await Promise.race([isReady, ended])
  if (outcome !== 'ended') {
    for (const line of hints({ ...options, api, kubeconfig: resolve(api.kubeconfig) })) print(line)
    await ended
  }
  print(look.quiet(goodbye(api)))
  return 0
}

async function stopKnative(knative: LocalKnative, api: Api, print: (text: string) => void): Promise<void> {
  const line = undelivered(await knative.stop(), api)
  if (line) print(line)
}

function printPlaces({ terminal: { print } }: SessionOptions, api: Api, knative: LocalKnative): void {
  print(`  API         ${api.describe}`)
  print(`  kubeconfig  ${shortened(api.kubeconfig)}`)
  print(`  events      ${knative.brokerUrl}/mutantops/default`)
  print(`  functions   ${knative.functionsUrl}/mutantops/NAME`)
  print('')
}

/** A path as a user in this folder would type it. */
function shortened(path: string): string {
  const here = relative('.', path)
  return here.startsWith('..') ? path : here
}

/** A watcher that is about to watch asks for a resync; where another one leads, it never does. */
function watcherSeen(clock: Clock) {
  let markSeen = () => {}
  const seen = new Promise<void>((resolve) => {
    markSeen = resolve
  })
  return {
    look(one: KnativeReport) {
      if (one.from !== 'broker' || one.report.kind !== 'accepted') return
      if (one.report.event.attributes.type === resyncRequestType) markSeen()
    },
    watches: () =>
      withTimeout(clock, watchingWithinMs, 'Watching', () => seen).catch((error: unknown) => {
        if (!(error instanceof TimeoutError)) throw error
      }),
  }
}

/** Knows which objects shall become ready, tells how far they are, and when all are ready. */
function watchSamples(progress: Terminal['progress']) {
  const wanted: { kind: string | undefined; namespace: string; name: string | undefined }[] = []
  let isComplete = () => {}
  const done = new Promise<void>((resolve) => {
    isComplete = resolve
  })
  return {
    done,
    expect({ kind, metadata }: KubeObject, namespace: string): void {
      wanted.push({ kind, namespace, name: metadata?.name })
    },
    look(objects: MutantSight[]): void {
      const missing = wanted.flatMap(({ kind, namespace, name }) => {
        const found = objects.find(
          (one) => one.kind === kind && one.namespace === namespace && one.name === name,
        )
        return found?.isReady ? [] : [`${name} (${found?.summary ?? 'nothing yet'})`]
      })
      progress(missing.length > 0 ? `          waiting for ${missing.join(' and ')}` : undefined)
      if (wanted.length > 0 && missing.length === 0) isComplete()
    },
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
