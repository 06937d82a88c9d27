import type { ApiResource, Registry } from './resources.ts'

/** What tells a client which resources there are. */

export const version = {
  major: '1',
  minor: '36',
  gitVersion: 'v1.36.3',
  gitCommit: '',
  gitTreeState: '',
  buildDate: '1970-01-01T00:00:00Z',
  goVersion: '',
  compiler: '',
  platform: 'embedded',
}

export function coreVersions(): object {
  return { kind: 'APIVersions', versions: ['v1'], serverAddressByClientCIDRs: [] }
}

function groupsOf(registry: Registry): string[] {
  return [...new Set(registry.all().map(({ group }) => group))].filter((group) => group !== '')
}

function versionsOf(registry: Registry, group: string): string[] {
  return [
    ...new Set(
      registry
        .all()
        .filter((one) => one.group === group)
        .map(({ version }) => version),
    ),
  ]
}

export function groupList(registry: Registry): object {
  return {
    kind: 'APIGroupList',
    apiVersion: 'v1',
    groups: groupsOf(registry).map((group) => groupOf(registry, group)),
  }
}

function groupOf(registry: Registry, group: string): object {
  const versions = versionsOf(registry, group).map((version) => ({
    groupVersion: `${group}/${version}`,
    version,
  }))
  return { name: group, versions, preferredVersion: versions[0] }
}

export function oneGroup(registry: Registry, group: string): object {
  return { kind: 'APIGroup', apiVersion: 'v1', ...groupOf(registry, group) }
}

const subresourceVerbs = ['get', 'patch', 'update']

export function resourceList(registry: Registry, group: string, version: string): object {
  return {
    kind: 'APIResourceList',
    // Of the core group and of CRDs' groups alike.
    apiVersion: 'v1',
    groupVersion: group === '' ? version : `${group}/${version}`,
    resources: inGroupVersion(registry, group, version).flatMap(entriesOf),
  }
}

function inGroupVersion(registry: Registry, group: string, version: string): ApiResource[] {
  return registry
    .all()
    .filter((one) => one.group === group && one.version === version)
    .toSorted((a, b) => (a.plural < b.plural ? -1 : 1))
}

function entriesOf(resource: ApiResource): object[] {
  const { plural, singular, namespaced, kind, verbs, shortNames, categories } = resource
  const entries: object[] = [
    {
      name: plural,
      singularName: singular,
      namespaced,
      kind,
      verbs,
      ...(shortNames.length > 0 && { shortNames }),
      ...(categories.length > 0 && { categories }),
    },
  ]
  for (const name of subresourcesOf(resource))
    entries.push({
      name: `${plural}/${name}`,
      singularName: '',
      namespaced,
      ...(name === 'scale' && { group: 'autoscaling', version: 'v1' }),
      kind: name === 'scale' ? 'Scale' : kind,
      verbs: name === 'finalize' ? ['update'] : subresourceVerbs,
    })
  return entries
}

function subresourcesOf(resource: ApiResource): string[] {
  const names = []
  if (resource.kind === 'Namespace' && resource.group === '') names.push('finalize')
  if (resource.scale) names.push('scale')
  if (resource.hasStatus) names.push('status')
  return resource.customSchema ? names.reverse() : names
}

export const aggregatedType = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList'

/** Whether the client takes all of discovery in one answer. */
export function wantsAggregated(request: Request): boolean {
  const accept = request.headers.get('accept') ?? ''
  return accept.split(',').some((entry) => {
    const parts = entry.split(';').map((part) => part.trim())
    return (
      parts.includes('as=APIGroupDiscoveryList') &&
      parts.includes('v=v2') &&
      parts.includes('g=apidiscovery.k8s.io')
    )
  })
}

/** Of the core group (`/api`) or of all named ones (`/apis`), as one document. */
export function aggregated(registry: Registry, isCore: boolean): object {
  const groups = isCore ? [''] : groupsOf(registry)
  return {
    kind: 'APIGroupDiscoveryList',
    apiVersion: 'apidiscovery.k8s.io/v2',
    metadata: {},
    items: groups.map((group) => ({
      metadata: group === '' ? {} : { name: group },
      versions: versionsOf(registry, group).map((version) => ({
        version,
        resources: inGroupVersion(registry, group, version).map(discoveryOf),
        freshness: 'Current',
      })),
    })),
  }
}

function discoveryOf(resource: ApiResource): object {
  const { group, version, kind, plural, singular, namespaced, verbs, shortNames, categories } = resource
  const subresources = subresourcesOf(resource).map((name) => ({
    subresource: name,
    responseKind:
      name === 'scale' ? { group: 'autoscaling', version: 'v1', kind: 'Scale' } : { group, version, kind },
    verbs: name === 'finalize' ? ['update'] : subresourceVerbs,
  }))
  return {
    resource: plural,
    responseKind: { group, version, kind },
    scope: namespaced ? 'Namespaced' : 'Cluster',
    singularResource: singular,
    verbs,
    ...(shortNames.length > 0 && { shortNames }),
    ...(categories.length > 0 && { categories }),
    ...(subresources.length > 0 && { subresources }),
  }
}
