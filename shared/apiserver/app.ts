import { type Context, Hono } from 'hono'
import type { ServerContext } from './context.ts'
import {
  aggregated,
  aggregatedType,
  coreVersions,
  groupList,
  oneGroup,
  resourceList,
  version,
  wantsAggregated,
} from './discovery.ts'
import { ConnectionReset, type FaultSource, withTrouble } from './faults.ts'
import { shapedObject, shapeOf } from './http/answers.ts'
import { admit, type Door } from './http/auth.ts'
import { compressed } from './http/compression.ts'
import { PageNotFound, type Target, targetOf } from './http/request.ts'
import { modify } from './modify.ts'
import { openApiDocument, openApiIndex } from './openapi.ts'
import { getObject, listObjects } from './read.ts'
import { remove, removeAll } from './remove.ts'
import { ApiError, failure } from './status.ts'
import { watchObjects } from './watch.ts'
import { create, replace, type WriteAsk, type Written } from './write.ts'

export interface AppOptions {
  door: Door
  faults: FaultSource
  /** Ends the watches that are opened now. */
  stop(): AbortSignal
  /** What a connection is to do that breaks. */
  reset(c: Context): Response
}

/** The whole API as a Hono app. */
export function apiApp(ctx: ServerContext, options: AppOptions): Hono {
  const app = new Hono()
  app.use(async (c, next) => {
    admit(c.req.raw, new URL(c.req.url), options.door)
    await next()
  })
  app.onError((error, c) => (error instanceof ConnectionReset ? options.reset(c) : refusal(error)))
  app.notFound(() => pageNotFound())
  for (const path of ['/readyz', '/livez', '/healthz']) app.get(path, (c) => c.text('ok'))
  app.get('/version', (c) => c.json(version))
  addDiscovery(app, ctx)
  addOpenApi(app, ctx)
  const serve = (c: Context) => answer(ctx, c.req.raw, options)
  app.all('/api/*', serve)
  app.all('/apis/*', serve)
  return app
}

function addDiscovery(app: Hono, { registry }: ServerContext): void {
  const document = (request: Request, isCore: boolean): Response =>
    wantsAggregated(request)
      ? jsonOf(aggregated(registry, isCore), 200, { 'content-type': aggregatedType, vary: 'Accept' })
      : jsonOf(isCore ? coreVersions() : groupList(registry))
  app.get('/api', (c) => document(c.req.raw, true))
  app.get('/apis', (c) => document(c.req.raw, false))
  app.get('/api/v1', () => jsonOf(resourceList(registry, '', 'v1')))
  app.get('/apis/:group', (c) => {
    const { group } = c.req.param()
    return registry.hasGroup(group) ? jsonOf(oneGroup(registry, group)) : pageNotFound()
  })
  app.get('/apis/:group/:version', (c) => {
    const { group, version } = c.req.param()
    if (!registry.hasGroupVersion(group, version)) return pageNotFound()
    return jsonOf(resourceList(registry, group, version))
  })
}

function addOpenApi(app: Hono, { registry }: ServerContext): void {
  app.get('/openapi/v3', () => jsonOf(openApiIndex(registry)))
  app.get('/openapi/v3/api/v1', () => jsonOf(openApiDocument(registry, '', 'v1')))
  app.get('/openapi/v3/apis/:group/:version', (c) => {
    const { group, version } = c.req.param()
    if (!registry.hasGroupVersion(group, version)) return pageNotFound()
    return jsonOf(openApiDocument(registry, group, version))
  })
}

function pageNotFound(): Response {
  return new Response('404 page not found\n', {
    status: 404,
    headers: { 'content-type': 'text/plain; charset=utf-8' },
  })
}

function jsonOf(body: object, status = 200, headers: Record<string, string> = {}): Response {
  return new Response(JSON.stringify(body), {
    status,
    headers: { 'content-type': 'application/json', 'cache-control': 'no-cache, private', ...headers },
  })
}

/** What an error thrown anywhere below is for the client. */
function refusal(error: Error): Response {
  if (error instanceof PageNotFound) return pageNotFound()
  const { status, code } =
    error instanceof ApiError
      ? error
      : failure(500, 'InternalError', `Internal error occurred: ${error.message}`, {
          causes: [{ message: error.message }],
        })
  const retryAfter = status.details?.retryAfterSeconds
  return jsonOf(status, code, retryAfter === undefined ? {} : { 'retry-after': String(retryAfter) })
}

async function answer(ctx: ServerContext, request: Request, options: AppOptions): Promise<Response> {
  const url = new URL(request.url)
  const target = targetOf(ctx.registry, request.method, url)
  const warnings: string[] = []
  const act = () => answerTo(ctx, { request, url, target, warnings }, options.stop())
  const troubles = options.faults.meeting(target)
  try {
    const response = await (troubles.length === 0
      ? act()
      : withTrouble(ctx.clock, troubles, request.signal, act))
    return withWarnings(response, warnings)
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    return withWarnings(refusal(error), warnings)
  }
}

/** A client is warned of what is odd in a body even when the request is refused for something else. */
function withWarnings(response: Response, warnings: readonly string[]): Response {
  for (const warning of warnings)
    response.headers.append('warning', `299 - "${warning.replace(/[\\"]/g, '\\$&')}"`)
  return response
}

async function answerTo(ctx: ServerContext, ask: WriteAsk, stop: AbortSignal): Promise<Response> {
  const { request, url, target } = ask
  const shape = shapeOf(request, url)
  switch (target.verb) {
    case 'get':
      return jsonOf(getObject(ctx, target, url, shape))
    case 'list':
      return compressed(request, jsonOf(listObjects(ctx, target, url, shape)))
    case 'watch': {
      const stream = watchObjects(ctx, target, url, shape, stop)
      const headers = { 'content-type': 'application/json', 'cache-control': 'no-cache, private' }
      return new Response(stream, { headers })
    }
    case 'create':
      return written(ctx, target, await create(ctx, ask), shape)
    case 'update':
      return written(ctx, target, await replace(ctx, ask), shape)
    case 'patch':
      return written(ctx, target, await modify(ctx, ask), shape)
    case 'delete':
      return jsonOf(await remove(ctx, target, request, url))
    case 'deletecollection':
      return jsonOf(await removeAll(ctx, target, request, url, shape))
  }
}

function written(
  ctx: ServerContext,
  target: Target,
  { object, isNew }: Written,
  shape: ReturnType<typeof shapeOf>,
): Response {
  const body =
    target.subresource === 'scale'
      ? object
      : shapedObject(target.resource, object as Parameters<typeof shapedObject>[1], shape, ctx.clock.now())
  return jsonOf(body, isNew ? 201 : 200)
}
