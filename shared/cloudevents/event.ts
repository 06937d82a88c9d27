/**
 * A CloudEvent 1.0 as this project holds it in memory. The SDK's own type has an index signature that makes every
 * attribute `unknown`; this one is narrow, and what comes in is converted at the door (see wire.ts).
 */
export interface CloudEvent {
  specversion: '1.0'
  id: string
  source: string
  type: string
  subject?: string
  /** RFC 3339. Absent stays absent: "now" in its place would break a replay. */
  time?: string
  datacontenttype?: string
  dataschema?: string
  /** Every other attribute, by its lower-case name. */
  extensions: Record<string, string>
  /** A JSON value when `datacontenttype` is JSON or absent; bytes otherwise. */
  data?: unknown
}

/**
 * What was received is not an event that can be read. `status` is the answer it deserves: 400, or 415 when the
 * format is one that is not taken. `attribute` names what is wrong, where one thing is.
 */
export class UnreadableEvent extends Error {
  override readonly name = 'UnreadableEvent'
  readonly status: 400 | 415
  readonly attribute: string | undefined

  constructor(message: string, details: { status?: 400 | 415; attribute?: string; cause?: unknown } = {}) {
    super(message, { cause: details.cause })
    this.status = details.status ?? 400
    this.attribute = details.attribute
  }
}

/** The error for one attribute: `ce-id: is missing`, told as `Attribute id is missing`. */
export function attributeError(attribute: string, problem: string, cause?: unknown): UnreadableEvent {
  return new UnreadableEvent(`Attribute ${attribute} ${problem}`, { attribute, cause })
}

/** All context attributes in one flat map, extensions included, as the filters of a Trigger see them. */
export function attributesOf(event: CloudEvent): Record<string, string> {
  const { extensions, data: _, ...attributes } = event
  return { ...extensions, ...attributes }
}

const extensionName = /^[a-z0-9]+$/

/** Whether a name is one that CloudEvents allows for an attribute: lower-case ASCII letters and digits. */
export function isAttributeName(name: string): boolean {
  return extensionName.test(name)
}

/** Whether a content type says JSON: `application/json`, `…/…+json`, `text/json`, with or without parameters. */
export function isJsonType(contentType: string): boolean {
  return /^[^;]*[/+]json\s*(;|$)/i.test(contentType)
}
