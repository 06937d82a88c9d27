import { execFile, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { gunzipSync } from 'node:zlib'
import { extract, type Header } from 'tar-stream'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { baseProblem, imageConfig, imageSpec } from '../../knative/image.ts'
import { writeOciArchive } from '../../knative/oci.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
const run = promisify(execFile)

interface Entry {
  header: Header
  content: Buffer
}
interface Descriptor {
  mediaType: string
  digest: string
  size: number
}

async function entriesOf(tar: Buffer): Promise<Map<string, Entry>> {
  const entries = new Map<string, Entry>()
  for await (const entry of Readable.from([tar]).pipe(extract())) {
    const chunks: Buffer[] = []
    for await (const chunk of entry) chunks.push(chunk as Buffer)
    entries.set(entry.header.name, { header: entry.header, content: Buffer.concat(chunks) })
  }
  return entries
}

const sha256 = (data: Buffer) => `sha256:${createHash('sha256').update(data).digest('hex')}`

/** Reads an archive as a container engine does: from the index down, each blob by its digest. */
async function imageIn(file: string) {
  const archive = await entriesOf(await readFile(file))
  const json = (name: string) => JSON.parse(archive.get(name)?.content.toString() ?? 'null')
  const blob = ({ digest, size }: Descriptor) => {
    const content = archive.get(`blobs/${digest.replace(':', '/')}`)?.content ?? Buffer.alloc(0)
    expect({ digest: sha256(content), size: content.length }).toEqual({ digest, size })
    return content
  }
  const index = json('index.json')
  const manifest = JSON.parse(blob(index.manifests[0]).toString())
  const config = JSON.parse(blob(manifest.config).toString())
  const layers = manifest.layers.map((layer: Descriptor) => gunzipSync(blob(layer))) as Buffer[]
  return { archive, layout: json('oci-layout'), index, manifest, config, layers }
}

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'mutantops-image-test-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

async function smallSpec() {
  const [base, dist] = [join(folder, 'small/base'), join(folder, 'small/dist')]
  await rm(join(folder, 'small'), { recursive: true, force: true })
  await mkdir(join(base, 'usr/local/bin'), { recursive: true })
  await writeFile(join(base, 'usr/local/bin/node'), 'node', { mode: 0o755 })
  await symlink('usr/local/bin', join(base, 'bin'))
  await mkdir(join(dist, 'cache'), { recursive: true })
  await writeFile(join(dist, 'main.js'), 'main', { mode: 0o644 })
  await writeFile(join(dist, 'app.js.map'), 'map')
  await writeFile(join(dist, 'cache/empty'), '')
  return imageSpec({ base, dist, name: 'registry.example/mutantops:9', revision: 'abc', arch: 'x64' })
}

describe('a base', () => {
  it('without Node is refused, and so is one with another version; one that does not run here is taken', async () => {
    const base = join(folder, 'checked')
    const node = join(base, 'usr/local/bin/node')
    await mkdir(dirname(node), { recursive: true })
    expect(await baseProblem(base)).toContain('has no usr/local/bin/node')
    await writeFile(node, '#!/bin/sh\necho v18.0.0\n', { mode: 0o755 })
    expect(await baseProblem(base)).toBe(`${node} is v18.0.0, and the build runs on ${process.version}`)
    await writeFile(node, 'for another machine', { mode: 0o644 })
    expect(await baseProblem(base)).toBeUndefined()
    await rm(node)
    await symlink(process.execPath, node)
    expect(await baseProblem(base)).toBeUndefined()
  })
})

describe('the OCI archive', () => {
  it('leads from the index to each layer, every blob under its own digest', async () => {
    const file = join(folder, 'a.tar')
    const { digest } = await writeOciArchive(await smallSpec(), file)
    const { layout, index, manifest, config, layers, archive } = await imageIn(file)
    expect(layout).toEqual({ imageLayoutVersion: '1.0.0' })
    expect(index.manifests).toEqual([
      expect.objectContaining({
        digest,
        platform: { architecture: 'amd64', os: 'linux' },
        annotations: {
          'org.opencontainers.image.ref.name': '9',
          'io.containerd.image.name': 'registry.example/mutantops:9',
        },
      }),
    ])
    expect(config).toMatchObject({ architecture: 'amd64', os: 'linux', config: imageConfig('abc') })
    expect(config.rootfs).toEqual({ type: 'layers', diff_ids: layers.map(sha256) })
    const blobs = [...archive.keys()].filter((name) => /^blobs\/sha256\/./.test(name))
    expect(blobs).toHaveLength(2 + manifest.layers.length)
  })

  it('has the base at its root and dist in /app, all of it owned by root, the source maps left out', async () => {
    const file = join(folder, 'b.tar')
    await writeOciArchive(await smallSpec(), file)
    const [base = new Map<string, Entry>(), app = new Map<string, Entry>()] = await Promise.all(
      (await imageIn(file)).layers.map(entriesOf),
    )
    expect([...app.keys()]).toEqual(['app/', 'app/cache/', 'app/cache/empty', 'app/main.js'])
    expect(app.get('app/main.js')?.content.toString()).toBe('main')
    expect(base.get('usr/local/bin/node')?.header.mode).toBe(0o755)
    expect(base.get('bin')?.header).toMatchObject({ type: 'symlink', linkname: 'usr/local/bin' })
    for (const { header } of [...base.values(), ...app.values()])
      expect({ uid: header.uid, gid: header.gid, mtime: header.mtime?.getTime() }).toEqual({
        uid: 0,
        gid: 0,
        mtime: 0,
      })
  })

  it('is the same to the byte when it is made again from the same files', async () => {
    const [first, second] = [join(folder, 'c.tar'), join(folder, 'd.tar')]
    await writeOciArchive(await smallSpec(), first)
    await writeOciArchive(await smallSpec(), second)
    expect(sha256(await readFile(first))).toBe(sha256(await readFile(second)))
  })

  it('is not made where a folder is missing, and says which', async () => {
    const spec = imageSpec({ base: join(folder, 'nowhere'), dist: folder, arch: 'x64' })
    await expect(writeOciArchive(spec, join(folder, 'e.tar'))).rejects.toThrow(/nowhere/)
  })
})

describe('the Dockerfile', () => {
  it('makes the same image as the archive, with the Node that the tests run', async () => {
    const text = await readFile(join(root, 'knative/Dockerfile'), 'utf8')
    const final = text.slice(text.lastIndexOf('\nFROM')).replace(/\\\n\s*/g, '')
    const line = (word: string) => final.match(new RegExp(`^${word} (.*)$`, 'm'))?.[1] ?? ''
    const argument = (name: string) => text.match(new RegExp(`^ARG ${name}=(.*)$`, 'm'))?.[1] ?? ''
    const { version, devDependencies } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'))
    expect(argument('NODE_VERSION')).toBe(devDependencies.node)
    expect(argument('VERSION')).toBe(version)
    const labels = [...line('LABEL').matchAll(/([a-z.]+)="([^"]*)"/g)].map(([, name, value]) => [
      name,
      value?.replace(/^\$\{(\w+)\}$/, (_, given) => argument(given)),
    ])
    expect({
      User: line('USER'),
      WorkingDir: line('WORKDIR'),
      Entrypoint: JSON.parse(line('ENTRYPOINT')),
      ExposedPorts: { [`${line('EXPOSE')}/tcp`]: {} },
      Labels: Object.fromEntries(labels),
      Env: expect.arrayContaining([line('ENV')]),
    }).toEqual(imageConfig('unknown'))
  })
})

