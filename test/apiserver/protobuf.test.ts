import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { apiServer } from '../../shared/apiserver/server.ts'

const magic = Buffer.from('k8s\0')

/** A field of text or of a message, by its number. */
function fields(...values: [number, string | Uint8Array][]): Uint8Array {
  const writer = new BinaryWriter()
  for (const [number, value] of values) {
    writer.tag(number, WireType.LengthDelimited)
    if (typeof value === 'string') writer.string(value)
    else writer.bytes(value)
  }
  return writer.finish()
}

const envelope = (kind: string, message: Uint8Array) =>
  Buffer.concat([magic, fields([1, fields([1, 'v1'], [2, kind])], [2, message])])
const namespace = (...more: [number, string | Uint8Array][]) =>
  envelope('Namespace', fields([1, fields([1, 'made'])], ...more))

async function posted(body: Uint8Array, path = '/api/v1/namespaces') {
  const server = apiServer()
  const headers = { 'content-type': 'application/vnd.kubernetes.protobuf' }
  const { baseUrl, fetch } = server.transport()
  const answer = await fetch(`${baseUrl}${path}`, { method: 'POST', headers, body: Buffer.from(body) })
  await server.stop()
  return { code: answer.status, body: (await answer.json()) as { message?: string; metadata?: object } }
}

describe('a body in protobuf', () => {
  it('makes the object, and fields that are not known are passed over', async () => {
    const { code, body } = await posted(namespace([99, 'later']))
    expect(code).toBe(201)
    expect(body).toMatchObject({ kind: 'Namespace', metadata: { name: 'made' } })
  })

  it.each([
    ['without its head', Buffer.from('{}'), 'expected prefix [107 56 115 0] ({})'],
    ['that is its head only', magic, 'empty body (6b387300)'],
    ['that is empty', Buffer.from(''), 'empty data (<empty>)'],
    ['that ends too soon', namespace().subarray(0, -2), 'unexpected EOF (6b387300'],
    [
      'with a number where a message belongs',
      envelope('Namespace', Buffer.from([0x08, 0x01])),
      'Namespace in version "v1" cannot be handled as a Namespace: proto: wrong wireType = 0',
    ],
    [
      'of another kind',
      envelope('ConfigMap', fields([1, fields([1, 'made'])])),
      'ConfigMap in version "v1" cannot be handled as a Namespace: converting (v1.ConfigMap) to (core.Namespace)',
    ],
  ])('%s is refused in the words of the real server', async (_, bytes, message) => {
    const { code, body } = await posted(bytes)
    expect(code).toBe(400)
    expect(body.message).toContain(message)
  })

  it('that does not say of which kind it is, is of the path’s', async () => {
    const { code, body } = await posted(Buffer.concat([magic, fields([2, fields([1, fields([1, 'made'])])])]))
    expect([code, body]).toMatchObject([201, { kind: 'Namespace', metadata: { name: 'made' } }])
  })

  it('of a definition is not taken', async () => {
    const path = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
    expect((await posted(namespace(), path)).code).toBe(415)
  })

  it('whatever its bytes, is never the server’s own fault', async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 60 }), fc.boolean(), async (bytes, isWhole) => {
        const { code } = await posted(isWhole ? envelope('Namespace', bytes) : Buffer.concat([magic, bytes]))
        expect(code).toBeLessThan(500)
      }),
      { numRuns: 300, seed: 1 },
    )
  })
})
