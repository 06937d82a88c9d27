/** In-cluster names, as Knative's own controllers resolve them, and which of our processes stands behind each. */

export interface ObjectRef {
  apiVersion: string
  kind: string
  name: string
  namespace?: string | undefined
}

/** A Knative Destination: an object, a URI, or a URI relative to an object's address. */
export interface Destination {
  ref?: ObjectRef | undefined
  uri?: string | undefined
}

const brokerIngressHost = 'broker-ingress.knative-eventing.svc.cluster.local'

export function brokerUrl(namespace: string, name: string): string {
  return `http://${brokerIngressHost}/${namespace}/${name}`
}

export function serviceUrl(namespace: string, name: string): string {
  return `http://${name}.${namespace}.svc.cluster.local`
}

/** What a URL names: a Broker, a Service, or something outside. */
export function placeOf(
  url: string,
): { kind: 'broker' | 'service'; namespace: string; name: string } | { kind: 'outside' } {
  const { hostname, pathname } = new URL(url)
  if (hostname === brokerIngressHost) {
    const [, namespace = '', name = ''] = pathname.split('/')
    return { kind: 'broker', namespace, name }
  }
  const service = /^([^.]+)\.([^.]+)\.svc\.cluster\.local$/.exec(hostname)
  if (!service) return { kind: 'outside' }
  return { kind: 'service', namespace: service[2] ?? '', name: service[1] ?? '' }
}

/**
 * The URL of a destination named in `namespace`. Throws, naming `what`, when it names neither object nor URI, or an
 * object that has no address here.
 */
export function urlOf(what: string, destination: Destination, namespace: string): string {
  const { ref, uri } = destination
  if (!ref) {
    if (!uri || !URL.canParse(uri)) throw new Error(`${what}: neither a ref nor an absolute uri`)
    return uri
  }
  const base = addressOf(what, ref, ref.namespace ?? namespace)
  return uri ? new URL(uri, base).href : base
}

function addressOf(what: string, ref: ObjectRef, namespace: string): string {
  const group = ref.apiVersion.split('/')[0]
  if (ref.kind === 'Broker' && group === 'eventing.knative.dev') return brokerUrl(namespace, ref.name)
  if (ref.kind === 'Service' && group === 'serving.knative.dev') return serviceUrl(namespace, ref.name)
  throw new Error(
    `${what}: a ${ref.apiVersion} ${ref.kind} has no address here; a Broker or a Knative Service has`,
  )
}
