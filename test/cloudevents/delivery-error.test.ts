import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { deliveryErrorOf } from '../../shared/cloudevents/delivery-error.ts'
import type { CloudEvent } from '../../shared/cloudevents/event.ts'

const event = (extensions: Record<string, string>): CloudEvent => ({
  specversion: '1.0',
  id: 'i',
  source: '/s',
  type: 't',
  extensions,
})
const base64 = (text: string) => Buffer.from(text).toString('base64')

describe('case 18: what a broker tells of its last try', () => {
  test.each([
    ['plain text', 'no such host', 'no such host'],
    ['plain text with a percent sign', '100% busy', '100% busy'],
    ['a word that could be base64', 'Conflict', 'Conflict'],
    ['base64', base64('<html>\r\n<h1>Bad gateway</h1>\r\n'), '<html> <h1>Bad gateway</h1>'],
    ['base64 cut in the middle of a group', base64('service unavailable').slice(0, -3), 'service unavailabl'],
    ['base64 cut in the middle of a character', base64('grün').slice(0, 4), 'gr'],
    ['what a terminal would act on', 'a\u001b[31mb\u202ec', 'a [31mb c'],
    ['nothing', '', undefined],
    ['too much', 'x y '.repeat(400), `${'x y '.repeat(125)}…`],
  ])('%s', (_, knativeerrordata, text) => {
    expect(deliveryErrorOf(event({ knativeerrordata })).text).toBe(text)
  })

  test.each([
    ['503', 503],
    ['404', 404],
    ['-1', undefined],
    ['0', undefined],
    ['abc', undefined],
    ['', undefined],
    ['99999999999', undefined],
  ])('code %s is %s', (knativeerrorcode, code) => {
    expect(deliveryErrorOf(event({ knativeerrorcode })).code).toBe(code)
  })

  test('nothing that stands there makes it throw', () => {
    const any = fc.option(fc.string({ unit: 'binary' }), { nil: undefined })
    fc.assert(
      fc.property(any, any, any, (code, data, dest) => {
        const extensions = {
          ...(code !== undefined && { knativeerrorcode: code }),
          ...(data !== undefined && { knativeerrordata: data }),
          ...(dest !== undefined && { knativeerrordest: dest }),
        }
        const { text = '' } = deliveryErrorOf(event(extensions))
        expect(text.length).toBeLessThanOrEqual(501)
      }),
    )
  })
})
