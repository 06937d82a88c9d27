import { mutantKinds } from '../kinds/mutants.ts'
import { isObject } from '../kinds/object.ts'
import { resyncRequestType } from './envelope.ts'
import { type CloudEvent, isAttributeName } from './event.ts'

/** Where events go, and how. */
export interface SinkConfig {
  /** One address for all (a broker), or each function's own. */
  url: string | FunctionUrls
  /** How long one send may take, in ms; default 30 s. */
  timeoutMs?: number
  /** `K_CE_OVERRIDES`: extensions set on every event. */
  extensions?: Record<string, string>
  /** `K_CA_CERTS`: PEM certificates to trust besides the system's. */
  caCerts?: string
  /** The file with the OIDC token; none is sent while it does not exist. */
  tokenFile?: string
}

/** Without a broker: where the function for each kind is, and the resync. */
export interface FunctionUrls {
  kinds: Record<string, string>
  resync: string
}

/**
 * A broker may hold a POST for the whole of a Trigger's delivery (280 s of waits, nine timeouts of 30 s, and the dead
 * letter); what is given up sooner would be delivered twice.
 */
const brokerTimeoutMs = 600_000
/** A function answers within 20 s, after a cold start; Knative Serving cuts its requests off at 30 s. */
const functionTimeoutMs = 45_000
/** Where a SinkBinding mounts the token. */
const defaultTokenFile = '/oidc/token'

/**
 * Reads where events go from an environment: `K_SINK`, as a SinkBinding sets it, or without a broker `SINK_` and a kind
 * in capitals for each kind, and `SINK_RESYNC`. With either go `K_CE_OVERRIDES` and `K_CA_CERTS` (and
 * `K_OIDC_TOKEN_FILE`, for tests and other mounts). Undefined when neither is there. Throws an Error that names the
 * variable which is malformed or missing.
 */
export function sinkConfig(env: Record<string, string | undefined>): SinkConfig | undefined {
  const broker = urlIn(env, 'K_SINK')
  const functions = functionUrls(env)
  if (broker && functions) throw new Error('K_SINK and SINK_RESYNC exclude each other')
  const url = broker ?? functions
  if (!url) return undefined
  const extensions = overridesOf(env.K_CE_OVERRIDES)
  return {
    url,
    timeoutMs: broker ? brokerTimeoutMs : functionTimeoutMs,
    ...(extensions && { extensions }),
    ...(env.K_CA_CERTS?.trim() && { caCerts: env.K_CA_CERTS }),
    tokenFile: env.K_OIDC_TOKEN_FILE || defaultTokenFile,
  }
}

/** The variable that names the function of a kind: `SINK_MUTATION`. */
function kindVariable(kind: string): string {
  return `SINK_${kind.toUpperCase()}`
}

function functionUrls(env: Record<string, string | undefined>): FunctionUrls | undefined {
  const variables = [...mutantKinds.map(({ kind }) => kindVariable(kind)), 'SINK_RESYNC']
  if (!variables.some((name) => env[name]?.trim())) return undefined
  const needed = (name: string): string => {
    const url = urlIn(env, name)
    if (!url)
      throw new Error(`${name} is missing: without a broker all of ${variables.join(', ')} are needed`)
    return url
  }
  return {
    kinds: Object.fromEntries(mutantKinds.map(({ kind }) => [kind, needed(kindVariable(kind))])),
    resync: needed('SINK_RESYNC'),
  }
}

function urlIn(env: Record<string, string | undefined>, name: string): string | undefined {
  const text = env[name]?.trim()
  if (!text) return undefined
  if (!URL.canParse(text) || !/^https?:$/.test(new URL(text).protocol))
    throw new Error(`${name} is not an http or https URL`)
  const { username, password } = new URL(text)
  if (username !== '' || password !== '') throw new Error(`${name} must not hold credentials`)
  return text
}

/** Where events go, for the log: without queries, which may hold what nobody should read. */
export function sinkNames({ url }: SinkConfig): string[] {
  const urls = typeof url === 'string' ? [url] : [...Object.values(url.kinds), url.resync]
  return urls.map((one) => {
    const { origin, pathname } = new URL(one)
    return origin + pathname
  })
}

/** Where one event goes. Throws a TypeError for one that is for none of the functions. */
export function addressOf(event: CloudEvent, url: SinkConfig['url']): string {
  if (typeof url === 'string') return url
  if (event.type === resyncRequestType) return url.resync
  const address = url.kinds[String(event.extensions?.kind)]
  if (address === undefined) throw new TypeError(`There is no function for an event ${event.type}`)
  return address
}

const notExtensions = new Set(['id', 'source', 'type', 'specversion', 'subject', 'time', 'data'])

function overridesOf(json: string | undefined): Record<string, string> | undefined {
  if (!json?.trim()) return undefined
  let value: unknown
  try {
    value = JSON.parse(json)
  } catch (cause) {
    throw new Error('K_CE_OVERRIDES is not JSON', { cause })
  }
  const extensions = isObject(value) ? (value.extensions ?? {}) : undefined
  if (!isObject(extensions)) throw new Error('K_CE_OVERRIDES is not of the form {"extensions": {…}}')
  for (const [name, extension] of Object.entries(extensions))
    if (!isAttributeName(name) || notExtensions.has(name) || typeof extension !== 'string')
      throw new Error(
        `K_CE_OVERRIDES sets ${JSON.stringify(name)}, which is no extension with a string value`,
      )
  return extensions as Record<string, string>
}
