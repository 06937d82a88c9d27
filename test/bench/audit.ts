import { readFile } from 'node:fs/promises'
import type { AuditEntry } from '../control-plane/cluster.ts'
import type { ClusterConnection } from '../control-plane/start.ts'

/** All requests that the server has answered, oldest first. */
export async function auditOf(connection: ClusterConnection): Promise<AuditEntry[]> {
  const lines = (await readFile(connection.auditLogFile, 'utf8')).split('\n').slice(0, -1)
  return lines.map((line) => JSON.parse(line) as AuditEntry)
}

/** A request of our processes, but for the Lease and the watcher's own settings. */
export const isOurs = ({ userAgent, objectRef }: AuditEntry) =>
  userAgent.startsWith('mutantops/') && !['leases', 'configmaps'].includes(objectRef?.resource ?? '')
export const isWrite = ({ verb }: AuditEntry) => !['get', 'list', 'watch'].includes(verb)
