/** The text itself, or as much of it as fits into `max` bytes of UTF-8 together with an ellipsis. */
export function cutToBytes(text: string, max: number): string {
  const bytes = Buffer.from(text.toWellFormed())
  if (bytes.length <= max) return bytes.toString()
  const ellipsis = '…'
  let end = max - Buffer.byteLength(ellipsis)
  // A byte 10xxxxxx goes on a character: cut before the one that began it.
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--
  return bytes.subarray(0, end).toString() + ellipsis
}
