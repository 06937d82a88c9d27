import { badRequest, type Cause, cause, internalError, invalid } from '../status.ts'

/** The query of a request, read and checked as the API does. */

export interface ListOptions {
  labelSelector: string
  fieldSelector: string
  limit: number
  continue: string
  resourceVersion: string
  resourceVersionMatch: string
  allowWatchBookmarks: boolean
  sendInitialEvents: boolean | undefined
  timeoutSeconds: number | undefined
}

const optionsKind = (kind: string) => ({ group: 'meta.k8s.io', kind, plural: '' })

function integer(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name)
  if (text === null || text === '') return undefined
  if (!/^[+-]?\d+$/.test(text))
    throw badRequest(`strconv.ParseInt: parsing ${JSON.stringify(text)}: invalid syntax`)
  return Number(text)
}

function boolean(query: URLSearchParams, name: string): boolean | undefined {
  const text = query.get(name)
  return text === null ? undefined : text !== 'false' && text !== '0'
}

/** Of a list, a watch or a deletecollection. Throws 400 and 422. */
export function listOptions(query: URLSearchParams, isWatch: boolean): ListOptions {
  const options: ListOptions = {
    labelSelector: query.get('labelSelector') ?? '',
    fieldSelector: query.get('fieldSelector') ?? '',
    limit: integer(query, 'limit') ?? 0,
    continue: query.get('continue') ?? '',
    resourceVersion: query.get('resourceVersion') ?? '',
    resourceVersionMatch: query.get('resourceVersionMatch') ?? '',
    allowWatchBookmarks: boolean(query, 'allowWatchBookmarks') ?? false,
    sendInitialEvents: boolean(query, 'sendInitialEvents'),
    timeoutSeconds: integer(query, 'timeoutSeconds'),
  }
  const causes = isWatch ? watchCauses(options) : listCauses(options)
  if (causes.length > 0) throw invalid(optionsKind('ListOptions'), '', causes)
  return options
}

const matchField = 'resourceVersionMatch'
const matches = ['Exact', 'NotOlderThan', '']

function watchCauses({ sendInitialEvents, resourceVersionMatch: match }: ListOptions): Cause[] {
  const causes: Cause[] = []
  if (sendInitialEvents === undefined && match !== '')
    causes.push(
      cause.forbidden(
        matchField,
        'resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided',
      ),
    )
  if (sendInitialEvents !== undefined && match !== 'NotOlderThan')
    causes.push(
      cause.forbidden(matchField, 'sendInitialEvents requires setting resourceVersionMatch to NotOlderThan'),
    )
  return causes
}

function listCauses(options: ListOptions): Cause[] {
  const { resourceVersionMatch: match, resourceVersion, sendInitialEvents } = options
  const causes: Cause[] = []
  if (match !== '') {
    if (resourceVersion === '')
      causes.push(
        cause.forbidden(matchField, 'resourceVersionMatch is forbidden unless resourceVersion is provided'),
      )
    if (options.continue !== '')
      causes.push(cause.forbidden(matchField, 'resourceVersionMatch is forbidden when continue is provided'))
    if (!matches.includes(match)) causes.push(cause.notSupported(matchField, match, matches))
    if (match === 'Exact' && resourceVersion === '0')
      causes.push(
        cause.forbidden(matchField, 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'),
      )
  }
  if (sendInitialEvents !== undefined)
    causes.push(cause.forbidden('sendInitialEvents', 'sendInitialEvents is forbidden for list'))
  return causes
}

/** The revision that a resourceVersion names; 0 for none. */
export function revisionOf(resourceVersion: string, isWatch = false): number {
  if (resourceVersion === '') return 0
  if (/^\d+$/.test(resourceVersion)) return Number(resourceVersion)
  const why = `resourceVersion: Invalid value: ${JSON.stringify(resourceVersion)}: strconv.ParseUint: parsing ${JSON.stringify(resourceVersion)}: invalid syntax`
  throw isWatch ? internalError(why, '') : badRequest(`invalid resource version: ${why}`)
}

export type FieldValidation = 'Ignore' | 'Warn' | 'Strict'

export interface WriteQuery {
  manager: string
  dryRun: boolean
  fieldValidation: FieldValidation
  force: boolean | undefined
}

const validations = ['', 'Ignore', 'Strict', 'Warn']
const managerLengthMax = 128

/** Of a POST, PUT or PATCH; without `fieldManager` the user agent's first word stands for it. Throws 422. */
export function writeQuery(
  request: Request,
  query: URLSearchParams,
  kind: 'CreateOptions' | 'UpdateOptions' | 'PatchOptions',
  isApply = false,
): WriteQuery {
  const manager = query.get('fieldManager') ?? ''
  const fieldValidation = query.get('fieldValidation') ?? ''
  const force = boolean(query, 'force')
  const causes: Cause[] = []
  if (force !== undefined && kind === 'PatchOptions' && !isApply)
    causes.push(cause.forbidden('force', 'may not be specified for non-apply patch'))
  if (isApply && manager === '') causes.push(cause.required('fieldManager', 'is required for apply patch'))
  if (Buffer.byteLength(manager) > managerLengthMax)
    causes.push(cause.tooLong('fieldManager', managerLengthMax))
  causes.push(...dryRunCauses(query))
  if (!validations.includes(fieldValidation))
    causes.push(cause.notSupported('fieldValidation', fieldValidation, validations))
  if (causes.length > 0) throw invalid(optionsKind(kind), '', causes)
  return {
    manager: manager || managerOf(request.headers.get('user-agent')),
    dryRun: query.getAll('dryRun').length > 0,
    fieldValidation: (fieldValidation || 'Warn') as FieldValidation,
    force,
  }
}

/** What stands before the first slash of the user agent. */
function managerOf(userAgent: string | null): string {
  return (userAgent?.split('/')[0] || 'unknown').slice(0, managerLengthMax)
}

export function dryRunCauses(query: URLSearchParams): Cause[] {
  const dryRun = query.getAll('dryRun')
  return dryRun.every((value) => value === 'All') ? [] : [cause.notSupported('dryRun', dryRun, ['All'])]
}

export function invalidOptions(kind: string, causes: Cause[]) {
  return invalid(optionsKind(kind), '', causes)
}
