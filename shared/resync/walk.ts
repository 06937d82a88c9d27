import { type MutantKind, ownerLabel, ownerLabelValue } from '../kinds/mutants.ts'
import { deployments, type StoredObject } from '../kinds/object.ts'
import type { KubeClient } from '../kube/client.ts'
import type { KubeError } from '../kube/errors.ts'
import { type Cursor, cursor, type PageToken } from './cursor.ts'

/** An object of ours and the Deployments that carry its owner label. */
export interface Family {
  kind: MutantKind
  parent: StoredObject
  children: StoredObject[]
  /** Where a later walk goes on behind this family. */
  position: WalkPosition
}

/** A place in a walk, small enough to stand in an event. */
export interface WalkPosition {
  /** The page to begin with, by plural; children too. */
  pages: Record<string, PageToken>
  /** The last family that was given. */
  after: { namespace: string; plural: string; name: string }
}

export interface WalkOptions {
  client: KubeClient
  kinds: readonly MutantKind[]
  namespaces: string[] | undefined
  from?: WalkPosition | undefined
  signal: AbortSignal
  onRestart?: () => void
  onForbidden?: (namespace: string, error: KubeError) => void
  /** For tests: the limits below. */
  pageLength?: number
  childrenHeldMax?: number
}

/** So many children of one namespace are held at a time; where there are more, they are asked for by their owners. */
const childrenHeldMax = 5_000
/** So many owners are named in one label selector: their names, at most 63 characters each, must fit into a URL. */
const ownersAskedMax = 100

/**
 * Walks through all objects of ours and their children, in pages. Every list comes ordered by namespace and name, so
 * one pass over each is enough: namespace by namespace, first the children, then the objects of each kind. In memory
 * are one page of each list and the children of one namespace.
 *
 * If a server orders otherwise, some family comes without its children: that costs a look too many, never one too few.
 */
export async function* walk(options: WalkOptions): AsyncGenerator<Family, void> {
  const { from, ...rest } = options
  const { kinds } = options
  const namespaces = options.namespaces?.toSorted((a, b) => (isBefore(a, b) ? -1 : 1))
  const open = <T extends StoredObject>(
    resource: MutantKind | typeof deployments,
    labelSelector?: string,
  ) => {
    const page = from?.pages[resource.plural]
    return cursor<T>({
      ...rest,
      namespaces,
      resource,
      ...(labelSelector && { labelSelector }),
      ...(page ? { from: page } : {}),
    })
  }
  const parents = kinds.map((kind) => ({ kind, cursor: open(kind) }))
  const children = open(deployments, ownerLabel)
  const pages: Record<string, PageToken> = { ...from?.pages }
  const heldMax = options.childrenHeldMax ?? childrenHeldMax

  if (from) for (const each of parents) await skipDone(each, kinds, from)
  for (
    let namespace = await firstNamespace(parents);
    namespace !== undefined;
    namespace = await firstNamespace(parents)
  ) {
    const held = await childrenIn(namespace, children, heldMax)
    if (held.page) pages[deployments.plural] = held.page
    for (const each of parents) {
      for await (const family of families(each, namespace, held, options)) {
        pages[each.kind.plural] = family.page
        const after = { namespace, plural: each.kind.plural, name: family.parent.metadata.name }
        const { parent, children: own } = family
        yield { kind: each.kind, parent, children: own, position: { pages: { ...pages }, after } }
      }
    }
  }
}

interface Parents {
  kind: MutantKind
  cursor: Cursor<StoredObject>
}

const namespaceOf = (object: StoredObject) => object.metadata.namespace ?? ''
/** Compares as the lists are ordered; see `keyOf`. */
const isBefore = (a: string, b: string) => `${a}/` < `${b}/`

async function firstNamespace(parents: Parents[]): Promise<string | undefined> {
  let first: string | undefined
  for (const { cursor: objects } of parents) {
    const placed = await objects.peek()
    if (placed && (first === undefined || isBefore(namespaceOf(placed.object), first)))
      first = namespaceOf(placed.object)
  }
  return first
}

/** Passes over what an earlier walk has given: it went by namespace, then kind, then name. */
async function skipDone(
  { kind, cursor: objects }: Parents,
  kinds: readonly MutantKind[],
  from: WalkPosition,
): Promise<void> {
  const { namespace, plural, name } = from.after
  const order = kinds.indexOf(kind) - kinds.findIndex((other) => other.plural === plural)
  for (let placed = await objects.peek(); placed; placed = await objects.peek()) {
    const there = namespaceOf(placed.object)
    const isDone =
      there === namespace
        ? order < 0 || (order === 0 && placed.object.metadata.name <= name)
        : isBefore(there, namespace)
    if (!isDone) return
    await objects.take()
  }
}

interface Held {
  /** By the value of their owner label; undefined when they were too many to hold. */
  byOwner: Map<string, StoredObject[]> | undefined
  /** The page on which the namespace's children begin; undefined when the list was at its end before. */
  page: PageToken | undefined
}

async function childrenIn(namespace: string, children: Cursor<StoredObject>, max: number): Promise<Held> {
  let byOwner: Held['byOwner'] = new Map()
  let count = 0
  let page: PageToken | undefined
  for (let placed = await children.peek(); placed; placed = await children.peek()) {
    const there = namespaceOf(placed.object)
    if (isBefore(namespace, there)) {
      page ??= placed.page
      break
    }
    await children.take()
    if (there !== namespace) continue
    page ??= placed.page
    if (++count > max) byOwner = undefined
    if (byOwner) hold(byOwner, placed.object)
  }
  return { byOwner, page }
}

function hold(byOwner: Map<string, StoredObject[]>, child: StoredObject): void {
  const value = child.metadata.labels?.[ownerLabel] ?? ''
  const siblings = byOwner.get(value)
  if (siblings) siblings.push(child)
  else byOwner.set(value, [child])
}

interface PlacedFamily {
  parent: StoredObject
  children: StoredObject[]
  page: PageToken
}

async function* families(
  { cursor: objects }: Parents,
  namespace: string,
  held: Held,
  options: WalkOptions,
): AsyncGenerator<PlacedFamily, void> {
  const isHere = async () => {
    const placed = await objects.peek()
    return placed !== undefined && namespaceOf(placed.object) === namespace
  }
  while (await isHere()) {
    const batch: { object: StoredObject; page: PageToken }[] = []
    const batchMax = held.byOwner ? 1 : ownersAskedMax
    while (batch.length < batchMax && (await isHere())) {
      const placed = await objects.take()
      if (placed) batch.push(placed)
    }
    const byOwner =
      held.byOwner ??
      (await askedFor(
        namespace,
        batch.map(({ object }) => object),
        options,
      ))
    for (const { object, page } of batch)
      yield { parent: object, children: byOwner.get(ownerLabelValue(object.metadata.name)) ?? [], page }
  }
}

/** The children of some owners in one namespace. */
async function askedFor(
  namespace: string,
  owners: StoredObject[],
  { client, signal }: WalkOptions,
): Promise<Map<string, StoredObject[]>> {
  const values = owners.map((owner) => ownerLabelValue(owner.metadata.name))
  const labelSelector = `${ownerLabel} in (${values.join(',')})`
  const asked = cursor<StoredObject>({
    client,
    resource: deployments,
    namespaces: [namespace],
    labelSelector,
    signal,
  })
  const byOwner = new Map<string, StoredObject[]>()
  for (let placed = await asked.take(); placed; placed = await asked.take()) hold(byOwner, placed.object)
  return byOwner
}
