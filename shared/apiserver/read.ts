import type { StoredObject } from '../kinds/object.ts'
import type { ServerContext } from './context.ts'
import { type ListMeta, shapedList, shapedObject } from './http/answers.ts'
import { type ListOptions, listOptions, revisionOf } from './http/options.ts'
import type { Target } from './http/request.ts'
import type { Shape } from './http/wire.ts'
import { keyOf } from './resources.ts'
import { scaleOf } from './scale.ts'
import { fieldMatcher, labelMatcher, type Matcher } from './selectors.ts'
import { badRequest, expired, failure, notFound } from './status.ts'

/** Answers a GET of one object. Throws 404, and 504 for a resourceVersion that is yet to come. */
export function getObject(ctx: ServerContext, target: Target, url: URL, shape: Shape): object {
  const { resource, namespace, name = '', subresource } = target
  const version = url.searchParams.get('resourceVersion') ?? ''
  refuseFuture(ctx, revisionOf(version))
  const stored = ctx.store.get(resource.storage, keyOf(resource, namespace, name))
  if (!stored) throw notFound(resource, name)
  if (subresource === 'scale') return scaleOf(resource, stored)
  return shapedObject(resource, stored, shape, ctx.clock.now())
}

export function refuseFuture(ctx: ServerContext, revision: number): void {
  if (revision <= ctx.store.revision()) return
  const message = `Timeout: Too large resource version: ${revision}, current: ${ctx.store.revision()}`
  throw failure(504, 'Timeout', message, {
    causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }],
    retryAfterSeconds: 1,
  })
}

/** Whether an object is one of those that the selectors name. */
export function matcherOf(target: Target, options: ListOptions): Matcher {
  const byLabel = labelMatcher(options.labelSelector)
  const byField = fieldMatcher(options.fieldSelector, target.resource.fields)
  return (object) => byLabel(object) && byField(object)
}

/** The part of the keys that lies in the target's namespace; all without one. */
export function prefixOf({ resource, namespace }: Target): string {
  return resource.namespaced && namespace !== undefined ? `${namespace}/` : ''
}

/** Answers a list. Throws 400, 410 (expired token), 422 and 504. */
export function listObjects(ctx: ServerContext, target: Target, url: URL, shape: Shape): object {
  const options = listOptions(url.searchParams, false)
  const matches = matcherOf(target, options)
  const { items, metadata } = page(ctx, target, options, matches)
  return shapedList(target.resource, items, metadata, shape, ctx.clock.now())
}

interface Token {
  v: 'meta.k8s.io/v1'
  rv: number
  /** The key after which the page begins. */
  start: string
}

function page(
  ctx: ServerContext,
  target: Target,
  options: ListOptions,
  matches: Matcher,
): { items: StoredObject[]; metadata: ListMeta } {
  const token = options.continue === '' ? undefined : readToken(options.continue)
  if (token && options.resourceVersion !== '' && options.resourceVersion !== '0')
    throw badRequest('specifying resource version is not allowed when using continue')
  const asked = revisionOf(options.resourceVersion)
  refuseFuture(ctx, asked)
  const isExact =
    options.resourceVersionMatch === 'Exact' ||
    (options.limit > 0 && asked > 0 && options.resourceVersionMatch === '')
  const revision = token
    ? token.rv === -1
      ? ctx.store.revision()
      : token.rv
    : isExact
      ? asked
      : ctx.store.revision()
  const all = snapshot(ctx, target, revision, token)
  const selected = all.filter(matches)
  const items = options.limit > 0 ? selected.slice(0, options.limit) : selected
  const metadata: ListMeta = { resourceVersion: String(revision) }
  const last = items.at(-1)
  if (last && items.length < selected.length) {
    metadata.continue = writeToken({ v: 'meta.k8s.io/v1', rv: revision, start: keyIn(target, last) })
    // The rest can only be counted where nothing has to be selected.
    if (options.labelSelector === '' && options.fieldSelector === '')
      metadata.remainingItemCount = selected.length - items.length
  }
  return { items, metadata }
}

const keyIn = ({ resource }: Target, object: StoredObject) =>
  keyOf(resource, object.metadata.namespace, object.metadata.name)

function snapshot(
  ctx: ServerContext,
  target: Target,
  revision: number,
  token: Token | undefined,
): StoredObject[] {
  const { storage } = target.resource
  const prefix = prefixOf(target)
  if (revision === ctx.store.revision() || token?.rv === -1)
    return after(target, ctx.store.list(storage, prefix), token)
  try {
    return after(target, ctx.store.listAt(storage, prefix, revision), token)
  } catch (error) {
    throw token ? expiredToken(token) : error
  }
}

function after(target: Target, objects: StoredObject[], token: Token | undefined): StoredObject[] {
  if (!token) return objects
  return objects.filter((object) => keyIn(target, object) > token.start)
}

/** 410 with a token that goes on from the same place in the objects as they are now. */
function expiredToken(token: Token) {
  const error = expired(
    'The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.',
  )
  error.status.metadata = { continue: writeToken({ ...token, rv: -1 }) }
  return error
}

function writeToken(token: Token): string {
  return Buffer.from(JSON.stringify(token)).toString('base64url')
}

function readToken(text: string): Token {
  const decoded = Buffer.from(text, 'base64url').toString()
  try {
    const token = JSON.parse(decoded) as Token
    if (token.v === 'meta.k8s.io/v1' && typeof token.start === 'string' && Number.isInteger(token.rv))
      return token
  } catch {
    // Told below, whatever is wrong with it.
  }
  const why = `invalid character '${decoded[0] ?? ''}' looking for beginning of value`
  throw badRequest(`invalid continue token: continue key is not valid: ${why}`)
}
