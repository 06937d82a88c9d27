import {
  configMaps,
  customResourceDefinitions,
  deployments,
  events,
  type KubeObject,
  leases,
  namespaces,
  type Resource,
  secrets,
} from '../kinds/object.ts'
import { builtInRules, builtInSchema } from './built-in-rules.ts'
import { crdRules } from './custom/crd-rules.ts'
import { coreEventView } from './event-view.ts'
import {
  configMapColumns,
  crdColumns,
  deploymentColumns,
  eventColumns,
  leaseColumns,
  namespaceColumns,
  secretColumns,
} from './printing/columns.ts'
import { type ApiResource, allVerbs, selectable } from './resources.ts'

/** The resources that are served without any CRD. */

interface Extras
  extends Partial<
    Pick<ApiResource, 'shortNames' | 'categories' | 'verbs' | 'hasStatus' | 'scale' | 'view' | 'storage'>
  > {
  columns: ApiResource['columns']
  rules: ApiResource['rules']
  fields?: Parameters<typeof selectable>[1]
  /** Whether the refusal of an unknown field names the known ones. */
  namesKnown?: boolean
}

function served(resource: Resource, extras: Extras): ApiResource {
  const { fields, namesKnown = true, ...rest } = extras
  const { group, version, kind, plural, namespaced } = resource
  return {
    group,
    version,
    kind,
    plural,
    namespaced,
    singular: kind.toLowerCase(),
    listKind: `${kind}List`,
    shortNames: [],
    categories: [],
    verbs: allVerbs,
    storage: group === '' ? plural : `${plural}.${group}`,
    hasStatus: false,
    itemsAreTyped: false,
    schema: builtInSchema(resource.kind === 'Event' ? events : resource),
    fields: selectable({ namespaced, namesKnown }, fields),
    ...rest,
  }
}

const coreEvents: Resource = { ...events, group: '' }
const involved = (field: string) => ['regarding', field]

/** What both views of an Event can be selected by; Events are stored as events.k8s.io has them. */
const eventFields = (prefix: string) => ({
  reason: ['reason'],
  type: ['type'],
  reportingComponent: ['reportingController'],
  source: (object: KubeObject) => String(object.reportingController ?? ''),
  ...Object.fromEntries(
    ['kind', 'namespace', 'name', 'uid', 'apiVersion', 'resourceVersion', 'fieldPath'].map((field) => [
      `${prefix}.${field}`,
      involved(field),
    ]),
  ),
})

const scale = {
  specReplicas: ['spec', 'replicas'],
  statusReplicas: ['status', 'replicas'],
}

export function builtInResources(): ApiResource[] {
  return [
    served(namespaces, {
      shortNames: ['ns'],
      verbs: allVerbs.filter((verb) => verb !== 'deletecollection'),
      hasStatus: true,
      columns: namespaceColumns,
      rules: builtInRules(namespaces),
      fields: { 'status.phase': ['status', 'phase'] },
      namesKnown: false,
    }),
    served(configMaps, { shortNames: ['cm'], columns: configMapColumns, rules: builtInRules(configMaps) }),
    served(secrets, {
      columns: secretColumns,
      rules: builtInRules(secrets),
      fields: { type: ['type'] },
      namesKnown: false,
    }),
    served(coreEvents, {
      shortNames: ['ev'],
      columns: eventColumns,
      rules: builtInRules(coreEvents),
      storage: 'events.events.k8s.io',
      view: coreEventView,
      fields: eventFields('involvedObject'),
      namesKnown: false,
    }),
    served(events, {
      shortNames: ['ev'],
      columns: eventColumns,
      rules: builtInRules(events),
      fields: eventFields('regarding'),
      namesKnown: false,
    }),
    served(deployments, {
      shortNames: ['deploy'],
      categories: ['all'],
      hasStatus: true,
      scale,
      columns: deploymentColumns,
      rules: builtInRules(deployments),
      namesKnown: false,
    }),
    served(leases, { columns: leaseColumns, rules: builtInRules(leases) }),
    served(customResourceDefinitions, {
      shortNames: ['crd', 'crds'],
      categories: ['api-extensions'],
      hasStatus: true,
      columns: crdColumns,
      rules: crdRules,
    }),
  ]
}
