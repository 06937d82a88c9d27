import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { availableParallelism, tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { type Break, breaks } from './breaks.ts'

/**
 * `npm run test:breaks [-- WORD]`: breaks the code on purpose in a copy of the repository, one way at a time, and says
 * which tests see it, in BREAKS.md beside this file. With a word only the breaks whose names have it; the other rows stay.
 * Ends with 1 when one was seen by none.
 */

const run = promisify(execFile)
const repository = fileURLToPath(new URL('../../', import.meta.url))
const seeds = '200'
const suiteTimeoutMs = 180_000

/** The tests of a part stand where the part stands; the watcher's parts are also tried as a whole. */
function partTests(file: string): string[] {
  const own = file.startsWith('functions/') ? 'test/functions' : dirname(file).replace('shared', 'test')
  return own === 'test/watching' ? [own, 'test/functions'] : [own]
}

interface Suite {
  name: string
  paths: (one: Break) => string[]
}

const suites: Suite[] = [
  {
    name: 'random faults',
    paths: () => ['test/simulation/even-seeds.test.ts', 'test/simulation/odd-seeds.test.ts'],
  },
  { name: 'kill points', paths: () => ['test/simulation/kill-points.test.ts'] },
  { name: 'replay', paths: () => ['test/replay'] },
  { name: 'request counts', paths: () => ['test/e2e/counts.test.ts'] },
  { name: 'the part’s tests', paths: ({ file }) => partTests(file) },
]

interface Report {
  testResults: { status: string; message: string; assertionResults: { status: string; fullName: string }[] }[]
}

/** The name of the first test that fails in the copy, or undefined when all pass. */
async function firstFailure(copy: string, paths: string[]): Promise<string | undefined> {
  const output = join(copy, 'report.json')
  const vitest = join(copy, 'node_modules/vitest/vitest.mjs')
  const workers = `--maxWorkers=${availableParallelism()}`
  const reporter = ['--reporter=json', `--outputFile.json=${output}`]
  await rm(output, { force: true })
  await run(
    process.execPath,
    [vitest, 'run', '--project', 'unit', '--bail=1', workers, ...reporter, ...paths],
    {
      cwd: copy,
      env: { ...process.env, SEEDS: seeds },
      maxBuffer: 2 ** 26,
      // A broken part may never end; what has been reported by then counts.
      timeout: suiteTimeoutMs,
      killSignal: 'SIGKILL',
    },
  ).catch(() => {})
  const { testResults } = JSON.parse(await readFile(output, 'utf8')) as Report
  const failed = testResults.flatMap(({ assertionResults }) => assertionResults)
  const unprepared = testResults.find(({ status, message }) => status === 'failed' && message !== '')
  return failed.find(({ status }) => status === 'failed')?.fullName ?? unprepared?.message.split('\n')[0]
}

/** What is broken so badly that it does not load would be seen by every test, and say nothing. */
async function mustLoad(path: string): Promise<void> {
  await run(process.execPath, ['--input-type=module', '--eval', `await import(${JSON.stringify(path)})`])
}

/** Which suites see a break. */
async function seenBy(copy: string, one: Break): Promise<{ suite: string; test: string }[]> {
  const path = join(copy, one.file)
  const whole = await readFile(path, 'utf8')
  if (whole.split(one.find).length !== 2) throw new Error(`${one.file} does not have once: ${one.find}`)
  await writeFile(
    path,
    whole.replace(one.find, () => one.replace),
  )
  await mustLoad(path)
  const seen: { suite: string; test: string }[] = []
  for (const { name, paths } of suites) {
    const test = await firstFailure(copy, paths(one))
    if (test !== undefined) seen.push({ suite: name, test })
  }
  await writeFile(path, whole)
  return seen
}

async function copyOfRepository(): Promise<string> {
  const copy = await mkdtemp(join(tmpdir(), 'mutantops-breaks-'))
  const { stdout } = await run('git', ['ls-files', '-z'], { cwd: repository, maxBuffer: 2 ** 26 })
  for (const file of stdout.split('\0').filter(Boolean)) {
    await mkdir(dirname(join(copy, file)), { recursive: true })
    await cp(join(repository, file), join(copy, file))
  }
  await symlink(join(repository, 'node_modules'), join(copy, 'node_modules'))
  return copy
}

const heading = `# The code broken on purpose

What each test can see. Each row is one change of the code ([breaks.ts](breaks.ts)), and which tests then failed. Made by
\`npm run test:breaks\`; ${seeds} seeds of random faults.

`

interface Row {
  one: Break
  /** Of each suite, whether it saw the break. */
  marks: string[]
}

const document = new URL('BREAKS.md', import.meta.url)
const nameOf = ({ promise, what }: Break) => `${promise} | ${what}`

/** The table with new rows; those of breaks that were not tried now stay as they are. */
async function withRows(rows: Row[]): Promise<string> {
  const before = await readFile(document, 'utf8').catch(() => '')
  const lines = breaks.map((one) => {
    const tried = rows.find((row) => row.one === one)
    if (tried) return `| ${[nameOf(one), ...tried.marks].join(' | ')} |`
    return (
      before.split('\n').find((line) => line.startsWith(`| ${nameOf(one)} |`)) ??
      `| ${nameOf(one)} | not tried |`
    )
  })
  const names = suites.map(({ name }) => name)
  const head = [
    `| promise | broken by | ${names.join(' | ')} |`,
    `| --- | --- | ${names.map(() => '---').join(' | ')} |`,
  ]
  return heading + [...head, ...lines, ''].join('\n')
}

const [word] = process.argv.slice(2)
const copy = await copyOfRepository()
const rows: Row[] = []
let unseen = 0
try {
  for (const one of breaks.filter(({ promise, what }) => !word || `${promise}: ${what}`.includes(word))) {
    const seen = await seenBy(copy, one)
    rows.push({
      one,
      marks: suites.map(({ name }) => (seen.some(({ suite }) => suite === name) ? 'seen' : '')),
    })
    if (seen.length === 0) unseen++
    const by = seen.length === 0 ? 'NONE' : seen.map(({ suite, test }) => `${suite} (${test})`).join('; ')
    process.stdout.write(`${one.what}: ${by}\n`)
  }
} finally {
  await rm(copy, { recursive: true, force: true })
}
await writeFile(document, await withRows(rows))
process.exitCode = unseen === 0 ? 0 : 1
