import { beforeAll, describe, expect, it } from 'vitest'
import { customResourceDefinitions, definitionName } from '../../knative/crds.ts'
import { mutantKinds } from '../../shared/kinds/mutants.ts'
import { customResourceDefinitions as definitions } from '../../shared/kinds/object.ts'
import { realCluster } from '../control-plane/cluster.ts'
import { base, mutant, mutation } from '../support/builders.ts'
import { installCrds } from '../support/crds.ts'

describe('the CustomResourceDefinitions', () => {
  const client = realCluster.client()

  beforeAll(async () => {
    await installCrds(client)
  })

  it('have nothing that the server finds wrong with their schemas', async () => {
    for (const kind of mutantKinds) {
      const live = await client.get(definitions, { name: definitionName(kind) })
      const conditions =
        (live?.status as { conditions: { type: string; status: string }[] } | undefined)?.conditions ?? []
      expect(conditions.filter(({ type }) => type === 'NonStructuralSchema')).toEqual([])
      expect(conditions).toContainEqual(expect.objectContaining({ type: 'NamesAccepted', status: 'True' }))
    }
  })

  it('change nothing when they are applied again', async () => {
    const versions = async () =>
      Promise.all(
        mutantKinds.map(
          async (kind) =>
            (await client.getMetadata(definitions, { name: definitionName(kind) }))?.metadata.generation,
        ),
      )
    const before = await versions()
    for (const definition of customResourceDefinitions())
      await client.apply(definitions, definition, { fieldManager: 'test', force: true })
    expect(await versions()).toEqual(before)
  })

  it.each([
    ['mutation.spec.variants', ['The variants to run', 'Environment variables', '-required-']],
    ['md.spec.mutations', ['instances', 'autoscaler']],
    ['mut.spec.deployment', ['an apps/v1 Deployment']],
    ['mut.status.conditions', ['Reconciling', 'Stalled']],
  ])('explain %s', async (field, words) => {
    const { stdout } = await realCluster.kubectl(['explain', field])
    for (const word of words) expect(stdout.replace(/\s+/g, ' ')).toContain(word)
  })

  it('print Ready, Summary and Age', async () => {
    const namespace = await realCluster.newNamespace()
    for (const kind of mutantKinds)
      await client.create(kind, mutant(kind, 'shop').with('red', 1).in(namespace).object())
    for (const short of ['md', 'mut']) {
      const { stdout } = await realCluster.kubectl(['get', short, '-n', namespace])
      expect(stdout.split('\n')[0]?.split(/\s+/)).toEqual(['NAME', 'READY', 'SUMMARY', 'AGE'])
    }
  })

  it.each([
    ['no deployment', { variants: [] }],
    ['no variants', { deployment: base() }],
    ['null for variants', { deployment: base(), variants: null }],
    ['a misspelt list', { deployment: base(), variant: [] }],
    ['a variant without a label', { deployment: base(), variants: [{ instances: 1 }] }],
    ['a number for a value of env', { deployment: base(), variants: [{ label: 'a', env: { A: 1 } }] }],
    ['a text for instances', { deployment: base(), variants: [{ label: 'a', instances: '1' }] }],
  ])('refuse %s', async (_, spec) => {
    const namespace = await realCluster.newNamespace()
    const object = { ...mutation('shop').in(namespace).object(), spec }
    await expect(client.create(mutation('shop').kind, object)).rejects.toMatchObject({ code: 422 })
  })

  it('keep the whole base, its metadata and unknown fields too, and let anything through that the status can tell', async () => {
    const namespace = await realCluster.newNamespace()
    const deployment = {
      ...base(),
      future: { field: [1, null] },
      metadata: { name: 'x', labels: { a: 'b' }, unknown: true },
    }
    const spec = { deployment, variants: [{ label: 'Not OK', instances: -1, env: null }] }
    const made = await client.create(mutation('shop').kind, {
      ...mutation('shop').in(namespace).object(),
      spec,
    })
    expect(made.spec).toEqual(spec)
    expect(made.status).toEqual({ observedGeneration: -1 })
  })
})
