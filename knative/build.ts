import { spawn } from 'node:child_process'
import { chmod, mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { build, type Metafile, type Plugin } from 'esbuild'
import { objectEvent } from '../shared/cloudevents/envelope.ts'
import { binaryOf } from '../shared/cloudevents/write.ts'

/**
 * `npm run build` (`node knative/build.ts [FOLDER]`): bundles what the image runs into dist/, or another folder.
 *
 * - `main.js NAME` runs one function; it switches V8's compile cache on and loads the rest.
 * - `app.js` is all that a function needs in a pod: one file, since each module read costs time at a cold start.
 * - `client-node.js` is what reads a kubeconfig, and `undici.js` what goes through its proxy: heavy, and never needed in a
 *   pod, so loaded on demand; `otlp.js` is what sends traces and metrics where somebody wants them.
 * - `cache/` is the compile cache, filled by running the function once, with one event.
 */

const root = join(import.meta.dirname, '..')
const dist = resolve(process.argv[2] ?? join(root, 'dist'))
/** What is loaded on demand: how it is imported, the file that it goes to, and what stands in that. */
const onDemand: { imported: RegExp; file: string; contents: string }[] = [
  {
    imported: /^@kubernetes\/client-node$/,
    file: 'client-node.js',
    contents: "export { KubeConfig } from '@kubernetes/client-node'",
  },
  {
    imported: /^undici$/,
    file: 'undici.js',
    contents: "export { fetch, ProxyAgent, Socks5ProxyAgent } from 'undici'",
  },
  {
    imported: /\/telemetry\/otlp\.ts$/,
    file: 'otlp.js',
    contents: "export { otlp } from './shared/telemetry/otlp.ts'",
  },
]
const warmUpTimeoutMs = 30_000

const common = {
  absWorkingDir: root,
  bundle: true,
  platform: 'node',
  format: 'esm',
  target: 'node24',
  minify: true,
  sourcemap: true,
  metafile: true,
  logLevel: 'warning',
  // What was written for CommonJS asks for its modules this way.
  banner: { js: "import{createRequire as __r}from'node:module';const require=__r(import.meta.url);" },
} as const

const apart: Plugin = {
  name: 'on demand',
  setup(build) {
    for (const { imported, file } of onDemand)
      build.onResolve({ filter: imported }, () => ({ path: `./${file}`, external: true }))
  },
}

const start = `import { enableCompileCache } from 'node:module'
import { fileURLToPath } from 'node:url'
enableCompileCache({ directory: fileURLToPath(new URL('cache', import.meta.url)), portable: true })
await import('./app.js')
`

async function bundle(): Promise<Metafile[]> {
  const results = await Promise.all([
    build({ ...common, entryPoints: ['functions/main.ts'], outfile: join(dist, 'app.js'), plugins: [apart] }),
    ...onDemand.map(({ file, contents }) =>
      build({ ...common, stdin: { contents, resolveDir: root }, outfile: join(dist, file) }),
    ),
  ])
  return results.map(({ metafile }) => metafile)
}

/** Runs a function once with one event, so that what a cold start compiles is in the cache. */
async function warmUp(): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'mutantops-build-'))
  await writeFile(join(folder, 'token'), 'none')
  const child = spawn(process.execPath, [join(dist, 'main.js'), 'mutation'], {
    env: {
      HOST: '127.0.0.1',
      PORT: '0',
      // Nobody listens there: the event is put off, which compiles most of what a reconcile needs.
      KUBERNETES_SERVICE_HOST: '127.0.0.1',
      KUBERNETES_SERVICE_PORT: '9',
      SERVICE_ACCOUNT_FOLDER: folder,
    },
    stdio: ['ignore', 'pipe', 'inherit'],
    timeout: warmUpTimeoutMs,
  })
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve))
  try {
    const answer = await postEvent(await portOf(child.stdout, ended))
    child.kill('SIGTERM')
    const code = await ended
    if (answer !== 503 || code !== 0)
      throw new Error(`The bundle does not work: it answered ${answer} and ended with ${code}`)
  } finally {
    child.kill('SIGKILL')
    await ended
    await rm(folder, { recursive: true })
  }
}

/** The port that a function says it listens on. */
function portOf(output: NodeJS.ReadableStream, ended: Promise<number | null>): Promise<number> {
  return new Promise((resolve, reject) => {
    createInterface({ input: output }).on('line', (line) => {
      const entry: { msg: string; port: number } = JSON.parse(line)
      if (entry.msg === 'listening') resolve(entry.port)
    })
    ended.then(
      (code) => reject(new Error(`The bundle ended with ${code} before it listened`)),
      () => {},
    )
  })
}

/** Posts the event of some object and gives the status of the answer. */
async function postEvent(port: number): Promise<number> {
  const owner = { apiVersion: 'neiam.org/v1', kind: 'Mutation', namespace: 'warm', name: 'up', uid: 'u' }
  const { headers, body } = binaryOf(
    objectEvent({ cluster: 'build', verb: 'resync', owner, tick: 'build', cause: 'resync' }),
  )
  const answer = await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', headers, body: String(body) })
  return answer.status
}

/** Node writes its cache for its own user alone; in the image another one reads it. */
async function makeReadable(): Promise<void> {
  const entries = await readdir(join(dist, 'cache'), { recursive: true, withFileTypes: true })
  for (const entry of entries) if (entry.isFile()) await chmod(join(entry.parentPath, entry.name), 0o644)
}

function report(metafiles: Metafile[]): void {
  for (const { outputs } of metafiles)
    for (const [file, { bytes }] of Object.entries(outputs))
      if (!file.endsWith('.map'))
        process.stdout.write(`${file.padEnd(24)} ${String(Math.ceil(bytes / 1024)).padStart(6)} KiB\n`)
}

await rm(dist, { recursive: true, force: true })
await mkdir(dist)
const metafiles = await bundle()
await writeFile(join(dist, 'main.js'), start)
// dist is ES modules wherever it is put.
await writeFile(join(dist, 'package.json'), '{"type":"module"}\n')
await warmUp()
await makeReadable()
report(metafiles)
