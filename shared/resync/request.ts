import type { ResyncMode } from '../cloudevents/envelope.ts'
import { resyncRequestType } from '../cloudevents/envelope.ts'
import { attributeError, type CloudEvent } from '../cloudevents/event.ts'
import { isDns1123Label, isDns1123Subdomain } from '../kinds/mutants.ts'
import { isObject } from '../kinds/object.ts'
import type { PageToken } from './cursor.ts'
import type { WalkPosition } from './walk.ts'

/** What a resync is asked to do. */
export interface ResyncRequest {
  mode: ResyncMode
  /** Names the run: part of the id of every event it sends. */
  tick: string
  /** Counts from 0. */
  page: number
  position: WalkPosition | undefined
}

const tokenLengthMax = 4_096
const tickLengthMax = 200

/**
 * Reads what a cron event or our own request asks for. A cron event's run is named by the event, so that its redelivery
 * is the same run. Throws an `UnreadableEvent` for data that is not of the form.
 */
export function readRequest(event: CloudEvent): ResyncRequest {
  const data = event.data ?? {}
  if (!isObject(data)) throw attributeError('data', 'is not an object')
  const mode = data.mode ?? 'needed'
  if (mode !== 'needed' && mode !== 'full')
    throw attributeError('data', 'has a mode other than needed and full')
  if (event.type !== resyncRequestType) return { mode, tick: event.id, page: 0, position: undefined }
  const { tick = event.id, page } = data
  if (typeof tick !== 'string' || tick === '' || tick.length > tickLengthMax)
    throw attributeError('data', 'has no usable tick')
  if (page === undefined) return { mode, tick, page: 0, position: undefined }
  if (!isObject(page) || !Number.isSafeInteger(page.number) || !isPosition(page.position))
    throw attributeError('data', 'has no usable page')
  return { mode, tick, page: Number(page.number), position: page.position }
}

function isPosition(value: unknown): value is WalkPosition {
  if (!isObject(value) || !isObject(value.pages) || !isObject(value.after)) return false
  const { namespace, plural, name } = value.after
  return (
    typeof namespace === 'string' &&
    isDns1123Label(namespace) &&
    typeof name === 'string' &&
    isDns1123Subdomain(name) &&
    typeof plural === 'string' &&
    Object.values(value.pages).every(isToken)
  )
}

function isToken(value: unknown): value is PageToken {
  return (
    isObject(value) &&
    Number.isSafeInteger(value.scope) &&
    Number(value.scope) >= 0 &&
    typeof value.continue === 'string' &&
    value.continue.length <= tokenLengthMax
  )
}
