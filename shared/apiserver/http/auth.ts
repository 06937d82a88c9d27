import { createHash, timingSafeEqual } from 'node:crypto'
import { failure, unauthorized } from '../status.ts'

/** Who may talk to the server. */
export interface Door {
  token: string
  /** The host names by which the server may be called, without port; undefined takes any (in process). */
  hosts?: readonly string[] | undefined
}

/** Paths that a prober may read without a token. */
const openPaths = new Set(['/readyz', '/livez', '/healthz', '/version'])

/**
 * Lets a request in or throws: 401 without the token, 403 for a foreign Host (a name rebound to this machine) and for any Origin
 * (a page in a browser): kubectl and our client send neither.
 */
export function admit(request: Request, url: URL, door: Door): void {
  if (door.hosts && !door.hosts.includes(hostOf(request, url)))
    throw failure(403, 'Forbidden', 'this server is not served under that host name')
  if (request.headers.get('origin') !== null)
    throw failure(403, 'Forbidden', 'this server is not for pages in a browser')
  const header = request.headers.get('authorization')
  if (header === null && openPaths.has(url.pathname)) return
  const [scheme = '', token = ''] = (header ?? '').split(' ')
  if (scheme.toLowerCase() !== 'bearer' || !isSame(token, door.token)) throw unauthorized()
}

function hostOf(request: Request, url: URL): string {
  const host = request.headers.get('host') ?? url.host
  return host
    .replace(/:\d+$/, '')
    .replace(/^\[|\]$/g, '')
    .toLowerCase()
}

/** Compares in a time that tells nothing about where two tokens differ, nor how long they are. */
function isSame(given: string, expected: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest()
  return timingSafeEqual(digest(given), digest(expected))
}
