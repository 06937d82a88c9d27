/**
 * A URI reference as Go reads it and writes it again, which is how `source` and `dataschema` leave Knative: the scheme
 * in lower case, and what may not stand in a path or fragment percent-encoded. Undefined: it is none (a broken escape,
 * a colon in the first segment of a relative path, a port that is no number, a control character).
 */
export function uriReference(text: string): string | undefined {
  if (hasControlCharacter(text)) return undefined
  const [withoutFragment = '', fragment] = splitAt(text, '#')
  const scheme = /^([A-Za-z][A-Za-z0-9+.-]*):/.exec(withoutFragment)?.[1]
  if (withoutFragment.startsWith(':')) return undefined
  const rest = scheme === undefined ? withoutFragment : withoutFragment.slice(scheme.length + 1)
  const [hierarchy = '', query] = splitAt(rest, '?')
  const opaque = scheme !== undefined && !hierarchy.startsWith('/')
  const start = scheme === undefined ? '' : `${scheme.toLowerCase()}:`
  const end = query === undefined ? '' : `?${query}`
  const tail = fragment === undefined ? '' : encoded(fragment, fragmentSafe)
  if (tail === undefined) return undefined
  const middle = opaque ? hierarchy : authorityAndPath(hierarchy, scheme !== undefined)
  if (middle === undefined) return undefined
  return `${start}${middle}${end}${tail && `#${tail}`}`
}

/** Whether a URI reference, as {@link uriReference} gives it, is absolute. */
export function isAbsolute(reference: string): boolean {
  return /^[a-z][a-z0-9+.-]*:/.test(reference)
}

const pathSafe = /^[A-Za-z0-9\-._~!$&'()*+,;=:@/[\]]*$/
const fragmentSafe = /^[A-Za-z0-9\-._~!$&'()*+,;=:@/?[\]]*$/
const percentEscape = /%[0-9A-Fa-f]{2}/g
const hostCharacters = /^[A-Za-z0-9\-._~!$&'()*+,;=:[\]<>"\u0080-\u{10ffff}]*$/u

function authorityAndPath(hierarchy: string, hasScheme: boolean): string | undefined {
  if (hierarchy.startsWith('//') && (hasScheme || !hierarchy.startsWith('///'))) {
    const slash = hierarchy.indexOf('/', 2)
    const authority = authorityOf(slash < 0 ? hierarchy.slice(2) : hierarchy.slice(2, slash))
    const path = slash < 0 ? '' : encoded(hierarchy.slice(slash), pathSafe)
    return authority === undefined || path === undefined ? undefined : `//${authority}${path}`
  }
  const firstSegment = hierarchy.split('/', 1)[0] ?? ''
  if (!hasScheme && firstSegment.includes(':')) return undefined
  return encoded(hierarchy, pathSafe)
}

function authorityOf(authority: string): string | undefined {
  const at = authority.lastIndexOf('@')
  const user = authority.slice(0, at + 1)
  const host = authority.slice(at + 1)
  if (!/^[A-Za-z0-9\-._:~!$&'()*+,;=%@]*$/.test(user)) return undefined
  if (!hostCharacters.test(host.replace(percentEscape, ''))) return undefined
  const port = host.startsWith('[') ? /^\[[^\]]*\](.*)$/.exec(host)?.[1] : /(:[^:]*)?$/.exec(host)?.[0]
  if (port === undefined || !/^(:\d*)?$/.test(port)) return undefined
  return user + host.replace(/[\u0080-\u{10ffff}]/gu, encodeURIComponent)
}

/** As it stands when every character may, else each that may not encoded, and those of escapes anew. */
function encoded(text: string, safe: RegExp): string | undefined {
  const plain = text.replace(percentEscape, '')
  if (plain.includes('%')) return undefined
  if (safe.test(plain)) return text
  const parts = text.split(/(%[0-9A-Fa-f]{2})/)
  const bytes = parts.map((part, index) =>
    index % 2 ? Buffer.from(part.slice(1), 'hex') : Buffer.from(part, 'utf8'),
  )
  return [...Buffer.concat(bytes)]
    .map((byte) => {
      const character = String.fromCharCode(byte)
      const hex = byte.toString(16).toUpperCase().padStart(2, '0')
      return /[A-Za-z0-9\-._~$&+,/:;=@]/.test(character) ? character : `%${hex}`
    })
    .join('')
}

function splitAt(text: string, separator: string): [string, string?] {
  const at = text.indexOf(separator)
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + 1)]
}

function hasControlCharacter(text: string): boolean {
  return [...text].some((character) => character < ' ' || character === '\x7f')
}
