import { pingType } from '../../shared/cloudevents/envelope.ts'
import type { CloudEvent } from '../../shared/cloudevents/event.ts'
import { type MutantKind, mutantKinds } from '../../shared/kinds/mutants.ts'
import {
  controllerOf,
  deployments,
  namespaces,
  type StoredObject,
  secrets,
} from '../../shared/kinds/object.ts'
import type { Transport } from '../../shared/kube/client.ts'
import { type Simulation, simulation } from '../simulation/world.ts'
import { base, mutant } from '../support/builders.ts'

const ping: CloudEvent = { specversion: '1.0', id: 'resync', source: '/cron', type: pingType, extensions: {} }

interface Wish {
  kind: MutantKind
  namespace: string
  name: string
  /** What the children's names begin with. */
  base: string
}

/** The objects that a tape is about. */
export function wishesOf(tape: readonly CloudEvent[]): Wish[] {
  const named = tape.flatMap(({ extensions: { kind, namespace, name } }) => {
    const ours = mutantKinds.find((one) => one.kind === kind)
    if (!ours || !namespace || !name) return []
    return [[`${kind}/${namespace}/${name}`, { kind: ours, namespace, name }] as const]
  })
  return [...new Map(named).values()].map((one) => ({
    ...one,
    base: `of-${one.kind.kind.toLowerCase()}-${one.name}`,
  }))
}

const builderOf = ({ kind, namespace, name, base: baseName }: Wish) =>
  mutant(kind, name).in(namespace).on(base(baseName))
/** What an object asks for at first, and what once the first half of the tape has been played. */
const first = (wish: Wish) => builderOf(wish).with('red', 2).with('blue', 1)
const second = (wish: Wish) => builderOf(wish).with('red', 3, { COLOR: 'dark' }).with('green', 0)
const children = (wish: Wish) => [`${wish.base}-green 0 -`, `${wish.base}-red 3 dark`]

type Child = StoredObject & {
  spec: {
    replicas: number
    template: { spec: { containers: { env?: { name: string; value: string }[] }[] } }
  }
}

/** What is not as the objects ask for, worked out from nothing but their second specs. */
async function wrongIn({ admin }: Simulation, wishes: Wish[]): Promise<string[]> {
  const { items } = await admin.list<Child>(deployments, {})
  const found = await Promise.all(
    wishes.map(async (wish) => {
      const { namespace } = wish
      const object = await admin.get<StoredObject>(wish.kind, { namespace, name: wish.name })
      const own = items.filter(({ metadata }) => controllerOf({ metadata })?.uid === object?.metadata.uid)
      const got = own.map(({ metadata, spec }) => {
        const color = spec.template.spec.containers[0]?.env?.find(({ name }) => name === 'COLOR')?.value
        return `${metadata.name} ${spec.replicas} ${color ?? '-'}`
      })
      const status = object?.status as { observedGeneration?: number } | undefined
      const token = await admin.get(secrets, { namespace, name: `${wish.name}-token` })
      return [
        ...(got.sort().join() === children(wish).join() ? [] : [`${wish.name} has ${got.join()}`]),
        ...(status?.observedGeneration === 2 ? [] : [`${wish.name} says ${JSON.stringify(status)}`]),
        ...(wish.kind.hasSecret === (token !== undefined)
          ? []
          : [`${wish.name}: Secret ${token !== undefined}`]),
      ]
    }),
  )
  const strangers = items.length - wishes.length * 2
  return [...found.flat(), ...(strangers === 0 ? [] : [`${strangers} Deployments more than asked for`])]
}

export interface Playing {
  /** The tape that says which objects there are. Default: what is played. */
  about?: readonly CloudEvent[] | undefined
  /** One event after the other, not all at once. */
  isApart?: boolean | undefined
  /** A way to the API server that breaks the code on purpose. */
  broken?: ((under: Transport) => Transport) | undefined
}

/**
 * Plays events against the functions in a world where their objects are new and change midway; gives how that ends: what
 * is not as wanted, what was written once all was said and done, and what was broken on the way. Nothing is well.
 */
export async function ended(
  played: readonly CloudEvent[],
  { about = played, isApart, broken: bent }: Playing = {},
) {
  // Of pods that get ready only a watcher would tell.
  const world = await simulation(1, { rollout: false, ...(bent && { bent }) })
  const wishes = wishesOf(about)
  const play = async (events: readonly CloudEvent[]) => {
    for (const event of events) {
      world.accept(event)
      if (isApart) await world.advance(10)
    }
  }
  for (const name of new Set(wishes.map(({ namespace }) => namespace)))
    if (name !== 'default')
      await world.admin.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } })
  for (const wish of wishes) await world.admin.create(wish.kind, first(wish).object())
  const half = Math.ceil(played.length / 2)
  await play(played.slice(0, half))
  for (const wish of wishes) {
    const change = { op: 'replace', path: '/spec', value: second(wish).object().spec } as const
    await world.admin.patchJson(wish.kind, wish, [change])
  }
  await play(played.slice(half))
  await world.advance(1_000)
  world.accept({ ...ping })
  await world.advance(1_000)
  const { broken } = world.held
  const wrong = await wrongIn(world, wishes)
  world.state.writes.length = 0
  for (const event of played.slice(0, 20)) world.accept(event)
  world.accept({ ...ping, id: 'again' })
  await world.advance(1_000)
  const { writes } = world.state
  await world.stop()
  return { wrong, writes, broken }
}

/**
 * The tape that shows a failure, as small as it gets: events are left out as long as what is left, with no other objects
 * than its own, still shows one; halves, then quarters, and so on. When those played do not show it by themselves, they
 * come as they are.
 */
export async function shrunk(played: CloudEvent[], playing: Omit<Playing, 'about'>): Promise<CloudEvent[]> {
  const shows = async (events: CloudEvent[]) => {
    const { wrong, writes, broken } = await ended(events, playing)
    return wrong.length + writes.length + broken.length > 0
  }
  if (!(await shows(played))) return played
  let left = played
  for (let length = Math.ceil(left.length / 2); length > 0; length = Math.floor(length / 2))
    for (let from = 0; from < left.length; ) {
      const fewer = left.toSpliced(from, length)
      if (await shows(fewer)) left = fewer
      else from += length
    }
  return left
}
