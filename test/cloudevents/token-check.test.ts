import { exportJWK, generateKeyPair, type JWTPayload, SignJWT, UnsecuredJWT } from 'jose'
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Answer } from '../../shared/cloudevents/answers.ts'
import { receiver } from '../../shared/cloudevents/receiver.ts'
import { type SigningKeys, type TokenCheck, tokenCheck } from '../../shared/cloudevents/token-check.ts'
import { createLog } from '../../shared/log.ts'
import { type VirtualClock, virtualClock } from '../support/clock.ts'

const issuer = 'https://kubernetes.default.svc'
const audience = 'mutantops/mutation'
type Key = Awaited<ReturnType<typeof signer>>

async function signer(kid: string, algorithm = 'RS256') {
  const { privateKey, publicKey } = await generateKeyPair(algorithm)
  const jwk = { ...(await exportJWK(publicKey)), kid, alg: algorithm, use: 'sig' }
  const sign = (claims: JWTPayload, now: Date) => {
    const seconds = Math.floor(now.getTime() / 1_000)
    const all = {
      iss: issuer,
      aud: [audience],
      sub: 'system:serviceaccount:a:b',
      iat: seconds,
      exp: seconds + 600,
    }
    const given = Object.entries({ ...all, ...claims }).filter(([, value]) => value !== null)
    return new SignJWT(Object.fromEntries(given)).setProtectedHeader({ alg: algorithm, kid }).sign(privateKey)
  }
  return { jwk, sign }
}

let [first, second]: Key[] = []
let clock: VirtualClock
let served: SigningKeys | Error
let reads: number
let check: TokenCheck

beforeAll(async () => {
  ;[first, second] = await Promise.all([signer('one'), signer('two', 'ES256')])
})
beforeEach(() => {
  clock = virtualClock()
  served = { issuer, keys: { keys: [keyOf(first).jwk] } }
  reads = 0
  check = tokenCheck({
    audience,
    clock,
    async readKeys() {
      reads++
      if (served instanceof Error) throw served
      return served
    },
  })
})

function keyOf(key: Key | undefined): Key {
  if (!key) throw new Error('No key')
  return key
}
const signed = (claims: JWTPayload = {}, key = first) => keyOf(key).sign(claims, clock.now())
const judged = async (token: string | Promise<string>) => check(`Bearer ${await token}`)
const refusal = (message: RegExp) => ({ status: 401, message: expect.stringMatching(message) })

describe('a token', () => {
  it('of the issuer, for the audience, in its time is let in, and the keys are read once', async () => {
    expect(await judged(signed())).toBeUndefined()
    expect(await judged(signed({ aud: ['other', audience] }))).toBeUndefined()
    expect(reads).toBe(1)
  })

  it.each<[string, JWTPayload, RegExp]>([
    ['for another audience', { aud: ['mutantops/resync'] }, /claim aud/],
    ['of another issuer', { iss: 'https://elsewhere.test' }, /claim iss/],
    ['that has expired', { exp: 1 }, /expired/],
    ['that is not valid yet', { nbf: 9_999_999_999 }, /claim nbf/],
    ['that never expires', { exp: null as unknown as number }, /claim exp/],
  ])('%s is refused', async (_, claims, message) => {
    expect(await judged(signed(claims))).toEqual(refusal(message))
  })

  it('that is ten seconds old too long is let in: clocks differ', async () => {
    const token = await signed()
    await clock.advance(605_000)
    expect(await judged(token)).toBeUndefined()
    await clock.advance(6_000)
    expect(await judged(token)).toEqual(refusal(/expired/))
  })

  it('that is not signed, or signed with what everybody knows, is refused', async () => {
    const claims = { iss: issuer, aud: audience, exp: clock.now().getTime() / 1_000 + 600 }
    expect(await judged(new UnsecuredJWT(claims).encode())).toEqual(refusal(/not valid/))
    const secret = new TextEncoder().encode(JSON.stringify(keyOf(first).jwk))
    const confused = await new SignJWT(claims).setProtectedHeader({ alg: 'HS256', kid: 'one' }).sign(secret)
    expect(await judged(confused)).toEqual(refusal(/algorithm/))
  })

  it('whose claims were changed after it was signed is refused, and stands in no answer', async () => {
    const [head = '', , signature = ''] = (await signed()).split('.')
    const changed = Buffer.from(JSON.stringify({ iss: issuer, aud: audience, exp: 9_999_999_999 })).toString(
      'base64url',
    )
    const token = `${head}.${changed}.${signature}`
    const answer = (await judged(token)) as Answer & { message: string }
    expect(answer).toEqual(refusal(/signature/))
    expect(answer.message).not.toContain(signature)
  })

  it.each([null, '', 'Bearer', 'Bearer ', 'Basic YTpi', 'Bearer a b', 'Bearer a\u0000', 'Bearer a.b.c'])(
    '%j is none',
    async (header) => {
      expect(await check(header)).toMatchObject({ status: 401 })
    },
  )
})

describe('the keys', () => {
  it('are read again when a token comes with one that is not known, but not for each such token', async () => {
    await judged(signed())
    served = { issuer, keys: { keys: [keyOf(first).jwk, keyOf(second).jwk] } }
    expect(await judged(signed({}, second))).toEqual(refusal(/unknown key/))
    expect(reads).toBe(1)
    await clock.advance(10_000)
    expect(await judged(signed({}, second))).toBeUndefined()
    expect(reads).toBe(2)
  })

  it('that were taken away are not trusted for longer than ten minutes', async () => {
    expect(await judged(signed())).toBeUndefined()
    served = { issuer, keys: { keys: [keyOf(second).jwk] } }
    await clock.advance(600_000)
    expect(await judged(signed())).toEqual(refusal(/unknown key/))
  })

  it('that cannot be read put an event off, for that time only', async () => {
    served = new Error('no')
    expect(await judged(signed())).toMatchObject({ status: 503, retryAfterSeconds: 5 })
    served = { issuer, keys: { keys: [keyOf(first).jwk] } }
    expect(await judged(signed())).toBeUndefined()
  })

  it('are read once for many events at once', async () => {
    const token = await signed()
    expect(await Promise.all(Array.from({ length: 20 }, () => judged(token)))).toEqual(
      Array(20).fill(undefined),
    )
    expect(reads).toBe(1)
  })
})

it('a receiver that asks for tokens works on no event without one, and is healthy all the same', async () => {
  const worked: string[] = []
  const app = receiver({
    clock,
    log: createLog({ name: 'test', level: 'silent' }),
    authenticate: check,
    work: async (event) => {
      worked.push(event.id)
      return undefined
    },
  })
  const headers = { 'ce-specversion': '1.0', 'ce-id': 'i', 'ce-source': '/s', 'ce-type': 't' }
  const post = (extra: object) => app.request('/', { method: 'POST', headers: { ...headers, ...extra } })
  const refused = await post({})
  expect(refused.status).toBe(401)
  expect(refused.headers.get('www-authenticate')).toBe('Bearer')
  expect(worked).toEqual([])
  expect((await post({ authorization: `Bearer ${await signed()}` })).status).toBe(204)
  expect(worked).toEqual(['i'])
  expect((await app.request('/readyz')).status).toBe(204)
})
