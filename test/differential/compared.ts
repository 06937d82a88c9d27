import type { ManagedFieldsEntry } from '../../shared/kinds/object.ts'
import { type Answer, normal } from '../contract/api.ts'

/**
 * An answer without what no two servers share, or the same server twice: uids, versions, times, the order of managers
 * (which goes by the second of their writes), and which of several things wrong is named first.
 */
export function compared({ code, body }: Answer, namespace: string): unknown {
  if (body.kind === 'Status') return { code, reason: body.reason, ...refusalOf(body) }
  const { managedFields = [], namespace: _, ...metadata } = body.metadata ?? {}
  const managers = managedFields.map(entryOf).sort()
  return inOrder(normal({ ...body, code, metadata: { ...metadata, managers } }), namespace)
}

function entryOf({ time, ...entry }: ManagedFieldsEntry): string {
  return JSON.stringify([
    entry.manager,
    entry.operation,
    entry.subresource,
    time !== undefined,
    entry.fieldsV1,
  ])
}

function refusalOf({ message = '', ...body }: { message?: string } & Record<string, unknown>) {
  const { causes } = (body.details ?? {}) as { causes?: unknown[] }
  // Which of several unknown fields or misplaced lists is told depends on the order of a Go map.
  if (!causes)
    return {
      message: /field not declared|The order in patch list/.test(message)
        ? 'one of several'
        : normal(message),
    }
  // The outcome of a patch that cannot be read stands in the message as a whole, with its uid and times.
  if (message.startsWith(' "" is invalid: patch'))
    return { message: message.slice(message.lastIndexOf(': ')) }
  return { causes: [...new Set(causes.map((cause) => JSON.stringify(cause)))].sort() }
}

function inOrder(value: unknown, namespace: string): unknown {
  if (Array.isArray(value)) return value.map((item) => inOrder(item, namespace))
  if (typeof value !== 'object' || value === null)
    return typeof value === 'string' ? value.replaceAll(namespace, '<namespace>') : value
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return Object.fromEntries(entries.map(([key, field]) => [key, inOrder(field, namespace)]))
}
