import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { version } from '../shared/version.ts'
import { image, port } from './names.ts'
import { type ImageSpec, writeOciArchive } from './oci.ts'

/**
 * `npm run image:oci -- --base FOLDER [--out FILE] [--name NAME:TAG] [--revision COMMIT]`: the image of the Dockerfile
 * without a Docker daemon, as an OCI archive, from dist/ (`npm run build`) and a base folder.
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

async function main(): Promise<void> {
  const dist = join(import.meta.dirname, '../dist')
  const { values } = parseArgs({
    options: {
      base: { type: 'string' },
      dist: { type: 'string', default: dist },
      out: { type: 'string', default: join(dist, '../mutantops.oci.tar') },
      name: { type: 'string', default: image },
      revision: { type: 'string', default: 'unknown' },
    },
  })
  if (!values.base) {
    process.stderr.write(
      '--base FOLDER is missing: the root of a small Linux with Node at /usr/local/bin/node\n',
    )
    process.exitCode = 2
    return
  }
  const spec = imageSpec({
    ...values,
    base: values.base,
    arch: process.arch,
    epochSeconds: Number(process.env.SOURCE_DATE_EPOCH ?? 0),
  })
  const { digest } = await writeOciArchive(spec, resolve(values.out))
  process.stdout.write(`${values.name}@${digest}\n${resolve(values.out)}\n`)
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main()
