import type { KubeObject } from '../../kinds/object.ts'
import { equal } from '../ownership/typed.ts'
import { type Cause, cause } from '../status.ts'
import { causesOf, immutableCauses } from './fields.ts'
import { configKeyErrors } from './names.ts'

/** What Secrets and ConfigMaps may hold, and what of it may change. */

const sizeMaxBytes = 1024 * 1024

type Texts = Record<string, string>

export function secretCauses(secret: KubeObject, live: KubeObject | undefined): Cause[] {
  const data = (secret.data ?? {}) as Texts
  const size = Object.values(data).reduce((sum, text) => sum + Buffer.byteLength(text, 'base64'), 0)
  return [
    ...keyCauses('data', data),
    ...(size > sizeMaxBytes ? [cause.tooLong('data', sizeMaxBytes)] : []),
    ...typeCauses(String(secret.type), data, secret.metadata?.annotations ?? {}),
    ...(live ? immutableCauses('type', secret.type, live.type) : []),
    ...sealedCauses(secret, live, ['data']),
  ]
}

export function configMapCauses(map: KubeObject, live: KubeObject | undefined): Cause[] {
  const data = (map.data ?? {}) as Texts
  const binary = (map.binaryData ?? {}) as Texts
  const size =
    Object.values(data).reduce((sum, text) => sum + Buffer.byteLength(text), 0) +
    Object.values(binary).reduce((sum, text) => sum + Buffer.byteLength(text, 'base64'), 0)
  return [
    ...keyCauses('data', data),
    ...Object.keys(data)
      .filter((key) => key in binary)
      .map((key) => cause.invalid(`data[${key}]`, key, 'duplicate of key present in binaryData')),
    ...keyCauses('binaryData', binary),
    ...(size > sizeMaxBytes ? [cause.tooLong('[]', sizeMaxBytes)] : []),
    ...sealedCauses(map, live, ['data', 'binaryData']),
  ]
}

function keyCauses(field: string, data: Texts): Cause[] {
  return Object.keys(data).flatMap((key) => causesOf(`${field}[${key}]`, key, configKeyErrors(key)))
}

/** What was made immutable stays so, and stays as it is. */
function sealedCauses(object: KubeObject, live: KubeObject | undefined, fields: string[]): Cause[] {
  if (live?.immutable !== true) return []
  const why = 'field is immutable when `immutable` is set'
  const changed = fields.filter((field) => !equal(object[field] ?? {}, live[field] ?? {}))
  return [...(object.immutable === true ? [] : ['immutable']), ...changed].map((field) =>
    cause.forbidden(field, why),
  )
}

/** What the data of a Secret of one of the server's own types must hold. */
function typeCauses(type: string, data: Texts, annotations: Texts): Cause[] {
  const missing = (...keys: string[]) =>
    keys.filter((key) => !(key in data)).map((key) => cause.required(`data[${key}]`))
  switch (type) {
    case 'kubernetes.io/tls':
      return missing('tls.crt', 'tls.key')
    case 'kubernetes.io/ssh-auth':
      return data['ssh-privatekey'] ? [] : [cause.required('data[ssh-privatekey]')]
    case 'kubernetes.io/basic-auth':
      return 'username' in data || 'password' in data ? [] : missing('username', 'password')
    case 'kubernetes.io/dockerconfigjson':
      return dockerCauses('.dockerconfigjson', data)
    case 'kubernetes.io/dockercfg':
      return dockerCauses('.dockercfg', data)
    case 'kubernetes.io/service-account-token':
      return annotations['kubernetes.io/service-account.name']
        ? []
        : [cause.required('metadata.annotations[kubernetes.io/service-account.name]')]
    default:
      return []
  }
}

function dockerCauses(key: string, data: Texts): Cause[] {
  const encoded = data[key]
  if (encoded === undefined) return [cause.required(`data[${key}]`)]
  const text = Buffer.from(encoded, 'base64').toString()
  try {
    JSON.parse(text)
    return []
  } catch {
    const why =
      text === ''
        ? 'unexpected end of JSON input'
        : `invalid character '${text.trimStart()[0] ?? ''}' looking for beginning of value`
    return [cause.invalid(`data[${key}]`, '<secret contents redacted>', why)]
  }
}
