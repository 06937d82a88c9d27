import type { KubeObject } from '../shared/kinds/object.ts'

/** What several of the manifests must agree on. */

export const namespace = 'mutantops'
export const brokerName = 'default'
/** Set to a real one with kustomize: `images: [{ name: mutantops, newName: …, newTag: … }]`. */
export const image = 'mutantops:0.1.0'
/** The Lease that the two watchers campaign for. */
export const leaseName = 'mutantops-watcher'
/** The ConfigMap, if there is one, with the watcher's live settings. */
export const settingsName = 'mutantops-watcher'
export const port = 8080

export type FunctionName = 'mutation' | 'mutant-deployment' | 'resync' | 'dead-letter'
export type ProcessName = FunctionName | 'watcher'

export const functionNames: readonly FunctionName[] = [
  'mutation',
  'mutant-deployment',
  'resync',
  'dead-letter',
]
export const processNames: readonly ProcessName[] = ['watcher', ...functionNames]

const project = 'mutantops'

/** The recommended labels of Kubernetes, for an object of one process or (without `process`) of the whole. */
export function labelsOf(process?: ProcessName): Record<string, string> {
  return {
    ...(process && { 'app.kubernetes.io/name': process }),
    'app.kubernetes.io/part-of': project,
  }
}

/** A cluster-wide name: `mutantops-watcher`. */
export function clusterName(process: ProcessName): string {
  return `${project}-${process}`
}

/** The head of an object of ours in our namespace. */
export function head(
  apiVersion: string,
  kind: string,
  name: string,
  process?: ProcessName,
): KubeObject & { metadata: object } {
  return { apiVersion, kind, metadata: { name, namespace, labels: labelsOf(process) } }
}
