import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { stringify } from 'yaml'
import type { KubeObject } from '../shared/kinds/object.ts'
import { alertRules } from './alerts.ts'
import { customResourceDefinitions } from './crds.ts'
import { eventing } from './eventing.ts'
import { labelsOf, namespace } from './names.ts'
import { networkPolicies } from './network.ts'
import { components, type Kustomization, overlays } from './overlays.ts'
import { rbac, tenantRbac } from './rbac.ts'
import { requesterGuard, userRoles } from './users.ts'
import { workloads } from './workloads.ts'

/**
 * The kustomizations in this folder, rendered: `npm run manifests` writes the files, with `--check` it only compares and
 * ends with 1 where one differs. A test does the same.
 */

const folder = new URL('./', import.meta.url)
const note = '# Rendered by render.ts: change the code beside it and run `npm run manifests`.\n'

/** Each file's objects in the base, which every installation has. */
export const manifests: Record<string, () => KubeObject[]> = {
  'namespace.yaml': () => [namespaceObject()],
  'crds.yaml': customResourceDefinitions,
  'rbac.yaml': rbac,
  'users.yaml': userRoles,
  'network.yaml': networkPolicies,
  'eventing.yaml': eventing,
  'workloads.yaml': workloads,
}

/** Each folder with a kustomization.yaml, by its path here; `kubectl apply -k` takes all but the components. */
export const kustomizations: Record<string, Kustomization> = {
  '': { others: ['base'] },
  base: { files: manifests },
  alerts: { files: { 'rules.yaml': alertRules } },
  guard: { files: { 'policy.yaml': requesterGuard } },
  tenant: { files: { 'rbac.yaml': tenantRbac } },
  ...overlays,
  ...Object.fromEntries(Object.entries(components).map(([name, one]) => [`components/${name}`, one])),
}

/** Every file by its path here, with its text. */
export function renderedFiles(): Record<string, string> {
  const texts = Object.entries(kustomizations).flatMap(([name, kustomization]) =>
    Object.entries(rendered(kustomization)).map(([file, text]) => [
      name === '' ? file : `${name}/${file}`,
      text,
    ]),
  )
  return Object.fromEntries(texts)
}

/** The files of one kustomization. */
function rendered(one: Kustomization): Record<string, string> {
  const { files = {}, others = [], components, images, patches } = one
  const texts = Object.entries(files).map(([file, objects]) => [file, yamlOf(objects())])
  const resources = [...others, ...Object.keys(files)]
  const kustomization = {
    apiVersion: one.isComponent ? 'kustomize.config.k8s.io/v1alpha1' : 'kustomize.config.k8s.io/v1beta1',
    kind: one.isComponent ? 'Component' : 'Kustomization',
    ...(resources.length > 0 && { resources }),
    ...(components && { components }),
    ...(images && { images }),
    ...(patches && { patches: patches.map(({ target, patch }) => ({ target, patch: stringify(patch) })) }),
  }
  return { ...Object.fromEntries(texts), 'kustomization.yaml': yamlOf([kustomization]) }
}

/** The names of the files that are not as the code renders them. */
export function staleFiles(): string[] {
  return Object.entries(renderedFiles())
    .filter(([file, text]) => current(file) !== text)
    .map(([file]) => file)
}

function namespaceObject(): KubeObject {
  return {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: {
      name: namespace,
      labels: {
        ...labelsOf(),
        // For installations where SinkBindings look only at namespaces that ask for it.
        'bindings.knative.dev/include': 'true',
        'pod-security.kubernetes.io/enforce': 'restricted',
      },
    },
  }
}

function yamlOf(objects: object[]): string {
  const documents = objects.map((object) => stringify(object, { lineWidth: 0, aliasDuplicateObjects: false }))
  return note + documents.join('---\n')
}

function current(file: string): string | undefined {
  try {
    return readFileSync(new URL(file, folder), 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

function main(): void {
  const [flag, ...rest] = process.argv.slice(2)
  if (rest.length > 0 || (flag !== undefined && flag !== '--check')) {
    process.stderr.write('There is one option, --check: only compare, and end with 1 where a file differs\n')
    process.exitCode = 2
    return
  }
  const stale = staleFiles()
  if (flag === '--check') {
    for (const file of stale)
      process.stderr.write(`knative/${file} is not as the code renders it: npm run manifests\n`)
    process.exitCode = stale.length === 0 ? 0 : 1
    return
  }
  const files = renderedFiles()
  for (const file of stale) {
    mkdirSync(new URL('./', new URL(file, folder)), { recursive: true })
    writeFileSync(new URL(file, folder), files[file] ?? '')
    process.stdout.write(`knative/${file} written\n`)
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) main()
