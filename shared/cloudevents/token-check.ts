import { createLocalJWKSet, errors, type JSONWebKeySet, type JWTVerifyGetKey, jwtVerify } from 'jose'
import type { Clock } from '../clock.ts'
import { type Answer, notNow, unauthorized } from './answers.ts'

/** Who signs tokens, and with which keys (OpenID Connect Discovery 1.0, RFC 7517). */
export interface SigningKeys {
  issuer: string
  keys: JSONWebKeySet
}

export interface TokenCheckOptions {
  /** What must stand in a token's `aud`. */
  audience: string
  clock: Clock
  /** Asks for the keys that are valid now; what it throws means that nobody can be let in for the moment. */
  readKeys(): Promise<SigningKeys>
}

/** Judges an `Authorization` header: undefined lets the request in, else it is what to answer. */
export type TokenCheck = (authorization: string | null) => Promise<Answer | undefined>

/** Keys are read again when they are older than this, in ms. */
const keysKeptMs = 600_000
/** A token signed by a key that is not known makes them be read again, at most so often, in ms. */
const keysApartMs = 10_000
const retryAfterSeconds = 5
/** What the clocks of two machines may differ by. */
const clockToleranceSeconds = 10
/** With a public key only: a token must not be verified with a key that its sender may know. */
const algorithms = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA']

interface Kept extends SigningKeys {
  find: JWTVerifyGetKey
  atMs: number
}

/**
 * Makes a check of the tokens that Knative Eventing sends with an event (its feature `authentication-oidc`): RFC 6750
 * bearer tokens, RFC 7519, of the issuer, for the audience, in their time. 401 says what is wrong with a token and
 * never shows it; while the keys cannot be read the answer is 503, which a broker tries again.
 */
export function tokenCheck({ audience, clock, readKeys }: TokenCheckOptions): TokenCheck {
  let kept: Kept | undefined
  let reading: Promise<Kept> | undefined

  function read(): Promise<Kept> {
    reading ??= readKeys()
      .then(({ issuer, keys }) => {
        kept = { issuer, keys, find: createLocalJWKSet(keys), atMs: clock.monotonicMs() }
        return kept
      })
      .finally(() => {
        reading = undefined
      })
    return reading
  }

  /** The keys, not older than `ageMs`. */
  function keysOf(ageMs: number): Kept | Promise<Kept> {
    return kept && clock.monotonicMs() - kept.atMs < ageMs ? kept : read()
  }

  async function verify(token: string, keys: Kept): Promise<void> {
    await jwtVerify(token, keys.find, {
      audience,
      issuer: keys.issuer,
      algorithms,
      clockTolerance: clockToleranceSeconds,
      currentDate: clock.now(),
      requiredClaims: ['exp'],
    })
  }

  return async (authorization) => {
    const token = /^Bearer +([\w.~+/=-]+)$/i.exec(authorization ?? '')?.[1]
    if (token === undefined) return unauthorized('An event needs a bearer token here (OIDC_AUDIENCE is set)')
    try {
      const keys = await keysOf(keysKeptMs)
      try {
        await verify(token, keys)
      } catch (error) {
        if (!(error instanceof errors.JWKSNoMatchingKey)) throw error
        await verify(token, await keysOf(keysApartMs))
      }
      return undefined
    } catch (error) {
      if (error instanceof errors.JOSEError)
        return unauthorized(`The token is not valid here: ${problemOf(error)}`)
      return notNow('The keys that tokens are verified with cannot be read', retryAfterSeconds)
    }
  }
}

/** What is wrong, without a word out of the token. */
function problemOf(error: errors.JOSEError): string {
  if (error instanceof errors.JWTExpired) return 'it has expired'
  if (error instanceof errors.JWTClaimValidationFailed) return `its claim ${error.claim} is not the right one`
  if (error instanceof errors.JWKSNoMatchingKey) return 'it is signed with an unknown key'
  if (error instanceof errors.JWSSignatureVerificationFailed) return 'its signature is wrong'
  if (error instanceof errors.JOSEAlgNotAllowed) return 'its algorithm is not taken'
  return 'it cannot be read'
}
