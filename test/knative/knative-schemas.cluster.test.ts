import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { renderedFiles } from '../../knative/render.ts'
import { realCluster } from '../control-plane/cluster.ts'
import { installCrds } from '../support/crds.ts'

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
      const objects = Object.entries(renderedFiles())
        .filter(([file]) => file !== 'kustomization.yaml')
        .flatMap(([, text]) => text.split('\n---\n').map((document) => parse(document)))
      expect(stdout.trim().split('\n')).toHaveLength(objects.length)
    })

    it('a field that Knative does not know is noticed, so the dry run means something', async () => {
      const broken = (renderedFiles()['eventing.yaml'] ?? '').replace('subscriber:', 'subscribr:')
      const { code, stderr } = await realCluster.kubectl(
        ['apply', '--server-side', '--dry-run=server', '--validate=strict', '-f', '-'],
        broken,
      )
      expect(code).not.toBe(0)
      expect(stderr).toMatch(/subscribr/)
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
