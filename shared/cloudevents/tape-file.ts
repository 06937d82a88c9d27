import { closeSync, openSync, writeSync } from 'node:fs'
import { whyOf } from '../folder.ts'
import type { CloudEvent } from './event.ts'
import type { Sink } from './sink.ts'
import { tapeLine } from './tape.ts'

/** A tape that is being recorded. */
export interface TapeFile {
  /** Appends one event. Never throws: a tape is a help, and what it watches goes on without it. */
  record(event: CloudEvent): void
  close(): void
}

/**
 * Opens a tape for appending; a new file is readable by its owner only. Each event is one write, so that a process may
 * be killed at any moment and several may share the file. `onError` is told of an event that cannot be written; after a
 * failed write no more is recorded. Throws when the file cannot be opened.
 */
export function tapeFile(path: string, onError: (error: unknown) => void): TapeFile {
  let file: number | undefined = opened(path)
  const close = () => {
    if (file !== undefined) closeSync(file)
    file = undefined
  }
  return {
    record(event) {
      if (file === undefined) return
      let line: string
      try {
        line = tapeLine(event)
      } catch (error) {
        // Somebody sent what no tape can give back; that must not end this one.
        return onError(error)
      }
      try {
        writeSync(file, line)
      } catch (error) {
        close()
        onError(error)
      }
    },
    close,
  }
}

function opened(path: string): number {
  try {
    return openSync(path, 'a', 0o600)
  } catch (error) {
    const isLost = (error as NodeJS.ErrnoException).code === 'ENOENT'
    const why = isLost ? 'its folder does not exist' : whyOf(error)
    throw new Error(`Cannot record a tape to ${path}: ${why}`, { cause: error })
  }
}

/** A sink that also records what it sends, once for each send. */
export function recordedSink(sink: Sink, record: ((event: CloudEvent) => void) | undefined): Sink {
  if (!record) return sink
  return {
    ...sink,
    send(event, options) {
      record(event)
      return sink.send(event, options)
    },
  }
}