/** What a program is linked with, as ldd tells. */
async function librariesOf(program: string): Promise<string[]> {
  const { stdout } = await run('ldd', [program])
  return [...stdout.matchAll(/(\/\S+) \(0x/g)].map(([, path = '']) => path)
}

const canChroot = process.platform === 'linux' && process.getuid?.() === 0

describe.skipIf(!canChroot)('the root file system of the archive (needs Linux and root, for chroot)', () => {
  it('runs a function as a user that owns nothing', { timeout: 120_000 }, async () => {
    const [base, dist, unpacked] = ['base', 'dist', 'rootfs'].map((name) => join(folder, name)) as [
      string,
      string,
      string,
    ]
    await run(process.execPath, [join(root, 'knative/build.ts'), dist])
    for (const library of await librariesOf(process.execPath)) {
      await mkdir(join(base, dirname(library)), { recursive: true })
      await cp(library, join(base, library), { dereference: true })
    }
    await mkdir(join(base, 'usr/local/bin'), { recursive: true })
    await cp(process.execPath, join(base, 'usr/local/bin/node'), { dereference: true })
    const file = join(folder, 'real.tar')
    await writeOciArchive(imageSpec({ base, dist, arch: process.arch }), file)

    const { layers, config } = await imageIn(file)
    await mkdir(unpacked)
    for (const [index, layer] of layers.entries()) {
      await writeFile(join(folder, `layer-${index}.tar`), layer)
      await run('tar', ['-xf', join(folder, `layer-${index}.tar`), '-C', unpacked])
    }
    await mkdir(join(unpacked, 'account'))
    await writeFile(join(unpacked, 'account/token'), 'none')
    const { User, Entrypoint } = config.config
    const child = spawn('chroot', [`--userspec=${User}`, unpacked, ...Entrypoint, 'mutation'], {
      env: {
        PATH: process.env.PATH,
        HOST: '127.0.0.1',
        PORT: '0',
        KUBERNETES_SERVICE_HOST: '127.0.0.1',
        KUBERNETES_SERVICE_PORT: '9',
        SERVICE_ACCOUNT_FOLDER: '/account',
      },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const ended = new Promise<number | null>((resolve) => {
      child.once('close', resolve)
      child.once('error', () => resolve(null))
    })
    try {
      let port = 0
      for await (const line of createInterface({ input: child.stdout })) {
        const entry: { msg: string; port: number } = JSON.parse(line)
        port = entry.port
        if (entry.msg === 'listening') break
      }
      expect((await fetch(`http://127.0.0.1:${port}/livez`)).status).toBe(204)
      const { stdout: user } = await run('stat', ['-c', '%u:%g', `/proc/${child.pid}`])
      expect(user.trim()).toBe(User)
      child.kill('SIGTERM')
      expect(await ended).toBe(0)
    } finally {
      child.kill('SIGKILL')
      await ended
    }
  })
})
