import { promisify } from 'node:util'
import { gzip } from 'node:zlib'

/** Shorter answers are sent as they are: they fit in few packets. */
const lengthMin = 128 * 1024
/** The lightest, as the real server does: it saves most, and costs least. */
const level = 1

const compress = promisify(gzip)

/** The answer, compressed when it is long and the client takes gzip. */
export async function compressed(request: Request, response: Response): Promise<Response> {
  if (!takesGzip(request)) return response
  const bytes = await response.arrayBuffer()
  if (bytes.byteLength < lengthMin) return new Response(bytes, response)
  const headers = new Headers(response.headers)
  headers.set('content-encoding', 'gzip')
  headers.append('vary', 'Accept-Encoding')
  const body = new Uint8Array(await compress(new Uint8Array(bytes), { level }))
  return new Response(body, { status: response.status, headers })
}

function takesGzip(request: Request): boolean {
  const accepted = request.headers.get('accept-encoding') ?? ''
  return accepted.split(',').some((entry) => /^\s*gzip\s*(;\s*q=(?!0(\.0*)?\s*$).*)?$/.test(entry))
}
