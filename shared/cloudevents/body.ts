/** The body is longer than is taken. */
export class TooLarge extends Error {
  override readonly name = 'TooLarge'
}

/** The body did not come to its end: the sender hung up, or (`isDraining`) the process will not wait for it. */
export class CutOff extends Error {
  override readonly name = 'CutOff'
  readonly isDraining: boolean

  constructor(isDraining: boolean, cause?: unknown) {
    super('The body was cut off', { cause })
    this.isDraining = isDraining
  }
}

/** An ApiServerSource in resource mode sends a whole object, and etcd takes none above 1.5 MiB. */
const bodyBytesMax = 2 * 1024 * 1024

/**
 * Reads a request's body, whether its length was declared or it comes in chunks. Throws {@link TooLarge} as soon as it
 * is clear that it is (nothing more is read then) and {@link CutOff}.
 */
export async function bodyOf(request: Request, draining?: AbortSignal): Promise<Uint8Array> {
  if (Number(request.headers.get('content-length') ?? 0) > bodyBytesMax)
    throw new TooLarge('Declared too large')
  const reader = request.body?.getReader()
  if (!reader) return new Uint8Array()
  const stop = stopper(draining)
  const chunks: Uint8Array[] = []
  try {
    for (let bytes = 0; ; ) {
      const { done, value } = await Promise.race([reader.read(), stop.stopped])
      if (done) return Buffer.concat(chunks)
      bytes += value.byteLength
      if (bytes > bodyBytesMax) throw new TooLarge('More than is taken')
      chunks.push(value)
    }
  } catch (error) {
    // Not awaited: a sender that hangs would hold it up.
    reader.cancel().catch(() => {})
    throw error instanceof TooLarge || error instanceof CutOff ? error : new CutOff(false, error)
  } finally {
    stop.forget()
  }
}

function stopper(draining: AbortSignal | undefined): { stopped: Promise<never>; forget(): void } {
  let onAbort = () => {}
  const stopped = new Promise<never>((_, reject) => {
    onAbort = () => reject(new CutOff(true))
    if (draining?.aborted) onAbort()
    draining?.addEventListener('abort', onAbort, { once: true })
  })
  stopped.catch(() => {})
  return { stopped, forget: () => draining?.removeEventListener('abort', onAbort) }
}
