import {
  apiVersion,
  appliedAnnotation,
  isDns1123Label,
  isEnvName,
  type MutantKind,
  nameLengthMax,
  ownerLabel,
  ownerLabelValue,
  pausedAnnotation,
  variantLabel,
  variantsIn,
} from '../kinds/mutants.ts'
import {
  deployments,
  isObject,
  type KubeObject,
  type OwnerReference,
  type StoredObject,
} from '../kinds/object.ts'
import { type Base, baseOf } from './base.ts'
import { labelsNeeded, mismatchOf } from './selector.ts'
import { hashOf, mapIn, shortened } from './values.ts'

/** What should exist for one object. Pure; nothing in here throws, whatever the object holds. */

export interface DesiredVariant {
  label: string
  /** Of its Deployment. */
  name: string
  env: Record<string, string>
  /** Undefined: replicas are not ours. */
  instances: number | undefined
  problem?: { state: 'Invalid' | 'Conflict'; message: string }
}

export interface Desired {
  namespace: string
  owner: OwnerReference
  base: Base
  variants: DesiredVariant[]
  /** Why nothing may be applied or pruned. */
  problem?: string
  paused: boolean
  /** What a person should know though nothing is wrong. */
  notes: string[]
}

export interface Child {
  /** What to apply; it carries the hash of itself. */
  object: KubeObject
  hash: string
  /** Why it cannot be applied to the Deployment that lives. */
  problem?: string
}

/** Longest label or name that is repeated in a status, in characters. */
const shownMax = 253

/** Reads an object: its base, its variants, and what is wrong with each. */
export function desiredOf(kind: MutantKind, parent: StoredObject): Desired {
  const { name, namespace = '', uid, annotations } = parent.metadata
  const base = baseOf(isObject(parent.spec) ? parent.spec.deployment : undefined)
  const list = variantsIn(kind, parent)
  const problem = base.problem ?? (Array.isArray(list) ? undefined : `spec.${kind.variantsField} is missing`)
  const elsewhere = mapIn(base.deployment, 'metadata').namespace
  return {
    namespace,
    owner: { apiVersion, kind: kind.kind, name, uid, controller: true, blockOwnerDeletion: true },
    base,
    variants: variantsOf(Array.isArray(list) ? list : [], base.name),
    paused: annotations?.[pausedAnnotation] === 'true',
    notes:
      typeof elsewhere === 'string' && elsewhere !== namespace
        ? [
            `The namespace "${elsewhere}" in spec.deployment is not used: Deployments are made in "${namespace}"`,
          ]
        : [],
    ...(problem !== undefined && { problem }),
  }
}

function variantsOf(list: unknown[], baseName: string): DesiredVariant[] {
  const seen = new Set<string>()
  return list.map((raw) => {
    const { label: given, env, instances } = isObject(raw) ? raw : {}
    const label = typeof given === 'string' ? given : ''
    const name = `${baseName}-${label}`
    const problem = problemOf(label, name, env, instances, seen.has(label))
    seen.add(label)
    return {
      label: shortened(label, shownMax),
      name: shortened(name, shownMax),
      env: isObject(env) ? withoutNullValues(env) : {},
      instances: typeof instances === 'number' ? instances : undefined,
      ...(problem && { problem }),
    }
  })
}

function problemOf(
  label: string,
  name: string,
  env: unknown,
  instances: unknown,
  repeats: boolean,
): DesiredVariant['problem'] {
  const invalid = (message: string) => ({ state: 'Invalid' as const, message })
  const shown = JSON.stringify(shortened(label, 80))
  if (!isDns1123Label(label))
    return invalid(`The label ${shown} is not lower-case letters, digits and dashes, at most 63 of them`)
  if (repeats)
    return { state: 'Conflict', message: `The label ${shown} is used by an earlier variant, which counts` }
  if (name.length > nameLengthMax)
    return invalid(
      `The name of its Deployment would have ${name.length} characters, more than ${nameLengthMax}`,
    )
  if (
    instances !== undefined &&
    instances !== null &&
    !(Number.isInteger(instances) && Number(instances) >= 0)
  )
    return invalid(`instances must be a whole number, 0 or more, not ${JSON.stringify(instances)}`)
  if (env === undefined || env === null) return undefined
  if (!isObject(env)) return invalid('env is not a map')
  for (const [variable, value] of Object.entries(env)) {
    const variableShown = JSON.stringify(shortened(variable, 80))
    if (!isEnvName(variable))
      return invalid(`${variableShown} cannot name an environment variable: printable ASCII without "=" can`)
    if (typeof value !== 'string' && value !== null)
      return invalid(`The environment variable ${variableShown} is not a text`)
  }
  return undefined
}

function withoutNullValues(env: Record<string, unknown>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(env).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  )
}

