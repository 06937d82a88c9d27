import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { binaries, binaryNames, cacheFolder, findBinaries } from './binaries.ts'

const folders: string[] = []
afterEach(async () => {
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true })
})

async function emptyFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'binaries-'))
  folders.push(folder)
  return folder
}

async function putBinary(folder: string, name: string): Promise<void> {
  await mkdir(folder, { recursive: true })
  await writeFile(join(folder, name), '')
  await chmod(join(folder, name), 0o755)
}

describe('the binaries of the control plane', () => {
  it('are taken from KUBEBUILDER_ASSETS first, and what it lacks from the cache', async () => {
    const env = { KUBEBUILDER_ASSETS: await emptyFolder(), XDG_CACHE_HOME: await emptyFolder() }
    for (const name of ['etcd', 'kube-apiserver']) await putBinary(env.KUBEBUILDER_ASSETS, name)
    for (const name of binaryNames) await putBinary(cacheFolder(env), name)
    const found = await binaries(() => {}, env)
    expect(found.etcd).toBe(join(env.KUBEBUILDER_ASSETS, 'etcd'))
    expect(found['kube-apiserver']).toBe(join(env.KUBEBUILDER_ASSETS, 'kube-apiserver'))
    expect(found['kube-controller-manager']).toBe(join(cacheFolder(env), 'kube-controller-manager'))
  })

  it('are not found where a file of the name cannot be run', async () => {
    const env = { XDG_CACHE_HOME: await emptyFolder() }
    await mkdir(cacheFolder(env), { recursive: true })
    await writeFile(join(cacheFolder(env), 'etcd'), '')
    expect(await findBinaries(env)).toEqual({})
  })
})
