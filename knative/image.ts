import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs, promisify } from 'node:util'
import { version } from '../shared/version.ts'
import { image, port } from './names.ts'
import { type ImageSpec, writeOciArchive } from './oci.ts'

/**
 * `npm run image:oci -- --base FOLDER [--out FILE] [--name NAME:TAG] [--revision COMMIT]`: the image of the Dockerfile
 * without a Docker daemon, as an OCI archive, from dist/ (which it builds) and a base folder.
 *
 * The base is the root of a small Linux with Node at /usr/local/bin/node; of the same version that built dist/, or the
 * compile cache is of no use. SOURCE_DATE_EPOCH is the image's time, in seconds; default 1970, so that the same input
 * gives the same image.
 */

/** What the image says about itself; the Dockerfile says the same. */
export function imageConfig(revision: string): object {
  return {
    User: '65532:65532',
    WorkingDir: '/app',
    Entrypoint: ['/usr/local/bin/node', '/app/main.js'],
    Env: ['PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', 'NODE_ENV=production'],
    ExposedPorts: { [`${port}/tcp`]: {} },
    Labels: {
      'org.opencontainers.image.title': 'mutantops',
      'org.opencontainers.image.description':
        'A serverless Kubernetes operator that runs many variants of one Deployment',
      'org.opencontainers.image.licenses': 'Apache-2.0',
      'org.opencontainers.image.version': version,
      'org.opencontainers.image.revision': revision,
    },
  }
}

export interface ImageOptions {
  /** The root of a small Linux with Node. */
  base: string
  /** What `npm run build` wrote. */
  dist: string
  name?: string
  revision?: string
  /** Seconds since 1970. */
  epochSeconds?: number
  /** As Node names it: `x64`, `arm64`. */
  arch: string
}

export function imageSpec(options: ImageOptions): ImageSpec {
  const { base, dist, name = image, revision = 'unknown', epochSeconds = 0, arch } = options
  return {
    name,
    architecture: arch === 'x64' ? 'amd64' : arch,
    createdAt: new Date(epochSeconds * 1_000),
    layers: [
      { folder: base, at: '' },
      { folder: dist, at: 'app', leaveOut: (path) => path.endsWith('.map') },
    ],
    config: imageConfig(revision),
  }
}

const dist = join(import.meta.dirname, '../dist')

function flags() {
  return parseArgs({
    options: {
      base: { type: 'string' },
      dist: { type: 'string', default: dist },
      out: { type: 'string', default: join(dist, '../mutantops.oci.tar') },
      name: { type: 'string', default: image },
      revision: { type: 'string', default: 'unknown' },
    },
  }).values
}

/**
 * What is wrong with a base: it has no Node, or one of another version than this process, to which the compile cache is
 * worth nothing. Undefined when nothing is, or when its Node does not run on this machine, so that nobody can tell.
 */
export async function baseProblem(base: string): Promise<string | undefined> {
  const node = join(base, 'usr/local/bin/node')
  if (!existsSync(node))
    return `${base} has no usr/local/bin/node: it must be the root of a small Linux with Node`
  const found = await promisify(execFile)(node, ['--version']).then(
    ({ stdout }) => stdout.trim(),
    () => process.version,
  )
  return found === process.version
    ? undefined
    : `${node} is ${found}, and the build runs on ${process.version}`
}

async function main(): Promise<void> {
  let values: ReturnType<typeof flags>
  try {
    values = flags()
  } catch (error) {
    return fail((error as Error).message)
  }
  const { base } = values
  if (!base)
    return fail('--base FOLDER is missing: the root of a small Linux with Node at /usr/local/bin/node')
  const problem = await baseProblem(base)
  if (problem) return fail(problem)
  if (values.dist === dist)
    await promisify(execFile)(process.execPath, [join(import.meta.dirname, 'build.ts')])
  const spec = imageSpec({
    ...values,
    base,
    arch: process.arch,
    epochSeconds: Number(process.env.SOURCE_DATE_EPOCH ?? 0),
  })
  const { digest } = await writeOciArchive(spec, resolve(values.out))
  process.stdout.write(`${values.name}@${digest}\n${resolve(values.out)}\n`)
}

function fail(message: string): void {
  process.stderr.write(`${message}\n`)
  process.exitCode = 2
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main()
