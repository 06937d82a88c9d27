import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { objectEvent } from '../../shared/cloudevents/envelope.ts'
import type { CloudEvent } from '../../shared/cloudevents/event.ts'
import { disordered, replay } from '../../shared/cloudevents/replay.ts'
import { readTape, tapeLine } from '../../shared/cloudevents/tape.ts'
import { recordedSink, tapeFile } from '../../shared/cloudevents/tape-file.ts'
import { mutantops } from '../../shared/runtime/cli.ts'
import { version } from '../../shared/version.ts'
import { virtualClock } from '../support/clock.ts'
import { newFolder } from '../support/folder.ts'
import { testSink } from '../support/function.ts'

const owner = { apiVersion: 'neiam.org/v1', kind: 'Mutation', namespace: 'shop', name: 'web', uid: 'u' }
const numbered = (n: number): CloudEvent =>
  objectEvent({
    cluster: 'c',
    verb: 'applied',
    owner,
    changed: { uid: 'u', resourceVersion: `${n}` },
    cause: 'object',
    time: new Date(Date.UTC(2026, 0, 1, 0, 0, n)),
  })
const holding = (data: unknown): CloudEvent => ({ ...numbered(1), data })

describe('a tape', () => {
  test('gives back what was recorded, whatever the data and the extensions', () => {
    const event = fc.record({
      id: fc.string({ minLength: 1 }),
      data: fc.jsonValue().filter((value) => !JSON.stringify(value).includes('env')),
      cause: fc.string({ minLength: 1 }),
    })
    fc.assert(
      fc.property(fc.array(event, { maxLength: 5 }), (parts) => {
        const events = parts.map(({ id, data, cause }) => ({
          ...numbered(1),
          id,
          data: JSON.parse(JSON.stringify(data)) as unknown,
          extensions: { cause },
        }))
        expect(readTape(events.map(tapeLine).join(''))).toEqual(events)
      }),
    )
  })

  const whole = tapeLine(numbered(1))
  test.each([
    ['a last line that was cut off', whole + whole.slice(0, -1), 'Line 2 of the tape: it was cut off'],
    ['an empty line', `${whole}\n${whole}`, 'Line 2 of the tape'],
    ['what is no JSON', `${whole}{\n`, 'Line 2 of the tape'],
    ['a batch', `[${whole.trim()}]\n`, 'Line 1 of the tape'],
    ['a missing id', whole.replace(/"id":"[^"]*",/, ''), 'Line 1 of the tape: Attribute id is missing'],
    ['an attribute that a door overlooks', whole.replace('"cause"', '"Cause"'), 'Attribute "Cause"'],
    ['an attribute that is a number', whole.replace('"cause":"object"', '"cause":1'), 'Attribute cause'],
  ])('is refused with %s, and the line is named', (_, text, message) => {
    expect(() => readTape(text)).toThrow(message)
  })

  test('holds no secret, but still tells its object', () => {
    const container = { name: 'main', image: 'nginx', env: [{ name: 'KEY', value: 's3cret' }] }
    const data = {
      kind: 'Mutation',
      metadata: {
        name: 'web',
        annotations: { 'kubectl.kubernetes.io/last-applied-configuration': '{"env":"s3cret"}' },
      },
      spec: {
        deployment: { spec: { template: { spec: { containers: [container] } } } },
        mutations: [{ label: 'red', env: { KEY: 's3cret' } }],
      },
      items: [{ kind: 'Secret', metadata: { name: 'web-token' }, data: { token: 's3cret' } }],
      password: 's3cret',
    }
    const line = tapeLine({ ...holding(data), extensions: { authorization: 's3cret', kind: 'Mutation' } })
    expect(line).not.toContain('s3cret')
    const [read] = readTape(line)
    expect(read?.data).toMatchObject({
      metadata: { name: 'web' },
      spec: { mutations: [{ label: 'red', env: { KEY: 'redacted' } }] },
      items: [{ metadata: { name: 'web-token' } }],
    })
    const bytes = tapeLine({ ...holding(Buffer.from('s3cret')), datacontenttype: 'text/plain' })
    expect(bytes).not.toContain(Buffer.from('s3cret').toString('base64'))
  })

  test('is appended to, read by its owner only, and not ended by an event that is none', async () => {
    const path = join(newFolder(), 'tape')
    const errors: unknown[] = []
    const file = tapeFile(path, (error) => errors.push(error))
    const there = { send: async () => ({ status: 202, resets: 0 }), close: async () => {} }
    await recordedSink(there, file.record).send(numbered(1))
    file.record({ ...numbered(2), id: '' })
    file.record(numbered(3))
    file.close()
    file.record(numbered(4))
    expect(errors).toHaveLength(1)
    expect(readTape(readFileSync(path, 'utf8'))).toEqual([numbered(1), numbered(3)])
    expect(statSync(path).mode & 0o777).toBe(0o600)
  })
})

test('a tape that cannot be opened is told by its name', () => {
  const folder = newFolder()
  expect(() => tapeFile(join(folder, 'none', 'tape'), () => {})).toThrow(
    `Cannot record a tape to ${folder}/none/tape: its folder does not exist`,
  )
})

describe('a replay', () => {
  const tape = Array.from({ length: 40 }, (_, n) => numbered(n))

  test('keeps the order and loses nothing unless told to; a seed bends always in the same way', () => {
    expect(disordered(tape, {}).played).toEqual(tape)
    const bent = { shuffle: true, repeat: 0.5, drop: 0.2 }
    const one = disordered(tape, { ...bent, seed: 7 })
    expect(disordered(tape, { ...bent, seed: 7 })).toEqual(one)
    expect(disordered(tape, { ...bent, seed: 8 })).not.toEqual(one)
    expect(one.played).toHaveLength(tape.length - one.dropped + one.repeated)
    expect(one.dropped).toBeGreaterThan(0)
    expect(one.repeated).toBeGreaterThan(0)
    expect(disordered(tape, { drop: 1 }).played).toEqual([])
    expect(disordered(tape, { repeat: 1 }).played).toHaveLength(80)
    expect(() => disordered(tape, { drop: 2 })).toThrow(RangeError)
  })

  test('goes on past a refusal and past no answer, and tells both', async () => {
    const send = async ({ id }: CloudEvent) => {
      if (id === numbered(1).id) throw new Error('away')
      return { status: id === numbered(2).id ? 503 : 204 }
    }
    expect(await replay(tape, { send, clock: virtualClock() })).toMatchObject({
      sent: 40,
      refused: [
        { id: numbered(1).id, status: 0, message: 'away' },
        { id: numbered(2).id, status: 503 },
      ],
    })
  })

  test('with a speed keeps the pauses, so many times shorter', async () => {
    const clock = virtualClock()
    const atMs: number[] = []
    const send = async () => {
      atMs.push(clock.monotonicMs())
      return { status: 204 }
    }
    const playing = replay(tape.slice(0, 3), { send, clock, speed: 4 })
    await clock.advance(1_000)
    await playing
    expect(atMs).toEqual([0, 250, 500])
  })
})

describe('mutantops replay', () => {
  const run = async (...args: string[]) => {
    let said = ''
    const say = (text: string) => {
      said += text
    }
    const code = await mutantops(['replay', ...args], { env: {}, out: say, err: say })
    return { code, said }
  }

  test('sends a tape, tells what came of it, and fails when an event is not taken', async () => {
    const path = join(newFolder(), 'tape')
    const file = tapeFile(path, () => {})
    for (const n of [1, 2]) file.record(numbered(n))
    file.close()
    const there = await testSink()
    expect(await run(path, '--to', there.url, '--repeat', '1')).toEqual({
      code: 0,
      said: '4 sent, 2 of them again, 0 lost; seed 1\n',
    })
    expect(there.events.map(({ id }) => id)).toEqual([1, 1, 2, 2].map((n) => numbered(n).id))
    await there.close()
    const { code, said } = await run(path, '--to', there.url)
    expect(code).toBe(1)
    const { host } = new URL(there.url)
    expect(said).toBe(
      [`2 sent, 0 of them again, 0 lost; seed 1`, `2 not taken by ${host}:`, ...[1, 2].map(refused), ''].join(
        '\n',
      ),
    )
  })

  const refused = (n: number) => `  POST of event ${numbered(n).id}: no answer (ECONNREFUSED)`

  test('of a tape that has no events says so', async () => {
    const path = join(newFolder(), 'tape')
    writeFileSync(path, '')
    expect(await run(path, '--to', 'http://127.0.0.1:9')).toEqual({
      code: 1,
      said: `${path} has no events: nothing was sent\n`,
    })
  })

  test('says its version', async () => {
    let said = ''
    const out = (text: string) => {
      said += text
    }
    expect(await mutantops(['--version'], { env: {}, out, err: out })).toBe(0)
    expect(said).toBe(`${version}\n`)
  })

  test.each([
    ['no tape there', ['/nowhere/tape', '--to', 'http://127.0.0.1:9'], 'Cannot read /nowhere/tape'],
    ['no URL', ['tape', '--to', 'here'], 'It must be an http or https URL'],
    ['a probability above 1', ['tape', '--to', 'http://a', '--drop', '2'], 'It must be from 0 to 1'],
    ['a speed of 0', ['tape', '--to', 'http://a', '--speed', '0'], 'It must be above 0'],
  ])('fails and says so: %s', async (_, args, message) => {
    const { code, said } = await run(...args)
    expect(code).toBe(1)
    expect(said).toContain(message)
  })
})
