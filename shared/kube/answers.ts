import { TimeoutError } from '../clock.ts'
import { isObject, type Status } from '../kinds/object.ts'
import { KubeError } from './errors.ts'

/** The error for an answer of the API that is not 2xx. */
export function answerError(what: string, response: Response, body: unknown): KubeError {
  const status = isObject(body) && body.kind === 'Status' ? (body as unknown as Status) : undefined
  const header = Number(response.headers.get('retry-after') ?? Number.NaN)
  const retryAfterSeconds = Number.isFinite(header) ? header : status?.details?.retryAfterSeconds
  return statusError(what, response.status, status, retryAfterSeconds)
}

/** The error for a `Status` that came in an answer or in an ERROR event of a watch. */
export function statusError(
  what: string,
  code: number,
  status?: Status,
  retryAfterSeconds?: number,
): KubeError {
  return new KubeError(`${what}: ${code} ${status?.message ?? status?.reason ?? 'without a reason'}`, {
    code,
    ...(status && { status, reason: status.reason ?? '' }),
    ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
  })
}

/**
 * The error for a request that got no answer. Only the system's short code (`ECONNREFUSED`) is told: the cause's own
 * text can hold an address with credentials.
 */
export function connectionError(what: string, cause: unknown): KubeError {
  if (cause instanceof KubeError) return cause
  if (cause instanceof TimeoutError)
    return new KubeError(`${what}: no answer in time`, { code: 0, reason: 'Timeout', cause })
  const code = systemCode(cause)
  return new KubeError(`${what}: no answer (${code ?? 'connection failed'})`, {
    code: 0,
    ...(code !== undefined && resetCodes.has(code) && { reason: connectionReset }),
    cause,
  })
}

/** The reason of a {@link KubeError} when the connection broke: mostly one that was kept and that the server closed. */
export const connectionReset = 'ConnectionReset'

const resetCodes = new Set(['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET'])

function systemCode(error: unknown, depth = 0): string | undefined {
  if (!(error instanceof Error) || depth > 3) return undefined
  const code = (error as NodeJS.ErrnoException).code
  return typeof code === 'string' ? code : systemCode(error.cause, depth + 1)
}
