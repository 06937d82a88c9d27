/** Where the user reads: lines that stay, and on a terminal one below them that is written over. */
export interface Terminal {
  print(text: string): void
  /** What is being waited for; undefined: nothing more. Not shown where lines cannot be written over. */
  progress(text: string | undefined): void
}

const eraseLine = '\r\u001b[2K'

/** Makes a {@link Terminal}. `columns` is its width, undefined when it is none (a file, a pipe). */
export function terminal(write: (text: string) => void, columns: () => number | undefined): Terminal {
  let shown = ''
  const isTerminal = () => columns() !== undefined
  const erase = () => {
    if (shown !== '') write(eraseLine)
  }
  return {
    print(text) {
      erase()
      write(`${text}\n${shown}`)
    },
    progress(text = '') {
      if (!isTerminal()) return
      erase()
      // A line that wraps could not be erased.
      shown = text.slice(0, Math.max(0, (columns() ?? 0) - 1))
      write(shown)
    },
  }
}
