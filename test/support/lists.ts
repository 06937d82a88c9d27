import { systemClock } from '../../shared/clock.ts'
import type { StoredObject } from '../../shared/kinds/object.ts'
import { type ClientOptions, kubeClient } from '../../shared/kube/client.ts'

/**
 * The lists of an API server, ordered and paged as kube-apiserver does it, and nothing else of it: for tests that need
 * pages of a few objects, or tokens that expire at a chosen moment, neither of which a real server will do on demand.
 */
export interface Lists {
  client: ReturnType<typeof kubeClient>
  /** The paths with queries, in the order in which they came. */
  requests: string[]
  objects: StoredObject[]
  /** Answers the next request that carries a continue token with 410, with or without a token to go on with. */
  expireNext(options?: { withFreshToken?: boolean }): void
  /** These namespaces may not be read one by one. */
  forbidden: Set<string>
  /** The next page comes empty, but with a token. */
  emptyNext(): void
}

export function lists(
  objects: StoredObject[],
  pageLength: number,
  options: Partial<ClientOptions> = {},
): Lists {
  let expiry: { withFreshToken: boolean } | undefined
  let isEmpty = false
  const made: Lists = {
    objects,
    requests: [],
    forbidden: new Set(),
    expireNext: ({ withFreshToken = false } = {}) => {
      expiry = { withFreshToken }
    },
    emptyNext: () => {
      isEmpty = true
    },
    client: kubeClient({
      transport: { baseUrl: 'http://lists', fetch: async (url) => answer(new URL(url)) },
      clock: systemClock,
      userAgent: 'test',
      ...options,
    }),
  }

  function answer(url: URL): Response {
    made.requests.push(decodeURIComponent(url.pathname + url.search))
    const [, namespace, plural = ''] = /(?:\/namespaces\/([^/]+))?\/([^/]+)$/.exec(url.pathname) ?? []
    if (namespace !== undefined && made.forbidden.has(namespace)) return status(403, 'Forbidden')
    const token = url.searchParams.get('continue') ?? ''
    if (token !== '' && expiry) {
      const { withFreshToken } = expiry
      expiry = undefined
      return status(410, 'Expired', withFreshToken ? token : undefined)
    }
    const after = Buffer.from(token, 'base64url').toString()
    const rest = selected(plural, namespace, url.searchParams.get('labelSelector')).filter(
      (object) => keyOf(object) > after,
    )
    const items = isEmpty ? [] : rest.slice(0, pageLength)
    isEmpty = false
    const last = items.at(-1)
    const next = rest.length > items.length ? (last ? keyOf(last) : after) : ''
    return Response.json({
      kind: 'List',
      metadata: {
        resourceVersion: '1',
        continue: Buffer.from(next === '' && rest.length > items.length ? '\0' : next).toString('base64url'),
      },
      items,
    })
  }

  function selected(plural: string, namespace: string | undefined, selector: string | null): StoredObject[] {
    const [, key = '', values] = /^([^ ]+)(?: in \((.*)\))?$/.exec(selector ?? '') ?? []
    return made.objects
      .filter((object) => `${object.kind?.toLowerCase()}s` === plural)
      .filter((object) => namespace === undefined || object.metadata.namespace === namespace)
      .filter((object) => key === '' || object.metadata.labels?.[key] !== undefined)
      .filter(
        (object) => values === undefined || values.split(',').includes(object.metadata.labels?.[key] ?? ''),
      )
      .sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1))
  }
  return made
}

const keyOf = (object: StoredObject) => `${object.metadata.namespace}/${object.metadata.name}`

function status(code: number, reason: string, token?: string): Response {
  const body = {
    kind: 'Status',
    apiVersion: 'v1',
    code,
    reason,
    message: reason,
    metadata: token ? { continue: token } : {},
  }
  return Response.json(body, { status: code })
}
