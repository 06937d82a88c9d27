import { expect, it } from 'vitest'
import { apiServer } from '../../shared/apiserver/server.ts'
import { systemClock } from '../../shared/clock.ts'
import { configMaps, type StoredObject } from '../../shared/kinds/object.ts'
import { kubeClient } from '../../shared/kube/client.ts'

/** A server that draws by the next of `draws`, the last one for ever; each letter of a name takes one. */
function serverWith() {
  let draws = [0]
  const random = () => (draws.length > 1 ? draws.shift() : draws[0]) ?? 0
  const server = apiServer({ clock: { ...systemClock, random } })
  const client = kubeClient({ transport: server.transport(), clock: systemClock, userAgent: 'test' })
  const create = async (...next: number[]) => {
    draws = next
    const metadata = { namespace: 'default', generateName: 'made-' }
    return (await client.create<StoredObject>(configMaps, { metadata })).metadata.name
  }
  return { create, stop: () => server.stop() }
}

it('a generated name that is taken is drawn anew', async () => {
  const { create, stop } = serverWith()
  expect(await create(0)).toBe('made-bbbbb')
  expect(await create(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0.999)).toBe('made-99999')
  await stop()
})

it('when each of eight names is taken the answer is a conflict', async () => {
  const { create, stop } = serverWith()
  await create(0)
  await expect(create(0)).rejects.toMatchObject({ code: 409, reason: 'AlreadyExists' })
  const sevenTaken = Array<number>(35).fill(0)
  expect(await create(...sevenTaken, 0.999)).toBe('made-99999')
  await stop()
})
