import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { systemClock } from '../../shared/clock.ts'
import { mutantDeployments, mutantKinds, mutations } from '../../shared/kinds/mutants.ts'
import { deployments, namespaces } from '../../shared/kinds/object.ts'
import { kubeClient } from '../../shared/kube/client.ts'
import { type Family, type WalkOptions, walk } from '../../shared/resync/walk.ts'
import { base, mutant } from '../support/builders.ts'
import { installCrds } from '../support/crds.ts'
import type { TestApi } from '../support/world.ts'

/** What the walk takes for granted of an API: that it orders lists by namespace and name, and how. */
export function orderSuite(api: TestApi): void {
  test('a walk in pages of two over namespaces of awkward names finds each object with its children', async () => {
    const client = kubeClient({ transport: api.transport(), clock: systemClock, userAgent: 'test' })
    await installCrds(client)
    // In the order of the keys: a hyphen stands before the slash behind a name, a digit after it.
    const start = `o${randomBytes(4).toString('hex')}`
    const names = [`${start}-b`, start, `${start}0`]
    for (const name of names) {
      await client.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } })
      for (const [kind, owner] of [
        [mutations, 'x'],
        [mutations, 'x-y'],
        [mutations, 'x.y'],
        [mutantDeployments, 'z'],
      ] as const) {
        await client.create(kind, mutant(kind, owner).with('red', 0).in(name).object())
        const child = base(`${owner}-red`)
        child.metadata = { ...child.metadata, namespace: name, labels: { 'neiam.org/owner': owner } }
        await client.create(deployments, { ...child, spec: { ...child.spec, replicas: 0 } })
      }
    }
    const tell = ({ parent: { metadata }, children }: Family) =>
      `${metadata.namespace?.slice(start.length)} ${metadata.name}: ${children.map((child) => child.metadata.name)}`
    const isHere = ({ parent }: Family) => parent.metadata.namespace?.startsWith(start)
    const walked = async (options: Partial<WalkOptions> = {}) => {
      const found: Family[] = []
      const { signal } = new AbortController()
      const all = walk({
        client,
        kinds: mutantKinds,
        namespaces: undefined,
        signal,
        pageLength: 2,
        ...options,
      })
      for await (const family of all) found.push(family)
      return found
    }

    const all = await walked()
    const expected = ['-b', '', '0'].flatMap((end) => [
      `${end} z: z-red`,
      `${end} x: x-red`,
      `${end} x-y: x-y-red`,
      `${end} x.y: x.y-red`,
    ])
    expect(all.filter(isHere).map(tell)).toEqual(expected)
    expect((await walked({ namespaces: names })).map(tell)).toEqual(expected)
    expect((await walked({ childrenHeldMax: 0 })).filter(isHere).map(tell)).toEqual(expected)
    const middle = all.filter(isHere)[5]
    expect((await walked({ from: middle?.position })).filter(isHere).map(tell)).toEqual(expected.slice(6))
  })
}
