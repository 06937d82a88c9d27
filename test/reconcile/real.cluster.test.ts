import { describe, expect, it } from 'vitest'
import { systemClock } from '../../shared/clock.ts'
import type { Resource } from '../../shared/kinds/object.ts'
import { realCluster } from '../control-plane/cluster.ts'
import { mutation } from '../support/builders.ts'
import { isWrite, type World, world } from '../support/world.ts'

/** What only a real control plane has: admission policies, roles, kubectl. */

const admission = (kind: string, plural: string): Resource => ({
  group: 'admissionregistration.k8s.io',
  version: 'v1',
  kind,
  plural,
  namespaced: false,
})
const policies = admission('MutatingAdmissionPolicy', 'mutatingadmissionpolicies')
const bindings = admission('MutatingAdmissionPolicyBinding', 'mutatingadmissionpolicybindings')

/**
 * Adds a label, an annotation, a container and a priority to every Deployment that is written, and takes the image of
 * our container from a mirror.
 */
function policyFor(name: string) {
  const expression = `Object{
    metadata: Object.metadata{labels: {"added": "yes"}, annotations: {"added": "yes"}},
    spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{
      containers: [
        Object.spec.template.spec.containers{name: "main", image: "mirror/nginx:1.21"},
        Object.spec.template.spec.containers{name: "sidecar", image: "proxy:1"}
      ],
      priorityClassName: "added"
    }}}
  }`
  return {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'MutatingAdmissionPolicy',
    metadata: { name },
    spec: {
      reinvocationPolicy: 'Never',
      failurePolicy: 'Fail',
      matchConstraints: {
        resourceRules: [
          {
            apiGroups: ['apps'],
            apiVersions: ['v1'],
            operations: ['CREATE', 'UPDATE'],
            resources: ['deployments'],
          },
        ],
      },
      mutations: [{ patchType: 'ApplyConfiguration', applyConfiguration: { expression } }],
    },
  }
}

function bindingFor(name: string, namespace: string) {
  return {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'MutatingAdmissionPolicyBinding',
    metadata: { name },
    spec: {
      policyName: name,
      matchResources: { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': namespace } } },
    },
  }
}

async function added(w: World, name: string): Promise<boolean> {
  return (await w.child(name))?.metadata.labels?.added === 'yes'
}

describe('a mutating admission policy', () => {
  it('keeps what it adds, and no pass writes because of it', async () => {
    const w = await world(realCluster)
    const name = `add-to-${w.namespace}`
    await w.admin.create(policies, policyFor(name))
    await w.admin.create(bindings, bindingFor(name, w.namespace))
    try {
      // A policy takes effect a moment after it is made.
      let probe = 0
      await until(async () => {
        const shop = mutation(`probe-${probe}`)
          .with('x', 0)
          .based((d) => {
            d.metadata.name = `probe-${probe}`
          })
        await w.create(shop)
        await w.reconcile(shop)
        return added(w, `probe-${probe++}-x`)
      })
      const shop = mutation('shop').with('red', 1, { A: '1' })
      await w.create(shop)
      await w.reconcile(shop)
      expect(await added(w, 'web-red')).toBe(true)
      expect((await w.child('web-red'))?.spec.template.spec).toMatchObject({
        containers: [{ name: 'main', image: 'mirror/nginx:1.21' }, { name: 'sidecar' }],
        priorityClassName: 'added',
      })
      for (let pass = 0; pass < 5; pass++) {
        w.forget()
        await w.reconcile(shop)
        expect(w.requests.filter(isWrite)).toEqual([])
      }
      await w.change(mutation('shop').with('red', 2, { A: '2' }))
      await w.reconcile(shop)
      w.forget()
      await w.reconcile(shop)
      expect(w.requests.filter(isWrite)).toEqual([])
      const last = await w.child('web-red')
      expect(last?.spec.template.spec.containers.map((container) => container.name)).toEqual([
        'main',
        'sidecar',
      ])
    } finally {
      await w.admin.delete(bindings, { name })
      await w.admin.delete(policies, { name })
    }
  })
})

describe('a role that forbids Deployments', () => {
  it('makes the variants Failed with the words of the API server', async () => {
    const w = await world(realCluster)
    const shop = mutation('shop').with('red', 1)
    await w.create(shop)
    const forbidden = realCluster.client({ token: realCluster.nobodyToken })
    const { outcome } = await w.reconcile(shop, { client: { ...w.context.client, apply: forbidden.apply } })
    expect(outcome).toBe('settled')
    expect(await w.variant(shop, 'red')).toMatchObject({
      state: 'Failed',
      message: expect.stringContaining('forbidden'),
    })
  })

  it('is "later" when not even reading is allowed', async () => {
    const w = await world(realCluster)
    const client = realCluster.client({ token: realCluster.nobodyToken })
    expect(await w.reconcile(mutation('shop'), { client })).toMatchObject({
      outcome: 'later',
      error: { label: 'api' },
    })
  })
})

describe('kubectl wait', () => {
  const ready = (w: World, seconds: number) =>
    realCluster.kubectl([
      'wait',
      '--for=condition=Ready',
      `--timeout=${seconds}s`,
      '-n',
      w.namespace,
      'mut/shop',
    ])

  it('fails until the new generation is ready, also before anybody has looked at it', async () => {
    const w = await world(realCluster)
    const shop = mutation('shop').with('red', 1)
    await w.create(shop)
    expect((await ready(w, 1)).code).not.toBe(0)
    await w.reconcile(shop)
    await w.makeReady('web-red')
    await w.reconcile(shop)
    expect((await ready(w, 5)).code).toBe(0)
    await w.change(mutation('shop').with('red', 1, { NEW: '1' }))
    // The condition speaks of the old generation, so kubectl does not take it.
    expect((await ready(w, 1)).code).not.toBe(0)
    await w.reconcile(shop)
    expect((await ready(w, 1)).code).not.toBe(0)
    await w.makeReady('web-red')
    await w.reconcile(shop)
    expect((await ready(w, 5)).code).toBe(0)
  })
})

describe('a CustomResourceDefinition without the status subresource', () => {
  it('is named, with what to do', async () => {
    const w = await world(realCluster)
    const shop = mutation('shop').with('red', 1)
    await w.create(shop)
    const { client } = w.context
    const result = await w.reconcile(shop, {
      // The server answers for a subresource that is not there as it does for all that are not there.
      client: {
        ...client,
        replace: (resource, object, options) =>
          client.replace(resource, object, { ...options, subresource: 'missing' }),
      },
    })
    expect(result).toMatchObject({
      outcome: 'later',
      error: {
        label: 'api',
        message: expect.stringContaining('mutations.neiam.org has no status subresource'),
      },
    })
  })
})

const untilMs = 20_000
const pollMs = 100

async function until(isSo: () => Promise<boolean>): Promise<void> {
  const endMs = systemClock.monotonicMs() + untilMs
  while (!(await isSo())) {
    if (systemClock.monotonicMs() > endMs) throw new Error(`It did not come true within ${untilMs} ms`)
    await systemClock.sleep(pollMs)
  }
}
