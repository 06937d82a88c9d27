import { expect, test } from 'vitest'
import { apiServer } from '../../shared/apiserver/server.ts'
import { kubeClient } from '../../shared/kube/client.ts'
import { createLog } from '../../shared/log.ts'
import { forwarding } from '../../shared/watching/forward.ts'
import { mutation } from '../support/builders.ts'
import { virtualClock } from '../support/clock.ts'
import { installCrds } from '../support/crds.ts'

test('who does not lead any more sends nothing, and what has waited goes once he leads again', async () => {
  const clock = virtualClock()
  const server = apiServer({ clock })
  const client = kubeClient({ transport: server.transport(), clock, userAgent: 'test' })
  await installCrds(client)
  const sent: string[] = []
  let isLeading = true
  const forwards = forwarding({
    client,
    clock,
    log: createLog({ name: 't', level: 'silent' }),
    sink: {
      async send({ type }) {
        sent.push(type)
        return { status: 202, resets: 0 }
      },
      close: async () => {},
    },
    cluster: 'here',
    namespaces: undefined,
    isLeader: () => isLeading,
    settings: () => ({ concurrency: 1, foldWithinMs: 50, paused: false }),
  })
  const ending = new AbortController()
  const running = forwards.run(ending.signal)
  const passes = async () => {
    for (let turn = 0; turn < 20; turn++) await clock.advance(10)
  }
  await passes()
  expect(sent).toEqual(['org.neiam.resync.requested'])
  isLeading = false
  await client.create(mutation('web').kind, mutation('web').in('default').object())
  await passes()
  expect(forwards.state()?.queue.waiting).toBe(1)
  expect(sent).toHaveLength(1)
  isLeading = true
  forwards.wake()
  await passes()
  expect(sent.slice(1)).toEqual(['org.neiam.object.applied'])
  ending.abort()
  await running
  await server.stop()
})
