/**
 * HTTP libraries show header bytes as Latin-1; events mean UTF-8 by them, and a broker hands on what is neither. So
 * bytes become text as UTF-8, and a byte that is no part of UTF-8 becomes a lone surrogate (U+DC00 and the byte), which
 * no valid text holds and which becomes that byte again.
 */

const escapeBase = 0xdc00

/** The text that header bytes (shown as Latin-1) or a body mean. */
export function textOf(bytes: string | Uint8Array): string {
  const buffer = typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes
  return decoded(buffer) ?? decodedByParts(buffer)
}

/** The bytes of a text, shown as Latin-1, as HTTP libraries want headers. */
export function byteStringOf(text: string): string {
  if (text.isWellFormed()) return Buffer.from(text, 'utf8').toString('latin1')
  let bytes = ''
  for (const character of text) {
    const code = character.codePointAt(0) ?? 0
    if (code >= escapeBase + 0x80 && code <= escapeBase + 0xff)
      bytes += String.fromCharCode(code - escapeBase)
    else bytes += Buffer.from(character, 'utf8').toString('latin1')
  }
  return bytes
}

function decoded(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return undefined
  }
}

function decodedByParts(bytes: Uint8Array): string {
  let text = ''
  for (let at = 0; at < bytes.length; ) {
    const length = [1, 2, 3, 4].find((n) => decoded(bytes.subarray(at, at + n)) !== undefined)
    text += length
      ? decoded(bytes.subarray(at, at + length))
      : String.fromCharCode(escapeBase + (bytes[at] ?? 0))
    at += length ?? 1
  }
  return text
}
