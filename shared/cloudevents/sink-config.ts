import { isObject } from '../kinds/object.ts'
import { isAttributeName } from './event.ts'

/** What a SinkBinding tells a source. */
export interface SinkConfig {
  /** `K_SINK`. */
  url: string
  /** `K_CE_OVERRIDES`: extensions set on every event. */
  extensions?: Record<string, string>
  /** `K_CA_CERTS`: PEM certificates to trust besides the system's. */
  caCerts?: string
  /** The file with the OIDC token; none is sent while it does not exist. */
  tokenFile?: string
}

/** Where a SinkBinding mounts the token. */
const defaultTokenFile = '/oidc/token'

/**
 * Reads `K_SINK`, `K_CE_OVERRIDES` and `K_CA_CERTS` (and `K_OIDC_TOKEN_FILE`, for tests and other mounts) from an
 * environment. Undefined when there is no `K_SINK`. Throws an Error that names the variable when one is malformed.
 */
export function sinkConfig(env: Record<string, string | undefined>): SinkConfig | undefined {
  const url = env.K_SINK?.trim()
  if (!url) return undefined
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
    throw new Error('K_SINK is not an http or https URL')
  const parsed = new URL(url)
  if (parsed.username !== '' || parsed.password !== '') throw new Error('K_SINK must not hold credentials')
  const extensions = overridesOf(env.K_CE_OVERRIDES)
  return {
    url,
    ...(extensions && { extensions }),
    ...(env.K_CA_CERTS?.trim() && { caCerts: env.K_CA_CERTS }),
    tokenFile: env.K_OIDC_TOKEN_FILE || defaultTokenFile,
  }
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
