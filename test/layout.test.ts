import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'
import { describe, expect, it } from 'vitest'

/**
 * The repository reads itself: which folder may import which (the arrows of the architecture), how long a file may
 * be, and what may stand only in one place. A rule that hurts is changed here, on purpose, with a reason.
 */

const root = join(dirname(new URL(import.meta.url).pathname), '..')
const tracked = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], {
  cwd: root,
  encoding: 'utf8',
})
  .split('\n')
  .filter((file) => file.endsWith('.ts'))
const sources = tracked.filter((file) => !file.startsWith('test/') && file.includes('/'))

/** What each part may import besides itself. `shared` alone stands for the small files directly in shared/. */
const arrows: Record<string, string[]> = {
  'shared/kinds': [],
  shared: [],
  'shared/kube': ['shared/kinds', 'shared'],
  'shared/reconcile': ['shared/kinds', 'shared/kube', 'shared'],
  'shared/cloudevents': ['shared/kinds', 'shared'],
  'shared/resync': ['shared/kinds', 'shared/kube', 'shared/cloudevents', 'shared'],
  // Of cloudevents only the command knows: it plays tapes.
  'shared/runtime': ['shared/kinds', 'shared/kube', 'shared/cloudevents', 'shared'],
  'shared/watching': ['shared/kinds', 'shared/kube', 'shared/cloudevents', 'shared'],
  'shared/telemetry': ['shared/kube', 'shared/cloudevents', 'shared'],
  'shared/apiserver': ['shared/kinds', 'shared'],
  'shared/testing': ['shared/apiserver', 'shared/cloudevents'],
  'shared/local': ['shared/*', 'shared', 'knative'],
  functions: [
    'shared/kinds',
    'shared/kube',
    'shared/reconcile',
    'shared/cloudevents',
    'shared/resync',
    'shared/runtime',
    'shared/watching',
    'shared/telemetry',
    'shared',
  ],
  // The Triggers filter on the very types that are sent.
  knative: ['shared/kinds', 'shared/cloudevents', 'shared/runtime', 'shared'],
}

/** Decisions stay apart from I/O: these reach nothing that talks. */
const pure: Record<string, RegExp> = {
  ...Object.fromEntries(
    [
      'adoption',
      'base',
      'child-state',
      'coverage',
      'desired',
      'needs-work',
      'plan',
      'problems',
      'repair',
      'selector',
      'status',
      'values',
    ].map((name) => [`shared/reconcile/${name}.ts`, /^(shared\/kinds\/|shared\/reconcile\/)/]),
  ),
  'shared/runtime/lease.ts': /^shared\/kinds\//,
}

const partOf = (file: string) => {
  const [first = '', second = '', third] = file.split('/')
  return first === 'shared' && third !== undefined ? `${first}/${second}` : first
}

function importsOf(file: string): string[] {
  const text = readFileSync(join(root, file), 'utf8')
  const found = text.matchAll(/(?:from|import)\s*\(?\s*'(\.[^']+)'/g)
  return [...found].map(([, path = '']) => posix.join(posix.dirname(file), path))
}

function mayImport(from: string, to: string): boolean {
  const allowed = arrows[from] ?? []
  return from === to || allowed.includes(to) || (allowed.includes('shared/*') && to.startsWith('shared/'))
}

describe('the arrows between the parts', () => {
  it('each import follows an arrow', () => {
    const wrong = sources.flatMap((file) =>
      importsOf(file)
        .filter((target) => !target.endsWith('package.json') && !mayImport(partOf(file), partOf(target)))
        .map((target) => `${file} -> ${target}`),
    )
    expect(wrong).toEqual([])
  })

  it('no file imports itself around a circle', () => {
    const seen = new Set<string>()
    const circles: string[] = []
    const walk = (file: string, trail: string[]) => {
      if (trail.includes(file)) circles.push([...trail.slice(trail.indexOf(file)), file].join(' -> '))
      if (seen.has(file)) return
      seen.add(file)
      for (const target of importsOf(file)) if (sources.includes(target)) walk(target, [...trail, file])
    }
    for (const file of sources) walk(file, [])
    expect(circles).toEqual([])
  })

  it('what decides imports nothing that talks', () => {
    const wrong = Object.entries(pure).flatMap(([file, allowed]) =>
      sources.includes(file) ? importsOf(file).filter((target) => !allowed.test(target)) : [],
    )
    expect(wrong).toEqual([])
  })
})

/** A pattern, where it may stand all the same, and why it may not stand elsewhere. */
const bans: { pattern: RegExp; except: RegExp; why: string }[] = [
  {
    pattern: /\b(?:setTimeout|setInterval|Date\.now|Math\.random|AbortSignal\.timeout)\s*\(|new Date\(\)/,
    except: /^shared\/clock\.ts$/,
    why: 'time and chance come through the clock',
  },
  {
    pattern: /\bprocess\.(?:env|argv|exit|on|once)\b/,
    except:
      /^(functions\/main\.ts|shared\/local\/(?:run|processes\/tether)\.ts|knative\/[a-z-]+\.ts|shared\/runtime\/(?:cli|plugin)\.ts|shared\/cli\.ts)$/,
    // The plugin is installed by one call in an app of a user's, so it looks at the environment by itself.
    why: 'only a command touches the process; all else is handed what it needs',
  },
  {
    pattern: /\bconsole\./,
    except: /^knative\//,
    why: 'what is said goes to the log or to a writer handed in',
  },
  { pattern: /export default/, except: /^$/, why: 'names are the same everywhere' },
  { pattern: /\bas any\b|@ts-ignore|@ts-nocheck/, except: /^$/, why: 'types are told the truth' },
]

describe('what stands only in one place', () => {
  it.each(bans)('$why', ({ pattern, except }) => {
    const wrong = sources
      .filter((file) => !except.test(file))
      .filter((file) => pattern.test(withoutComments(readFileSync(join(root, file), 'utf8'))))
    expect(wrong).toEqual([])
  })
})

function withoutComments(text: string): string {
  return text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/^\s*\/\/.*$/gm, '')
}

describe('the size of things', () => {
  const linesMax = 300

  it(`a source file has at most ${linesMax} lines`, () => {
    const long = sources
      .map((file) => ({ file, lines: readFileSync(join(root, file), 'utf8').split('\n').length - 1 }))
      .filter(({ lines }) => lines > linesMax)
    expect(long).toEqual([])
  })
  it('a source file is not left without an importer', () => {
    const doors =
      /^(functions\/|knative\/|shared\/local\/(?:run|processes\/tether)\.ts|shared\/(?:runtime|apiserver|testing)\/)/
    const imported = new Set(tracked.flatMap(importsOf))
    expect(sources.filter((file) => !imported.has(file) && !doors.test(file))).toEqual([])
  })
})
