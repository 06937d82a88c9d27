import type { Status } from '../kinds/object.ts'

/** Which of the metric labels of the spec an error counts under. */
export type ErrorLabel = 'invalid' | 'api' | 'client'

/**
 * A request to the Kubernetes API that failed. `code` is the HTTP status, or 0 when no answer came (connection
 * refused or reset, timeout). The message says what was tried on which object and never holds a credential.
 */
export class KubeError extends Error {
  override readonly name = 'KubeError'
  readonly code: number
  /** The API's own word: `NotFound`, `Conflict`, `AlreadyExists`, `Invalid`, `Expired`, …; empty if it gave none. */
  readonly reason: string
  readonly status: Status | undefined
  /** What the server asked to wait before the next try, in seconds. */
  readonly retryAfterSeconds: number | undefined

  constructor(
    message: string,
    details: { code: number; reason?: string; status?: Status; retryAfterSeconds?: number; cause?: unknown },
  ) {
    super(message, { cause: details.cause })
    this.code = details.code
    this.reason = details.reason ?? ''
    this.status = details.status
    this.retryAfterSeconds = details.retryAfterSeconds
  }
}

export function isKubeError(error: unknown): error is KubeError {
  return error instanceof KubeError
}

function hasCode(error: unknown, code: number): error is KubeError {
  return isKubeError(error) && error.code === code
}

export const isNotFound = (error: unknown) => hasCode(error, 404)
/** 409: a stale resourceVersion or uid, an object that exists already, or fields that another manager owns. */
export const isConflict = (error: unknown) => hasCode(error, 409)
/** 410: the resourceVersion or the continue token is too old; list again. */
export const isExpired = (error: unknown) => hasCode(error, 410)
export const isForbidden = (error: unknown) => hasCode(error, 403)

/**
 * Whether the trouble is with the API server as such (no answer, 429, 5xx) and not with the object sent. A body that
 * server-side apply cannot read is a 500 with an empty reason, but it is the object's fault: repeating cannot help.
 */
export function isServerTrouble(error: unknown): boolean {
  if (!isKubeError(error)) return false
  if (isUnreadableApply(error)) return false
  return error.code === 0 || error.code === 429 || error.code >= 500
}

/** The 500 with which server-side apply answers an unknown field, a duplicate list key or a value of a wrong type. */
export function isUnreadableApply(error: KubeError): boolean {
  return (
    error.code === 500 &&
    error.reason === '' &&
    /failed to create typed patch object/.test(error.status?.message ?? '')
  )
}

/** `api` when the API server answered with an error, `client` when none came or anything else was thrown. */
export function errorLabel(error: unknown): ErrorLabel {
  return isKubeError(error) && error.code !== 0 ? 'api' : 'client'
}
