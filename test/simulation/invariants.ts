import { type MutantKind, type MutantStatus, mutantKinds } from '../../shared/kinds/mutants.ts'
import { controllerOf, deployments, type StoredObject, secrets } from '../../shared/kinds/object.ts'
import type { KubeClient } from '../../shared/kube/client.ts'
import type { Seen, Witness } from './process.ts'

/** What must hold at every write of the operator, whatever goes wrong around it. */
export interface Invariants {
  witness: Witness
  /** What was broken, in words. */
  broken: string[]
}

/** The environment variable by which a variant tells of which revision of the spec it is. */
export const revisionName = 'REVISION'

interface Spec {
  [field: string]: unknown
}
type Variants = { label: string; env?: Record<string, string> }[]

export function invariants(admin: KubeClient): Invariants {
  const broken: string[] = []
  const tokens = new Map<string, string>()
  /** The newest revision that was ever applied to each child. */
  const applied = new Map<string, number>()

  async function beforeDelete({ path, lastRead }: Seen, child: StoredObject): Promise<void> {
    const owner = controllerOf(child)
    const kind = mutantKinds.find((one) => one.kind === owner?.kind)
    if (!owner || !kind) return void broken.push(`${path}: deleted, though none of ours`)
    const read = Object.entries(lastRead).find(([at]) => at.endsWith(`/${kind.plural}/${owner.name}`))?.[1]
    const parent = read as StoredObject | undefined
    if (parent?.metadata.uid !== owner.uid) return void broken.push(`${path}: deleted for an owner not read`)
    if (wantedNames(kind, parent).includes(child.metadata.name))
      broken.push(`${path}: deleted, though its variant is wanted`)
  }

  async function deploymentWrite(seen: Seen, name: { namespace: string; name: string }) {
    const live = await admin.get<StoredObject>(deployments, name)
    const owner = live && controllerOf(live)
    const read = Object.values(seen.lastRead) as StoredObject[]
    const isOurs = owner
      ? read.some(({ metadata }) => metadata.uid === owner.uid)
      : live?.metadata.annotations?.['neiam.org/adopt'] === 'true'
    if (live && !isOurs && seen.method === 'DELETE') broken.push(`${seen.path}: deleted, though none of ours`)
    else if (live && seen.method === 'DELETE') await beforeDelete(seen, live)
    return async ({ status, body }: { status: number; body: unknown }) => {
      if (status >= 300 || seen.method !== 'PATCH') return
      if (live && !isOurs) broken.push(`${seen.path}: a child of another owner was touched`)
      const revision = revisionOfChild(body as StoredObject)
      if (revision !== undefined) applied.set(name.name, Math.max(revision, applied.get(name.name) ?? -1))
    }
  }

  async function afterStatus(status: number, body: unknown): Promise<void> {
    if (status >= 300) return
    const parent = body as StoredObject
    const { observedGeneration, variants = [] } = parent.status as MutantStatus
    if (Number(observedGeneration) > Number(parent.metadata.generation))
      broken.push(`${parent.metadata.name}: a generation reported that never was`)
    if (observedGeneration !== parent.metadata.generation) return
    for (const { label, state, message = '' } of variants) {
      // A variant may say of itself that it is not applied yet: then nothing is claimed of this generation.
      const isSaidToBeApplied =
        state === 'Ready' || (state === 'Progressing' && !/not take it yet/.test(message))
      if (!isSaidToBeApplied) continue
      const wanted = revisionOf(parent, label)
      const got = applied.get(`${baseName(parent)}-${label}`) ?? -1
      if (wanted !== undefined && got < wanted)
        broken.push(`${parent.metadata.name}: ${label} reported at revision ${wanted}, applied was ${got}`)
    }
  }

  async function lookAtTokens(): Promise<void> {
    const { items } = await admin.list<StoredObject & { data?: { token?: string } }>(secrets, {})
    for (const { metadata, data } of items) {
      const before = tokens.get(metadata.uid)
      const now = data?.token ?? ''
      if (before !== undefined && before !== now) broken.push(`${metadata.name}: the token changed`)
      tokens.set(metadata.uid, now)
    }
  }

  return {
    broken,
    async witness(seen) {
      const child = /\/namespaces\/([^/]+)\/deployments\/([^/]+)$/.exec(seen.path)
      const after = child
        ? await deploymentWrite(seen, { namespace: child[1] ?? '', name: child[2] ?? '' })
        : undefined
      return async (answer) => {
        await after?.(answer)
        if (/\/(mutations|mutantdeployments)\/[^/]+\/status$/.test(seen.path))
          await afterStatus(answer.status, answer.body)
        if (/\/secrets(\/|$)/.test(seen.path)) await lookAtTokens()
      }
    },
  }
}

function wantedNames(kind: MutantKind, parent: StoredObject): string[] {
  return variantsOf(kind, parent).map(({ label }) => `${baseName(parent)}-${label}`)
}

function variantsOf(kind: MutantKind, parent: StoredObject): Variants {
  return ((parent.spec as Spec)[kind.variantsField] ?? []) as Variants
}

function baseName(parent: StoredObject): string {
  return ((parent.spec as Spec).deployment as StoredObject).metadata.name
}

function revisionOf(parent: StoredObject, label: string): number | undefined {
  const kind = mutantKinds.find((one) => one.kind === parent.kind)
  const env = kind && variantsOf(kind, parent).find((variant) => variant.label === label)?.env
  const value = env?.[revisionName]
  return value === undefined ? undefined : Number(value)
}

function revisionOfChild(child: StoredObject): number | undefined {
  const spec = child.spec as {
    template: { spec: { containers: { env?: { name: string; value?: string }[] }[] } }
  }
  const value = spec.template.spec.containers[0]?.env?.find(({ name }) => name === revisionName)?.value
  return value === undefined ? undefined : Number(value)
}
