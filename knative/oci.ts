import { createHash } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { lstat, mkdtemp, readdir, readlink, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { type Header, type Pack, pack } from 'tar-stream'

/**
 * An OCI archive (image layout 1.0.0 in a tar: what `ctr images import`, `podman load`, `skopeo` and `docker load` take)
 * put together from folders. The same input gives the same bytes: entries are sorted, owned by root, and all of one time.
 */

export interface Layer {
  /** The folder on this machine. */
  folder: string
  /** Where its content goes in the image: '' for the root, or a path such as `app`. */
  at: string
  /** Whether a file is left out, by its path in the folder. Default none is. */
  leaveOut?: (path: string) => boolean
}

export interface ImageSpec {
  /** The full name with its tag: `mutantops:0.1.0`. */
  name: string
  /** As OCI names them: `amd64`, `arm64`. */
  architecture: string
  /** The time of the image and of every entry. */
  createdAt: Date
  /** The lowest first. */
  layers: Layer[]
  /** User, Entrypoint, Env, Labels … as in the OCI image configuration. */
  config: object
}

interface Blob {
  file: string
  mediaType: string
  digest: string
  size: number
}

/** The rest is filled in: a file, owned by root. */
type EntryHead = Partial<Header> & { name: string }

const media = {
  index: 'application/vnd.oci.image.index.v1+json',
  manifest: 'application/vnd.oci.image.manifest.v1+json',
  config: 'application/vnd.oci.image.config.v1+json',
  layer: 'application/vnd.oci.image.layer.v1.tar+gzip',
} as const

/**
 * Writes the archive to `file` and gives the digest of the manifest. Rejects where a folder cannot be read, or holds
 * anything but files, folders and symbolic links.
 */
export async function writeOciArchive(spec: ImageSpec, file: string): Promise<{ digest: string }> {
  const scratch = await mkdtemp(join(tmpdir(), 'mutantops-image-'))
  try {
    const layers: (Blob & { diffId: string })[] = []
    for (const [index, layer] of spec.layers.entries())
      layers.push(await layerBlob(layer, spec.createdAt, join(scratch, `layer-${index}`)))
    const config = await jsonBlob(join(scratch, 'config'), media.config, {
      created: spec.createdAt.toISOString(),
      architecture: spec.architecture,
      os: 'linux',
      config: spec.config,
      rootfs: { type: 'layers', diff_ids: layers.map(({ diffId }) => diffId) },
    })
    const manifest = await jsonBlob(join(scratch, 'manifest'), media.manifest, {
      schemaVersion: 2,
      mediaType: media.manifest,
      config: descriptor(config),
      layers: layers.map(descriptor),
    })
    await writeLayout(spec, manifest, [...layers, config, manifest], file)
    return { digest: manifest.digest }
  } finally {
    await rm(scratch, { recursive: true })
  }
}

/** Each blob once: two empty layers are one. */
async function writeLayout(spec: ImageSpec, manifest: Blob, blobs: Blob[], file: string): Promise<void> {
  const index = {
    schemaVersion: 2,
    mediaType: media.index,
    manifests: [
      {
        ...descriptor(manifest),
        platform: { architecture: spec.architecture, os: 'linux' },
        annotations: {
          'org.opencontainers.image.ref.name': spec.name.slice(spec.name.lastIndexOf(':') + 1),
          'io.containerd.image.name': spec.name,
        },
      },
    ],
  }
  const tar = pack()
  const written = pipeline(tar, createWriteStream(file))
  const mtime = spec.createdAt
  const filled = (async () => {
    tar.entry({ name: 'oci-layout', mtime }, JSON.stringify({ imageLayoutVersion: '1.0.0' }))
    tar.entry({ name: 'index.json', mtime }, JSON.stringify(index))
    tar.entry({ name: 'blobs/', type: 'directory', mtime })
    tar.entry({ name: 'blobs/sha256/', type: 'directory', mtime })
    for (const [digest, blob] of new Map(blobs.map((one) => [one.digest, one])))
      await addFile(tar, { name: `blobs/${digest.replace(':', '/')}`, size: blob.size, mtime }, blob.file)
    tar.finalize()
  })()
  await both(tar, filled, written)
}

async function layerBlob(layer: Layer, mtime: Date, file: string): Promise<Blob & { diffId: string }> {
  const tar = pack()
  const plain = digesting()
  const packed = digesting()
  const written = pipeline(tar, plain.stream, createGzip(), packed.stream, createWriteStream(file))
  await both(tar, addFolder(tar, layer, mtime), written)
  return { file, mediaType: media.layer, ...packed.result(), diffId: plain.result().digest }
}

async function addFolder(tar: Pack, { folder, at, leaveOut }: Layer, mtime: Date): Promise<void> {
  if (at !== '') tar.entry({ name: `${at}/`, type: 'directory', mode: 0o755, mtime })
  const paths = (await readdir(folder, { recursive: true })).sort()
  for (const path of paths) {
    if (leaveOut?.(path)) continue
    const source = join(folder, path)
    const stat = await lstat(source)
    const head: EntryHead = { name: at === '' ? path : `${at}/${path}`, mode: stat.mode & 0o7777, mtime }
    if (stat.isDirectory()) tar.entry({ ...head, name: `${head.name}/`, type: 'directory' })
    else if (stat.isSymbolicLink())
      tar.entry({ ...head, type: 'symlink', linkname: await readlink(source), size: 0 })
    else if (stat.isFile()) await addFile(tar, { ...head, size: stat.size }, source)
    else throw new Error(`Cannot put ${source} into an image: it is no file, folder or symbolic link`)
  }
  tar.finalize()
}

async function addFile(tar: Pack, head: EntryHead, source: string): Promise<void> {
  if (head.size === 0) {
    tar.entry(head, '')
    return
  }
  await pipeline(createReadStream(source), tar.entry(head))
}

/** Waits for what fills a tar and what takes it; where one fails the other is ended too. */
async function both(tar: Pack, filled: Promise<void>, written: Promise<void>): Promise<void> {
  const filledOrEnded = filled.catch((error) => {
    tar.destroy(error)
    throw error
  })
  const results = await Promise.allSettled([filledOrEnded, written])
  for (const result of results) if (result.status === 'rejected') throw result.reason
}

function digesting(): { stream: Transform; result(): { digest: string; size: number } } {
  const hash = createHash('sha256')
  let size = 0
  const stream = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      hash.update(chunk)
      size += chunk.length
      done(null, chunk)
    },
  })
  return { stream, result: () => ({ digest: `sha256:${hash.digest('hex')}`, size }) }
}

async function jsonBlob(file: string, mediaType: string, value: object): Promise<Blob> {
  const text = JSON.stringify(value)
  await writeFile(file, text)
  const digest = `sha256:${createHash('sha256').update(text).digest('hex')}`
  return { file, mediaType, digest, size: Buffer.byteLength(text) }
}

function descriptor({ mediaType, digest, size }: Blob): object {
  return { mediaType, digest, size }
}
