import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type ApiServer, apiServer } from '../../shared/apiserver/server.ts'
import { isObject } from '../../shared/kinds/object.ts'
import { type Answer, type Api, apiOf, normal } from '../contract/api.ts'
import { widgetCrd, widgetCrdPath, widgetGroup } from '../contract/objects.ts'
import { realCluster } from '../control-plane/cluster.ts'
import { requests, type Step } from './requests.ts'

/**
 * Random sequences of requests, each sent to the embedded and to the real server: the answers must be the same but for uids,
 * versions and times. `DIFFERENTIAL_RUNS` says how many sequences (default 25), `DIFFERENTIAL_SEED`
 * which ones: the same in each run of CI, so that it says something of the change and not of chance.
 */
const runs = Number(process.env.DIFFERENTIAL_RUNS ?? 25)
const seed = Number(process.env.DIFFERENTIAL_SEED ?? 1)

let server: ApiServer
let embedded: Api
let real: Api

beforeAll(async () => {
  server = apiServer({ rollout: false })
  const rest = { stranger: () => Promise.reject(new Error('not asked here')), stop: async () => {} }
  embedded = apiOf({ transport: server.transport(), ...rest })
  real = apiOf({ transport: realCluster.transport(), ...rest })
  for (const api of [embedded, real]) {
    await api.post(widgetCrdPath, widgetCrd())
    await api.until(`/apis/${widgetGroup}/v1/widgets`, ({ code }) => code === 200)
  }
})

afterAll(() => server.stop())

/** Sends one step to one server; `versions` remembers the resourceVersions seen, by path. */
async function send(
  api: Api,
  namespace: string,
  versions: Map<string, string[]>,
  step: Step,
): Promise<Answer> {
  const path = step.path.replace('NS', namespace)
  const [target = path] = path.split('?')
  const seen = versions.get(target) ?? []
  const version = step.version === 'newest' ? seen.at(-1) : step.version === 'first' ? seen[0] : undefined
  const body =
    version && isObject(step.body) && isObject(step.body.metadata)
      ? { ...step.body, metadata: { ...step.body.metadata, resourceVersion: version } }
      : step.body
  const answer = await api.send(step.method, path, body, step.type === undefined ? {} : { type: step.type })
  const got = answer.body.metadata?.resourceVersion
  const name = answer.body.metadata?.name
  if (got && name) {
    const own = target.endsWith(`/${name}`) || step.method !== 'POST' ? target : `${target}/${name}`
    versions.set(own, [...(versions.get(own) ?? []), got])
  }
  return answer
}

/** What of an answer must be the same. */
function essence({ code, body, headers }: Answer, namespace: string): unknown {
  const text = JSON.stringify(normal(body)).replaceAll(namespace, 'NS')
  return { code, warning: headers.get('warning'), body: sorted(JSON.parse(text)) }
}

/** What stands in any order, within one server too, by its text: managers of one second, and causes. */
function sorted(value: unknown, key = ''): unknown {
  if (Array.isArray(value)) {
    const items = value.map((item) => sorted(item))
    return unordered.has(key) ? items.sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1)) : items
  }
  if (isObject(value)) {
    const entries = Object.entries(value).map(([name, field]) => [name, sorted(field, name)] as const)
    return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)))
  }
  return typeof value === 'string' ? messageOf(value) : value
}

const unordered = new Set(['managedFields', 'causes'])

const inAnyOrder = (conflicts: string) =>
  conflicts
    .split(/\n(?=conflicts with )/)
    .sort()
    .join('\n')

/** A message without the objects and versions that it quotes, and with its list of causes in order. */
function messageOf(text: string): string {
  const plain = text
    .replace(/Invalid value: "\{.*\}": /s, 'Invalid value: "<object>": ')
    .replace(/Invalid value: "map\[.*\]": /s, 'Invalid value: "<object>": ')
    .replace(/in record \(\d+\)/, 'in record (<version>)')
    // One manager's conflicts stand in the order of the seconds in which it wrote, and each server is at its own.
    .replace(/(?<=^Apply failed with \d+ conflicts: ).*$/s, inAnyOrder)
    // Which errors it finds before it stops at an unknown field depends on the order of Go's maps.
    .replace(/^(failed to create typed patch object \(.*?\)): .*$/s, '$1')
  const list = /^(.* is invalid: )\[(.*)\]$/s.exec(plain)
  return list ? `${list[1]}${list[2]?.split(', ').sort().join(', ')}` : plain
}

it(`random requests are answered alike (${runs} sequences, seed ${seed})`, {
  timeout: 3_600_000,
}, async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(requests, { minLength: 3, maxLength: 14 }), async (steps) => {
      const apis = [embedded, real] as const
      const [mine, theirs] = await Promise.all(apis.map((api) => api.namespace()))
      const versions = [new Map<string, string[]>(), new Map<string, string[]>()] as const
      for (const [index, step] of steps.entries()) {
        const [own, wanted] = await Promise.all([
          send(embedded, mine ?? '', versions[0], step),
          send(real, theirs ?? '', versions[1], step),
        ])
        const [got, right] = [essence(own, mine ?? ''), essence(wanted, theirs ?? '')]
        if (!isDeepStrictEqual(got, right))
          expect({ index, step, answer: got }).toEqual({ index, step, answer: right })
      }
    }),
    { numRuns: runs, seed, endOnFailure: process.env.DIFFERENTIAL_SHRINK === undefined },
  )
})
