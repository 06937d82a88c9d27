import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { overlays } from '../../knative/overlays.ts'
import { manifests, renderedFiles } from '../../knative/render.ts'
import { isObject, type KubeObject } from '../../shared/kinds/object.ts'
import { realCluster } from '../control-plane/cluster.ts'
import { installCrds } from '../support/crds.ts'
import { kustomized } from '../support/installation.ts'

/** Knative's own CRDs, kept beside the repository where its folder is shared; they are not ours to copy. */
const root = fileURLToPath(new URL('../../', import.meta.url))
const knativeCrds = [join(root, '../shared/knative-crds'), process.env.KNATIVE_CRDS ?? ''].find(
  (folder) => folder !== '' && existsSync(folder),
)
const reason = "the folder ../shared/knative-crds with Knative's CRDs is not there (nor KNATIVE_CRDS set)"

describe.skipIf(!knativeCrds)(
  `the manifests on a real API server${knativeCrds ? '' : ` (skipped: ${reason})`}`,
  () => {
    beforeAll(async () => {
      const { stderr, code } = await realCluster.kubectl(['apply', '--server-side', '-f', knativeCrds ?? ''])
      expect(stderr + code).toMatch(/0$/)
      for (const file of readdirSync(knativeCrds ?? ''))
        await realCluster.kubectl([
          'wait',
          '--for=condition=Established',
          `crd/${file.replace('.yaml', '')}`,
          '--timeout=20s',
        ])
      await realCluster.kubectl(['create', 'namespace', 'mutantops'])
      await installCrds(realCluster.client())
    })

    it('passes server-side dry run as a whole, with strict validation', async () => {
      const { stdout, stderr, code } = await realCluster.kubectl([
        'apply',
        '--server-side',
        '--dry-run=server',
        '--validate=strict',
        '-k',
        join(root, 'knative'),
      ])
      expect({ stderr, code }).toEqual({ stderr: '', code: 0 })
      expect(stdout.trim().split('\n')).toHaveLength(renderedObjects().length)
    })

    it('a value of the wrong type is noticed, so the dry run means something', async () => {
      const broken = (renderedFiles()['base/eventing.yaml'] ?? '').replace('retry: 8', 'retry: often')
      const { code, stderr } = await realCluster.kubectl(
        ['apply', '--server-side', '--dry-run=server', '--validate=strict', '-f', '-'],
        broken,
      )
      expect(code).not.toBe(0)
      expect(stderr).toMatch(/spec\.delivery\.retry/)
    })

    it("each field is one that Knative's schemas name (their specs keep unknown ones, so the server would not say)", async () => {
      const schemas = readdirSync(knativeCrds ?? '').map((file) =>
        parse(readFileSync(join(knativeCrds ?? '', file), 'utf8')),
      )
      const objects = (await Promise.all(Object.keys(overlays).map((name) => kustomized(name)))).flat()
      const unknown = [...renderedObjects(), ...objects].flatMap((object) => {
        const { kind, apiVersion = '' } = object
        const [group, version] = apiVersion.split('/')
        const definition = schemas.find(({ spec }) => spec.group === group && spec.names.kind === kind)
        const schema = definition?.spec.versions.find((one: { name: string }) => one.name === version)
        return schema ? unknownFields(object, schema.schema.openAPIV3Schema, `${kind}`) : []
      })
      // In Knative's Go type and its webhook, and beta (on by default), but left out of its schema.
      expect(new Set(unknown)).toEqual(new Set(['Trigger.spec.delivery.timeout']))
      const typo = { spec: { subscribr: {} } }
      const trigger = schemas.find(({ spec }) => spec.names.kind === 'Trigger')
      expect(unknownFields(typo, trigger.spec.versions[0].schema.openAPIV3Schema, 'Trigger')).toEqual([
        'Trigger.spec.subscribr',
      ])
    })

    it('both samples pass server-side dry run', async () => {
      const { stderr, code } = await realCluster.kubectl([
        'apply',
        '--server-side',
        '--dry-run=server',
        '--validate=strict',
        '-f',
        join(root, 'knative/samples'),
      ])
      expect({ stderr, code }).toEqual({ stderr: '', code: 0 })
    })
  },
)

function renderedObjects(): KubeObject[] {
  return Object.values(manifests).flatMap((make) => make())
}

interface Schema {
  properties?: Record<string, Schema>
  items?: Schema
}

/** Where an object has a field that a schema with named properties does not name. */
function unknownFields(value: unknown, schema: Schema | undefined, path: string): string[] {
  if (Array.isArray(value))
    return value.flatMap((item, index) => unknownFields(item, schema?.items, `${path}[${index}]`))
  if (!isObject(value) || !schema?.properties) return []
  const { properties } = schema
  return Object.entries(value).flatMap(([key, inner]) => {
    if (path.indexOf('.') === -1 && ['apiVersion', 'kind', 'metadata'].includes(key)) return []
    return properties[key] ? unknownFields(inner, properties[key], `${path}.${key}`) : [`${path}.${key}`]
  })
}
