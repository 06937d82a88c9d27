import { readFile } from 'node:fs/promises'
import { type Command, InvalidArgumentError } from 'commander'
import { systemClock } from '../clock.ts'
import { replay } from '../cloudevents/replay.ts'
import { sink } from '../cloudevents/sink.ts'
import { readTape, UnreadableTape } from '../cloudevents/tape.ts'
import { version } from '../version.ts'

interface ReplayFlags {
  to: string
  speed?: number
  shuffle?: true
  repeat: number
  drop: number
  seed: number
}

/**
 * Adds `mutantops replay TAPE --to URL`: sends the events of a tape to a function or a broker, and tells what came of it.
 * It fails (1) when the tape cannot be read or some event was not answered with 2xx.
 */
export function replayCommand(
  program: Command,
  terminal: { out(text: string): void; fail(message: string): void },
): void {
  program
    .command('replay')
    .description('Sends the CloudEvents of a tape to a function or a broker, one after another.')
    .argument('<tape>', 'a file recorded with TAPE=<file>')
    .requiredOption('--to <url>', 'where they go', httpUrl)
    .option('--speed <number>', 'times as fast as recorded (default: as fast as they are answered)', above0)
    .option('--shuffle', 'in any order')
    .option('--repeat <probability>', 'that an event comes twice', probability, 0)
    .option('--drop <probability>', 'that an event is lost', probability, 0)
    .option('--seed <number>', 'of what is left to chance', wholeNumber, 1)
    .action(async (tape: string, { to, ...flags }: ReplayFlags) => {
      const text = await readFile(tape, 'utf8').catch((error: Error) => error)
      if (text instanceof Error) return terminal.fail(`Cannot read ${tape}: ${text.message}`)
      const out = sink({ url: to, clock: systemClock, userAgent: `mutantops/${version} (replay)` })
      try {
        const events = readTape(text)
        if (events.length === 0) return terminal.fail(`${tape} has no events: nothing was sent`)
        const report = await replay(events, { ...flags, clock: systemClock, send: out.send })
        terminal.out(
          `${report.sent} sent, ${report.repeated} of them again, ${report.dropped} lost; seed ${flags.seed}\n`,
        )
        if (report.refused.length > 0) terminal.fail(refusals(report.refused, to))
      } catch (error) {
        if (!(error instanceof UnreadableTape)) throw error
        terminal.fail(error.message)
      } finally {
        await out.close()
      }
    })
}

const refusalsShown = 10

function refusals(refused: { id: string; status: number; message?: string }[], to: string): string {
  const lines = refused.slice(0, refusalsShown).map(({ id, status, message }) => message ?? `${status} ${id}`)
  const more = refused.length - lines.length
  return [
    `${refused.length} not taken by ${new URL(to).host}:`,
    ...lines,
    ...(more > 0 ? [`and ${more} more`] : []),
  ].join('\n  ')
}

function httpUrl(text: string): string {
  if (!/^https?:$/.test(URL.parse(text)?.protocol ?? ''))
    throw new InvalidArgumentError('It must be an http or https URL.')
  return text
}

function above0(text: string): number {
  const value = Number(text)
  if (!(value > 0 && Number.isFinite(value))) throw new InvalidArgumentError('It must be above 0.')
  return value
}

function probability(text: string): number {
  const value = Number(text)
  if (text.trim() === '' || !(value >= 0 && value <= 1))
    throw new InvalidArgumentError('It must be from 0 to 1.')
  return value
}

function wholeNumber(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError('It must be a whole number.')
  return Number(text)
}
