import { type CloudEvent, isJsonType } from '../../cloudevents/event.ts'
import { type TapeFile, tapeFile } from '../../cloudevents/tape-file.ts'
import type { WireEvent } from './wire-event.ts'

/** Records what the brokers accept. Throws when the file cannot be opened. */
export function brokerTape(
  path: string,
  onError: (error: unknown) => void,
): { record(event: WireEvent): void; close(): void } {
  const file: TapeFile = tapeFile(path, onError)
  return {
    record(event) {
      const read = eventOf(event)
      if (read) file.record(read)
    },
    close: file.close,
  }
}

/** The event as the functions read it; undefined for one of an older specification, which no tape holds. */
function eventOf({ attributes, data }: WireEvent): CloudEvent | undefined {
  const { specversion, id = '', source = '', type = '', ...optional } = attributes
  if (specversion !== '1.0') return undefined
  const { subject, time, datacontenttype, dataschema, ...extensions } = optional
  return {
    specversion,
    id,
    source,
    type,
    ...(subject !== undefined && { subject }),
    ...(time !== undefined && { time }),
    ...(datacontenttype !== undefined && { datacontenttype }),
    ...(dataschema !== undefined && { dataschema }),
    extensions,
    ...(data.length > 0 && { data: dataOf(data, datacontenttype) }),
  }
}

/** Data that says it is JSON and is not stays bytes: a broker does not look into it. */
function dataOf(data: Uint8Array, contentType = 'application/json'): unknown {
  if (!isJsonType(contentType)) return data
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(data))
  } catch {
    return data
  }
}
