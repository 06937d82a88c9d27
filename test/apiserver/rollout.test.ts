import { afterEach, describe, expect, it } from 'vitest'
import { type ApiServer, apiServer } from '../../shared/apiserver/server.ts'
import { deployments, type KubeObject } from '../../shared/kinds/object.ts'
import { kubeClient } from '../../shared/kube/client.ts'
import { deployment } from '../contract/objects.ts'
import { settle, virtualClock } from '../support/clock.ts'

const servers: ApiServer[] = []
afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.stop()))
})

function start(becomesReady?: (deployment: KubeObject) => boolean) {
  const clock = virtualClock()
  const server = apiServer({ clock, rollout: { delayMs: 3_000, ...(becomesReady && { becomesReady }) } })
  servers.push(server)
  const client = kubeClient({ transport: server.transport(), clock, userAgent: 'test/1' })
  const target = { namespace: 'default', name: 'web' }
  const apply = (spec: object, container: object = {}) => {
    const object = deployment('web', { replicas: 2, ...spec }, container)
    return client.apply(
      deployments,
      { ...object, metadata: { ...object.metadata, ...target } },
      { fieldManager: 'test' },
    )
  }
  const status = async () => {
    await settle()
    return ((await client.get(deployments, target))?.status ?? {}) as Record<string, unknown>
  }
  const told = async (type: string) => {
    const conditions = ((await status()).conditions ?? []) as Record<string, string>[]
    const found = conditions.find((condition) => condition.type === type)
    return found && `${found.status} ${found.reason}`
  }
  return { clock, apply, status, told }
}

describe('the stand-in for what makes Deployments ready', () => {
  it('takes note at once, and has its pods ready after the delay', async () => {
    const { clock, apply, status, told } = start()
    await apply({})
    expect(await status()).toMatchObject({ observedGeneration: 1, replicas: 2, unavailableReplicas: 2 })
    expect(await told('Available')).toBe('False MinimumReplicasUnavailable')
    await clock.advance(3_000)
    expect(await status()).toMatchObject({ updatedReplicas: 2, readyReplicas: 2, availableReplicas: 2 })
    expect(await told('Available')).toBe('True MinimumReplicasAvailable')
    expect(await told('Progressing')).toBe('True NewReplicaSetAvailable')
  })

  it('keeps the old pods while a new template rolls out', async () => {
    const { clock, apply, status, told } = start()
    await apply({})
    await clock.advance(3_000)
    await apply({}, { image: 'nginx:2' })
    expect(await status()).toMatchObject({ observedGeneration: 2, updatedReplicas: 1, availableReplicas: 2 })
    expect(await told('Progressing')).toBe('True ReplicaSetUpdated')
    await clock.advance(3_000)
    expect(await status()).toMatchObject({ updatedReplicas: 2, availableReplicas: 2 })
  })

  it('a rollout that never gets ready fails at its deadline', async () => {
    const { clock, apply, told } = start(() => false)
    await apply({ progressDeadlineSeconds: 60 })
    await clock.advance(59_000)
    expect(await told('Progressing')).toBe('True NewReplicaSetCreated')
    await clock.advance(2_000)
    expect(await told('Progressing')).toBe('False ProgressDeadlineExceeded')
  })

  it('a paused one stands still until it goes on', async () => {
    const { clock, apply, status, told } = start()
    await apply({ paused: true })
    await clock.advance(10_000)
    expect(await status()).toMatchObject({ observedGeneration: 1 })
    expect(await told('Progressing')).toBe('Unknown DeploymentPaused')
    await apply({})
    await clock.advance(3_000)
    expect(await status()).toMatchObject({ observedGeneration: 2, availableReplicas: 2 })
  })

  it('a paused one has no pods of a template that has changed, until it goes on or the change is taken back', async () => {
    const { clock, apply, status } = start()
    await apply({})
    await status()
    await clock.advance(3_000)
    await apply({ paused: true }, { image: 'other' })
    expect(await status()).toMatchObject({ observedGeneration: 2, replicas: 2, availableReplicas: 2 })
    expect(await status()).not.toHaveProperty('updatedReplicas')
    await apply({ paused: true })
    expect(await status()).toMatchObject({ observedGeneration: 3, updatedReplicas: 2 })
    await apply({ paused: true }, { image: 'other' })
    await apply({}, { image: 'other' })
    await status()
    await clock.advance(3_000)
    expect(await status()).toMatchObject({ observedGeneration: 5, updatedReplicas: 2 })
  })

  it('a paused one is scaled all the same, if it has any pods', async () => {
    const { clock, apply, status } = start()
    await apply({})
    await status()
    await clock.advance(3_000)
    await apply({ paused: true, replicas: 5 })
    expect(await status()).toMatchObject({
      replicas: 5,
      updatedReplicas: 5,
      readyReplicas: 5,
      availableReplicas: 5,
    })
    await apply({ paused: true, replicas: 1 }, { image: 'other' })
    expect(await status()).toMatchObject({ replicas: 1, availableReplicas: 1 })
    expect(await status()).not.toHaveProperty('updatedReplicas')
    await apply({ paused: true, replicas: 0 }, { image: 'other' })
    expect(await status()).not.toHaveProperty('replicas')
  })

  it('one that was paused from the beginning has no pods, however it is scaled', async () => {
    const { apply, status } = start()
    await apply({ paused: true, replicas: 3 })
    await apply({ paused: true, replicas: 5 })
    expect(await status()).toMatchObject({ observedGeneration: 2 })
    expect(await status()).not.toHaveProperty('replicas')
  })
})
