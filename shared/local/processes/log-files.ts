import { createWriteStream, type WriteStream } from 'node:fs'
import { join } from 'node:path'
import { makeFolder } from '../../folder.ts'

/** The whole output of each process, in a file of its name; the run before is overwritten. */
export interface LogFiles {
  folder: string
  write(name: string, line: string): void
  close(): Promise<void>
}

export function logFiles(folder: string): LogFiles {
  makeFolder(folder)
  const streams = new Map<string, WriteStream>()
  return {
    folder,
    write(name, line) {
      let stream = streams.get(name)
      if (!stream) {
        stream = createWriteStream(join(folder, `${name}.log`), { mode: 0o600 })
        // A full disk must not end the run; what is shown on the terminal goes on.
        stream.on('error', () => {})
        streams.set(name, stream)
      }
      stream.write(line.endsWith('\n') ? line : `${line}\n`)
    },
    async close() {
      const ends = [...streams.values()].map(
        (stream) => new Promise<void>((done) => stream.end(() => done())),
      )
      await Promise.all(ends)
    },
  }
}
