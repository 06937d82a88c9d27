import { describe, expect, it } from 'vitest'
import { terminal } from '../../shared/local/session/terminal.ts'

/** What is to be seen after all that was written: the lines, of which the last may be unfinished. */
function screen(columns: number | undefined) {
  let text = ''
  const made = terminal(
    (more) => {
      text += more
    },
    () => columns,
  )
  const seen = () => text.split('\n').map((line) => line.split('\r').at(-1)?.replace('\u001b[2K', '') ?? '')
  return { ...made, seen }
}

describe('terminal', () => {
  it('keeps the progress below the lines', () => {
    const s = screen(80)
    s.print('one')
    s.progress('waiting for two')
    s.print('two')
    expect(s.seen()).toEqual(['one', 'two', 'waiting for two'])
    s.progress('waiting for three')
    expect(s.seen()).toEqual(['one', 'two', 'waiting for three'])
    s.progress(undefined)
    s.print('done')
    expect(s.seen()).toEqual(['one', 'two', 'done', ''])
  })

  it('cuts the progress so that it fits one line', () => {
    const s = screen(10)
    s.progress('0123456789abc')
    expect(s.seen()).toEqual(['012345678'])
  })

  it('shows no progress where nothing can be written over', () => {
    const s = screen(undefined)
    s.progress('waiting')
    s.print('one')
    expect(s.seen()).toEqual(['one', ''])
  })
})