/**
 * The Deployment of one variant. `live` is the one that exists, if any: its selector cannot change, so it is kept, and
 * the template follows it. A new child also carries the variant's label in selector and template, so that variants
 * never select each other's pods; a living one whose selector lacks it does not, because that would start a rollout.
 */
export function childOf(desired: Desired, variant: DesiredVariant, live?: KubeObject): Child {
  const { deployment } = desired.base
  const { replicas: _, ...spec } = mapIn(deployment, 'spec')
  const metadata = mapIn(deployment, 'metadata')
  const { selector, template, problem } = live
    ? followed(spec, variant, live)
    : { ...fresh(spec, variant), problem: undefined }
  const object: KubeObject = {
    ...deployment,
    apiVersion: 'apps/v1',
    kind: deployments.kind,
    metadata: {
      ...metadata,
      name: variant.name,
      namespace: desired.namespace,
      labels: {
        ...(mapIn(metadata, 'labels') as Record<string, string>),
        [variantLabel]: variant.label,
        [ownerLabel]: ownerLabelValue(desired.owner.name),
      },
      ownerReferences: [desired.owner],
    },
    spec: {
      ...spec,
      ...(variant.instances !== undefined && { replicas: variant.instances }),
      selector,
      template: { ...template, spec: withEnv(mapIn(template, 'spec'), variant.env) },
    },
  }
  const hash = hashOf(object)
  return { object: withHash(object, hash), hash, ...(problem !== undefined && { problem }) }
}

function withHash(object: KubeObject, hash: string): KubeObject {
  const annotations = { ...object.metadata?.annotations, [appliedAnnotation]: hash }
  return { ...object, metadata: { ...object.metadata, annotations } }
}

type Fields = Record<string, unknown>

function fresh(spec: Fields, { label }: DesiredVariant): { selector: Fields; template: Fields } {
  const selector = mapIn(spec, 'selector')
  const matchLabels = { ...mapIn(selector, 'matchLabels'), [variantLabel]: label }
  return {
    selector: { ...selector, matchLabels },
    template: withLabels(mapIn(spec, 'template'), { [variantLabel]: label }),
  }
}

function followed(spec: Fields, { label }: DesiredVariant, live: KubeObject) {
  const liveSpec = mapIn(live, 'spec')
  const selector = mapIn(liveSpec, 'selector')
  const template = mapIn(spec, 'template')
  const liveLabels = mapIn(mapIn(mapIn(liveSpec, 'template'), 'metadata'), 'labels')
  const own = mapIn(selector, 'matchLabels')[variantLabel] === label ? { [variantLabel]: label } : {}
  const labels: Fields = { ...mapIn(mapIn(template, 'metadata'), 'labels'), ...own }
  const added = { ...own, ...labelsNeeded(selector, labels, liveLabels) }
  const mismatch = mismatchOf(selector, { ...labels, ...added })
  return {
    selector,
    template: withLabels(template, added),
    problem:
      mismatch &&
      `The selector cannot change, and the living one ${mismatch}: delete the Deployment to recreate it`,
  }
}

function withLabels(template: Fields, labels: Fields): Fields {
  if (Object.keys(labels).length === 0) return template
  const metadata = mapIn(template, 'metadata')
  return { ...template, metadata: { ...metadata, labels: { ...mapIn(metadata, 'labels'), ...labels } } }
}

function withEnv(podSpec: Fields, env: Record<string, string>): Fields {
  if (!Array.isArray(podSpec.containers)) return podSpec
  const containers = podSpec.containers.map((container: unknown) => {
    if (!isObject(container)) return container
    const merged = mergedEnv(container.env, env)
    return merged === undefined ? container : { ...container, env: merged }
  })
  return { ...podSpec, containers }
}

/**
 * A container's env with the variant's set over it: an entry of the same name is replaced at its place, new names come
 * after, sorted, whatever their order in the map. A name that stands twice is folded to its last entry, as the kubelet
 * reads it (apply would refuse it). A base env that is no list is left for the API server to refuse.
 */
export function mergedEnv(base: unknown, env: Record<string, string>): unknown {
  if (base !== undefined && !Array.isArray(base)) return base
  const entries: unknown[] = base ?? []
  const lastAt = new Map(entries.map((entry, index) => [nameOf(entry), index]))
  const kept = entries.filter(
    (entry, index) => nameOf(entry) === undefined || lastAt.get(nameOf(entry)) === index,
  )
  const set = kept.map((entry) => {
    const name = nameOf(entry)
    return name !== undefined && Object.hasOwn(env, name) ? { name, value: env[name] } : entry
  })
  const added = Object.keys(env).filter((name) => !lastAt.has(name))
  if (base === undefined && added.length === 0) return undefined
  return [...set, ...added.sort().map((name) => ({ name, value: env[name] }))]
}

function nameOf(entry: unknown): string | undefined {
  return isObject(entry) && typeof entry.name === 'string' ? entry.name : undefined
}
