import {
  adoptAnnotation,
  type MutantKind,
  type MutantStatus,
  mutantKinds,
  pausedAnnotation,
  variantLabel,
} from '../../shared/kinds/mutants.ts'
import { controllerOf, deployments, type StoredObject, secrets } from '../../shared/kinds/object.ts'
import type { KubeClient } from '../../shared/kube/client.ts'
import type { AdoptionSettings } from '../../shared/reconcile/adoption.ts'
import type { Seen, Witness } from './process.ts'

/** What must hold at every write of the operator, whatever goes wrong around it. */
export interface Invariants {
  witness: Witness
  /** What was broken, in words. */
  broken: string[]
  /** Throws what was broken. */
  check(): void
}

/** The environment variable by which a variant tells of which revision of the spec it is. */
export const revisionName = 'REVISION'

interface Spec {
  [field: string]: unknown
}
type Variants = { label: string; env?: Record<string, string> }[]

export function invariants(admin: KubeClient, adoption: AdoptionSettings): Invariants {
  const broken: string[] = []
  const tokens = new Map<string, string>()
  /** The newest revision that was ever applied to each child. */
  const applied = new Map<string, number>()

  function beforeDelete({ path, known }: Seen, child: StoredObject): void {
    const owner = controllerOf(child)
    const kind = mutantKinds.find((one) => one.kind === owner?.kind)
    if (!owner || !kind) return void broken.push(`${path}: deleted, though none of ours`)
    const read = Object.entries(known).find(([at]) => at.endsWith(`/${kind.plural}/${owner.name}`))?.[1]
    const parent = read as StoredObject | undefined
    if (parent?.metadata.uid !== owner.uid) return void broken.push(`${path}: deleted for an owner not read`)
    if (wantedNames(kind, parent).includes(child.metadata.name))
      broken.push(`${path}: deleted, though its variant is wanted`)
    const label = child.metadata.labels?.[variantLabel]
    if (!variantsOf(kind, parent).some((variant) => variant.label === label)) return
    if (
      !deploymentsIn(known).some(
        (one) => one.metadata.name === `${baseName(parent)}-${label}` && isReady(one),
      )
    )
      broken.push(`${path}: deleted before the variant ran under its new name`)
  }

  function mayTake(live: StoredObject, known: Seen['known']): boolean {
    const owner = controllerOf(live)
    if (owner) return parentsIn(known).some(({ metadata }) => metadata.uid === owner.uid)
    const { annotations = {}, labels = {}, managedFields = [] } = live.metadata
    if (annotations[adoptAnnotation] === 'true') return true
    const isLeft = managedFields.some(({ manager = '' }) => adoption.legacyManagers?.includes(manager))
    // Between the two writes of taking it over it has no other manager than ours.
    const isHalfTaken = labels[variantLabel] !== undefined
    return adoption.adoption === 'legacy' && (isLeft || isHalfTaken)
  }

  async function deploymentWrite(seen: Seen, name: { namespace: string; name: string }) {
    const live = await admin.get<StoredObject>(deployments, name)
    const isOurs = live && mayTake(live, seen.known)
    if (live && seen.method === 'DELETE') {
      const body = seen.body as { preconditions?: { uid?: string } } | undefined
      // The server refuses what is meant for another one.
      if (body?.preconditions?.uid === undefined || body.preconditions.uid === live.metadata.uid)
        beforeDelete(seen, live)
    }
    return async ({ status, body }: { status: number; body: unknown }) => {
      if (status >= 300 || seen.method !== 'PATCH') return
      if (live && !isOurs) broken.push(`${seen.path}: a child of another owner was touched`)
      const revision = revisionOfChild(body as StoredObject)
      if (revision !== undefined) applied.set(name.name, Math.max(revision, applied.get(name.name) ?? -1))
    }
  }

  function notPaused({ method, path, known }: Seen): void {
    for (const { metadata } of parentsIn(known))
      if (metadata.annotations?.[pausedAnnotation] === 'true')
        broken.push(`${method} ${path}: written, though ${metadata.name} is paused`)
  }

  async function afterStatus(status: number, body: unknown): Promise<void> {
    if (status >= 300) return
    const parent = body as StoredObject
    const { observedGeneration, variants = [] } = parent.status as MutantStatus
    if (Number(observedGeneration) > Number(parent.metadata.generation))
      broken.push(`${parent.metadata.name}: a generation reported that never was`)
    if (observedGeneration !== parent.metadata.generation) return
    for (const { label, state } of variants) {
      // Any other state says that this one is not reached yet.
      if (state !== 'Ready') continue
      const wanted = revisionOf(parent, label)
      const got = applied.get(`${baseName(parent)}-${label}`) ?? -1
      if (wanted !== undefined && got < wanted)
        broken.push(
          `${parent.metadata.name}: ${label} reported Ready at revision ${wanted}, applied was ${got}`,
        )
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
    check() {
      if (broken.length > 0) throw new Error(broken.join('; '))
    },
    async witness(seen) {
      if (/\/(deployments|secrets)(\/|$)/.test(seen.path)) notPaused(seen)
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

/** The objects of ours that a process has read. */
function parentsIn(known: Seen['known']): StoredObject[] {
  return (Object.values(known) as (StoredObject | undefined)[]).filter(
    (read) => read !== undefined && mutantKinds.some(({ kind }) => kind === read.kind),
  ) as StoredObject[]
}

function deploymentsIn(known: Seen['known']): DeploymentRead[] {
  return Object.entries(known).flatMap(([path, read]) => {
    if (read === undefined || !/\/deployments(\/|$)/.test(path)) return []
    const { items } = read as { items?: DeploymentRead[] }
    return items ?? [read as DeploymentRead]
  })
}

interface DeploymentRead extends StoredObject {
  spec: { replicas: number }
  status?: {
    observedGeneration?: number
    replicas?: number
    updatedReplicas?: number
    availableReplicas?: number
  }
}

/** As `kubectl rollout status` means it. */
function isReady({ metadata, spec, status = {} }: DeploymentRead): boolean {
  if (spec.replicas === 0) return true
  const { observedGeneration = 0, replicas = 0, updatedReplicas = 0, availableReplicas = 0 } = status
  const counts = [replicas, updatedReplicas, availableReplicas]
  return observedGeneration >= Number(metadata.generation) && counts.every((count) => count === spec.replicas)
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
