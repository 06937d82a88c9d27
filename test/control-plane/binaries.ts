import { spawn } from 'node:child_process'
import { constants } from 'node:fs'
import { access, mkdir, mkdtemp, rename, rm } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'

/** The published Kubernetes that the tests run against; go.mod requires the same. */
export const kubernetesVersion = 'v1.36.3'

/** Each binary and the Go package of its main, a `tool` of the go.mod beside this file. */
const packages = {
  etcd: 'go.etcd.io/etcd/server/v3',
  'kube-apiserver': 'k8s.io/kubernetes/cmd/kube-apiserver',
  kubectl: 'k8s.io/kubernetes/cmd/kubectl',
  'kube-controller-manager': 'k8s.io/kubernetes/cmd/kube-controller-manager',
} as const

export type BinaryName = keyof typeof packages
export const binaryNames = Object.keys(packages) as BinaryName[]

/** Where the binaries are, by name. */
export type Binaries = Record<BinaryName, string>

type Environment = Record<string, string | undefined>

/** The folder that holds this version's binaries: under XDG_CACHE_HOME, or ~/.cache. */
export function cacheFolder(env: Environment = process.env): string {
  return join(
    env.XDG_CACHE_HOME || join(homedir(), '.cache'),
    'mutantops',
    'control-plane',
    kubernetesVersion,
  )
}

/**
 * Finds each binary in the folder KUBEBUILDER_ASSETS (the envtest convention), which is honoured first, or in the
 * cache. Gives those it found; envtest's folder has no kube-controller-manager, so the two are mixed.
 */
export async function findBinaries(env: Environment = process.env): Promise<Partial<Binaries>> {
  const folders = [env.KUBEBUILDER_ASSETS, cacheFolder(env)].filter((folder) => folder !== undefined)
  const found: Partial<Binaries> = {}
  for (const name of binaryNames)
    for (const folder of folders)
      if (found[name] === undefined && (await isExecutable(join(folder, name))))
        found[name] = join(folder, name)
  return found
}

/**
 * Finds the binaries and builds those that are missing, telling `say` what it does (about six minutes for all of them
 * on two cores). Throws an error that says what is missing when there is no Go to build with.
 */
export async function binaries(
  say: (line: string) => void,
  env: Environment = process.env,
): Promise<Binaries> {
  const found = await findBinaries(env)
  const missing = binaryNames.filter((name) => found[name] === undefined)
  if (missing.length === 0) return found as Binaries
  if (!(await hasGo())) {
    throw new Error(
      `Missing: ${missing.join(', ')} (Kubernetes ${kubernetesVersion}), and no Go to build them. Install Go 1.26 or ` +
        'later, or let KUBEBUILDER_ASSETS name a folder that holds them',
    )
  }
  for (const name of missing) {
    say(`building ${name} (Kubernetes ${kubernetesVersion}; only the first time)`)
    found[name] = await build(name, cacheFolder(env))
  }
  return found as Binaries
}

/** Builds into a folder of its own and renames, so that a build cut short leaves nothing that looks finished. */
async function build(name: BinaryName, folder: string): Promise<string> {
  await mkdir(folder, { recursive: true })
  const scratch = await mkdtemp(join(folder, '.build-'))
  try {
    const output = join(scratch, name)
    const flags = ['-trimpath', '-ldflags', linkerFlags(), '-o', output, packages[name]]
    await run('go', ['build', ...flags], import.meta.dirname)
    await rename(output, join(folder, name))
  } finally {
    await rm(scratch, { recursive: true, force: true })
  }
  return join(folder, name)
}

/** Without its version set, the server reports one that kubectl cannot read. */
function linkerFlags(): string {
  const [major, minor] = kubernetesVersion.slice(1).split('.')
  const variables = ['k8s.io/component-base/version', 'k8s.io/client-go/pkg/version'].flatMap((path) => [
    `-X ${path}.gitVersion=${kubernetesVersion}`,
    `-X ${path}.gitMajor=${major}`,
    `-X ${path}.gitMinor=${minor}`,
  ])
  return ['-s -w', ...variables].join(' ')
}

async function hasGo(): Promise<boolean> {
  return run('go', ['version'], import.meta.dirname).then(
    () => true,
    () => false,
  )
}

function run(command: string, args: string[], cwd: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const env = { ...process.env, CGO_ENABLED: '0' }
    const child = spawn(command, args, { cwd, env, stdio: ['ignore', 'ignore', 'pipe'] })
    let stderr = ''
    child.stderr.on('data', (chunk: Buffer) => {
      stderr = (stderr + chunk.toString()).slice(-4_000)
    })
    child.on('error', reject)
    child.on('close', (code) => {
      if (code === 0) resolve()
      else reject(new Error(`${command} ${args.at(0)} ${args.at(-1)} ended with ${code}:\n${stderr}`))
    })
  })
}

async function isExecutable(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  )
}
