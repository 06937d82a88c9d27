import type { TokenCheck } from '../shared/cloudevents/token-check.ts'
import { isObject } from '../shared/kinds/object.ts'
import type { FunctionContext } from './context.ts'

/**
 * The check of the tokens of events for `audience`, or undefined without one. Issuer and keys are those of the cluster's
 * own API server, which signs the tokens of Knative Eventing; every service account may read them.
 */
export async function authentication(
  ctx: Pick<FunctionContext, 'client' | 'clock' | 'log'>,
  audience: string | undefined,
): Promise<TokenCheck | undefined> {
  if (audience === undefined) return undefined
  // Only where it is asked for: a cold start shall not pay for it.
  const { tokenCheck } = await import('../shared/cloudevents/token-check.ts')
  return tokenCheck({ audience, clock: ctx.clock, readKeys: () => signingKeys(ctx) })
}

async function signingKeys({ client, log }: Pick<FunctionContext, 'client' | 'log'>) {
  try {
    const [discovery, keys] = await Promise.all([
      client.request('GET', '/.well-known/openid-configuration'),
      client.request('GET', '/openid/v1/jwks', { accept: 'application/jwk-set+json' }),
    ])
    const issuer = isObject(discovery.body) ? discovery.body.issuer : undefined
    if (typeof issuer !== 'string' || !isKeySet(keys.body))
      throw new Error('The API server answered with neither an issuer nor keys')
    return { issuer, keys: keys.body }
  } catch (err) {
    log.warn({ err }, 'cannot read who signs tokens: no event is let in')
    throw err
  }
}

function isKeySet(value: unknown): value is { keys: { kty: string }[] } {
  return isObject(value) && Array.isArray(value.keys) && value.keys.every(isObject)
}
