import fc from 'fast-check'
import { beforeAll, describe, expect, it } from 'vitest'
import { apiServer } from '../../shared/apiserver/server.ts'
import { type Api, apiOf } from '../contract/api.ts'
import { realCluster } from '../control-plane/cluster.ts'
import { compared } from './compared.ts'
import { gadgetCrd, gadgetGroup } from './gadgets.ts'
import { type Kind, kinds, send, type Write } from './writes.ts'

/**
 * The same random writes to one object, by several managers, go to the real server and to the embedded one; after each
 * the answers must be the same. SEED repeats a run, RUNS makes it longer (a run is a sequence of up to eight writes).
 */
const seed = Number(process.env.SEED ?? 1)
const numRuns = Number(process.env.RUNS ?? 25)
const timeoutMs = 60_000 + numRuns * 1_000
const crds = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'

interface Side {
  api: Api
  namespace: string
}

const stranger = () => Promise.reject(new Error('Nobody is a stranger here'))
const stop = async () => {}

async function sides(): Promise<[real: Side, embedded: Side]> {
  const transports = [realCluster.transport(), apiServer({ rollout: false }).transport()]
  const [real, embedded] = await Promise.all(
    transports.map(async (transport) => {
      const api = apiOf({ transport, stranger, stop })
      await api.post(crds, gadgetCrd)
      const namespace = await api.namespace()
      await api.until(`/apis/${gadgetGroup}/v1/namespaces/${namespace}/gadgets`, ({ code }) => code === 200)
      return { api, namespace }
    }),
  )
  return [real as Side, embedded as Side]
}

describe(`random writes, seed ${seed}`, () => {
  let both: [Side, Side]
  let count = 0
  beforeAll(async () => {
    both = await sides()
  })

  async function run(kind: Kind, writes: Write[]): Promise<void> {
    const name = `object-${count++}`
    const live: ({ metadata?: object } | undefined)[] = [undefined, undefined]
    for (const [place, write] of writes.entries()) {
      const answers = await Promise.all(
        both.map(({ api, namespace }, side) =>
          send(api, kind, kind.path(namespace), name, live[side], write),
        ),
      )
      const [real, embedded] = answers.map((answer, side) => compared(answer, both[side]?.namespace ?? ''))
      expect(embedded, `after write ${place}: ${JSON.stringify(write)}`).toEqual(real)
      for (const [side, { body }] of answers.entries()) if (body.kind !== 'Status') live[side] = body
    }
  }

  for (const kind of kinds)
    it(`to a ${kind.kind} have the same outcome on both servers`, { timeout: timeoutMs }, async () => {
      const writes = fc.array(kind.write, { minLength: 2, maxLength: 8 })
      await fc.assert(
        fc.asyncProperty(writes, (list) => run(kind, list)),
        { seed, numRuns, interruptAfterTimeLimit: timeoutMs - 20_000 },
      )
    })
})
