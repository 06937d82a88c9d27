import { apiVersion, group, type MutantKind, mutantKinds } from '../shared/kinds/mutants.ts'
import type { KubeObject, Resource } from '../shared/kinds/object.ts'

/** The CustomResourceDefinitions of both kinds (spec section 1), as the objects that `kubectl apply` is given. */

/** The part of an OpenAPI v3 schema that our CRDs use. */
interface Schema {
  type: 'object' | 'array' | 'string' | 'integer'
  description: string
  format?: 'int32' | 'int64' | 'date-time'
  nullable?: boolean
  default?: unknown
  enum?: string[]
  required?: string[]
  properties?: Record<string, Schema>
  additionalProperties?: { type: 'string' }
  items?: Schema
  'x-kubernetes-preserve-unknown-fields'?: true
  'x-kubernetes-list-type'?: 'atomic' | 'map'
  'x-kubernetes-list-map-keys'?: string[]
}

interface Texts {
  about: string
  shortName: string
  variants: string
}

const texts: Record<MutantKind['kind'], Texts> = {
  MutantDeployment: {
    about:
      'Runs variants of one Deployment, each with its own environment variables and number of instances.',
    shortName: 'md',
    variants: 'The variants to run. Each becomes a Deployment named <name of the base>-<label>.',
  },
  Mutation: {
    about:
      'Runs variants of one Deployment, each with its own environment variables and number of instances, and keeps a Secret with a token beside them.',
    shortName: 'mut',
    variants: 'The variants to run. Each becomes a Deployment named <name of the base>-<label>.',
  },
}

/** Both CRDs, in a stable order. */
export function customResourceDefinitions(): KubeObject[] {
  return mutantKinds.map(definitionOf)
}

/** The name of a kind's CRD: `mutations.neiam.org`. */
export function definitionName(kind: Pick<Resource, 'plural' | 'group'>): string {
  return `${kind.plural}.${kind.group}`
}

/** The CRD of one kind. */
export function definitionOf(kind: MutantKind): KubeObject {
  const { about, shortName } = texts[kind.kind]
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: definitionName(kind) },
    spec: {
      group,
      scope: 'Namespaced',
      names: {
        kind: kind.kind,
        listKind: `${kind.kind}List`,
        plural: kind.plural,
        singular: kind.kind.toLowerCase(),
        shortNames: [shortName],
      },
      versions: [
        {
          name: apiVersion.split('/')[1],
          served: true,
          storage: true,
          subresources: { status: {} },
          additionalPrinterColumns: printerColumns,
          schema: {
            openAPIV3Schema: {
              type: 'object',
              description: about,
              required: ['spec'],
              properties: { spec: specSchema(kind), status: statusSchema(kind) },
            },
          },
        },
      ],
    },
  }
}

const printerColumns = [
  {
    name: 'Ready',
    type: 'string',
    description: 'Whether all variants are ready.',
    jsonPath: '.status.conditions[?(@.type=="Ready")].status',
  },
  {
    name: 'Summary',
    type: 'string',
    description: 'How many variants are in which state.',
    jsonPath: '.status.summary',
  },
  { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
]

function specSchema(kind: MutantKind): Schema {
  return {
    type: 'object',
    description: 'What shall run.',
    // Without this a null or a misspelt list would pass, and look like a wish to run nothing.
    required: ['deployment', kind.variantsField],
    properties: {
      // A plain object: `properties.metadata` would prune the metadata, and an embedded resource would refuse a base
      // without apiVersion and kind.
      deployment: {
        type: 'object',
        description:
          'The base: an apps/v1 Deployment, of which apiVersion and kind may be left out. Its name (else "mutant") begins the names of the variants; its replicas are replaced by the instances of each.',
        'x-kubernetes-preserve-unknown-fields': true,
      },
      [kind.variantsField]: {
        type: 'array',
        description: texts[kind.kind].variants,
        'x-kubernetes-list-type': 'atomic',
        items: variantSchema,
      },
    },
  }
}

/** Without limits on label and instances: what is wrong with one variant is told in its status, beside the others. */
const variantSchema: Schema = {
  type: 'object',
  description: 'One variant of the base.',
  required: ['label'],
  properties: {
    label: {
      type: 'string',
      description:
        'What sets the variant apart: the end of its name and the value of its label "mutation". A DNS label (lower-case letters, digits and dashes, at most 63), given once.',
    },
    env: {
      type: 'object',
      nullable: true,
      description:
        'Environment variables for every container. They replace those of the same name in the base.',
      additionalProperties: { type: 'string' },
    },
    instances: {
      type: 'integer',
      format: 'int32',
      description:
        'How many pods to run, 0 or more. Leave it out where something else, such as an autoscaler, sets the replicas.',
    },
  },
}

function statusSchema(kind: MutantKind): Schema {
  const secret: Schema = {
    type: 'string',
    description: 'The Secret that holds the token under the key "token".',
  }
  return {
    type: 'object',
    description: 'What runs, as last seen.',
    // So that an object nobody has looked at yet counts as in progress, not as ready.
    default: { observedGeneration: -1 },
    properties: {
      observedGeneration: {
        type: 'integer',
        format: 'int64',
        description: 'The generation of the object that this status speaks of.',
      },
      ...(kind.hasSecret && { secret }),
      message: { type: 'string', description: 'What a person should know about the object as a whole.' },
      summary: { type: 'string', description: 'How many variants are in which state.' },
      variants: {
        type: 'array',
        description: 'The state of each variant, in the order of the spec.',
        'x-kubernetes-list-type': 'atomic',
        items: variantStatusSchema,
      },
      conditions: {
        type: 'array',
        description: 'Ready, and while they are true Reconciling and Stalled.',
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['type'],
        items: conditionSchema,
      },
    },
  }
}

const variantStatusSchema: Schema = {
  type: 'object',
  description: 'The state of one variant.',
  required: ['label', 'name', 'state'],
  properties: {
    label: { type: 'string', description: 'The label of the variant.' },
    name: { type: 'string', description: 'The name of its Deployment.' },
    state: {
      type: 'string',
      description:
        'Ready, Progressing or Degraded as its Deployment is; Invalid when the variant is not well formed, Conflict when its name or label is taken, Failed when the API server refused the Deployment.',
    },
    instances: { type: 'integer', format: 'int32', description: 'How many pods are wanted.' },
    ready: { type: 'integer', format: 'int32', description: 'How many pods are ready.' },
    message: { type: 'string', description: 'What is in the way.' },
  },
}

const conditionSchema: Schema = {
  type: 'object',
  description: 'One aspect of the state.',
  required: ['type', 'status', 'reason', 'message', 'lastTransitionTime'],
  properties: {
    type: { type: 'string', description: 'Ready, Reconciling or Stalled.' },
    status: { type: 'string', description: 'True, False or Unknown.', enum: ['True', 'False', 'Unknown'] },
    reason: { type: 'string', description: 'The reason in one word.' },
    message: { type: 'string', description: 'The reason for people.' },
    lastTransitionTime: {
      type: 'string',
      format: 'date-time',
      description: 'When the status last changed.',
    },
    observedGeneration: {
      type: 'integer',
      format: 'int64',
      description: 'The generation of the object that this condition speaks of.',
    },
  },
}
