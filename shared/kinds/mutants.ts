import { createHash } from 'node:crypto'
import {
  type Condition,
  isObject,
  type KubeObject,
  type Ref,
  type Resource,
  type StoredObject,
} from './object.ts'

/** The two custom resources of group `neiam.org` (spec section 1) and the rules on their names. */

export const group = 'neiam.org'
export const apiVersion = 'neiam.org/v1'

export const fieldManager = 'mutantops-operator'
/** Holds `replicas` for one apply while a variant goes from a set `instances` to an absent one. */
export const handoffManager = 'mutantops-handoff'

export const ownerLabel = 'neiam.org/owner'
export const variantLabel = 'mutation'
export const adoptAnnotation = 'neiam.org/adopt'
export const pausedAnnotation = 'neiam.org/paused'
/** On a child: the hash of what was last applied. */
export const appliedAnnotation = 'neiam.org/applied'

/** One tweak of the base. `instances` absent means that replicas are not ours (an autoscaler's). */
export interface Variant {
  label: string
  env?: Record<string, string> | null
  instances?: number | null
}

export type VariantState = 'Ready' | 'Progressing' | 'Degraded' | 'Invalid' | 'Conflict' | 'Failed'

export interface VariantStatus {
  label: string
  name: string
  state: VariantState
  instances?: number
  ready: number
  message?: string
}

export interface MutantStatus {
  observedGeneration?: number
  /** Mutation only: the name of the Secret that is surely ours. */
  secret?: string
  message?: string
  variants?: VariantStatus[]
  /** Reads like `2/3 variants ready, 1 invalid`. */
  summary?: string
  conditions?: Condition[]
}

interface Mutant extends StoredObject {
  status?: MutantStatus
}

export interface MutantDeployment extends Mutant {
  spec: { deployment: KubeObject; mutations?: Variant[] | null }
}

export interface Mutation extends Mutant {
  spec: { deployment: KubeObject; variants: Variant[] | null }
}

/** What sets one of our kinds apart from the other. */
export interface MutantKind extends Resource {
  kind: 'MutantDeployment' | 'Mutation'
  /** Where in the spec the variants stand. */
  variantsField: 'mutations' | 'variants'
  /** Whether each object gets a token Secret. */
  hasSecret: boolean
}

export const mutantDeployments: MutantKind = {
  group,
  version: 'v1',
  kind: 'MutantDeployment',
  plural: 'mutantdeployments',
  namespaced: true,
  variantsField: 'mutations',
  hasSecret: false,
}

export const mutations: MutantKind = {
  group,
  version: 'v1',
  kind: 'Mutation',
  plural: 'mutations',
  namespaced: true,
  variantsField: 'variants',
  hasSecret: true,
}

export const mutantKinds: readonly MutantKind[] = [mutantDeployments, mutations]

export function mutantKindOf(ref: Pick<Ref, 'apiVersion' | 'kind'>): MutantKind | undefined {
  return mutantKinds.find((kind) => kind.kind === ref.kind && ref.apiVersion === apiVersion)
}

export const labelValueLengthMax = 63
/** Longest name of a Deployment and of a Secret (a DNS-1123 subdomain). */
export const nameLengthMax = 253

const labelValue = /^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$/
const dns1123Label = /^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/
const dns1123Subdomain = /^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/

/** RFC 1123 label, at most 63 characters. */
export function isDns1123Label(value: string): boolean {
  return value.length <= labelValueLengthMax && dns1123Label.test(value)
}

/** RFC 1123 subdomain, at most 253 characters: what names a Deployment or a Secret. */
export function isDns1123Subdomain(value: string): boolean {
  return value.length <= nameLengthMax && dns1123Subdomain.test(value)
}

const printableAscii = /^[\x20-\x7e]+$/

/**
 * Whether Kubernetes takes `value` as the name of an environment variable: printable ASCII without `=`, as it stands
 * since 1.34 (tried on 1.36; earlier versions took less and answer 422, which is then reported as such).
 */
export function isEnvName(value: string): boolean {
  return printableAscii.test(value) && !value.includes('=')
}

/** What stands under the kind's list of variants, whatever it is: an old CRD may have let anything through. */
export function variantsIn(kind: MutantKind, parent: KubeObject): unknown {
  return isObject(parent.spec) ? parent.spec[kind.variantsField] : undefined
}

/**
 * The value of the owner label for an owner's name: the name itself, or, where that is no valid label value (longer
 * than 63 characters), its beginning and a hash of the whole, so that two long names never share a value.
 */
export function ownerLabelValue(ownerName: string): string {
  if (ownerName.length <= labelValueLengthMax && labelValue.test(ownerName)) return ownerName
  const hash = createHash('sha256').update(ownerName).digest('hex').slice(0, 10)
  const start = ownerName.slice(0, labelValueLengthMax - hash.length - 1).replace(/[^A-Za-z0-9._-]/g, '')
  return `${start.replace(/^[^A-Za-z0-9]+|[^A-Za-z0-9]+$/g, '') || 'x'}-${hash}`
}
