import { afterAll, beforeAll, describe, it } from 'vitest'
import { type Api, apiOf, type Connection } from './api.ts'
import { applyContract } from './apply.ts'
import { crdContract } from './crds.ts'
import { customApplyContract } from './custom-apply.ts'
import { deploymentContract } from './deployments.ts'
import { garbageContract } from './garbage.ts'
import { listContract } from './lists.ts'
import { managedFieldsContract } from './managed-fields.ts'
import { metadataContract } from './metadata.ts'
import { patchContract } from './patches.ts'
import { refusalContract } from './refusals.ts'
import { tableContract } from './tables.ts'
import { validationContract } from './validation.ts'
import { verbContract } from './verbs.ts'
import { watchContract } from './watches.ts'

/** What a part of the contract is given: the API (in a test), and `it` that knows the skips. */
export interface Part {
  api(): Api
  connection(): Connection
  it(name: string, body: () => Promise<void>): void
}

/** The contract of a kube-apiserver 1.36, for one server. `skips` names what is left out and why. */
export function apiServerContract(
  title: string,
  connect: () => Promise<Connection>,
  skips: Record<string, string>,
): void {
  describe(title, () => {
    let connection: Connection
    let api: Api
    beforeAll(async () => {
      connection = await connect()
      api = apiOf(connection)
    })
    afterAll(() => connection?.stop())
    const part: Part = {
      api: () => api,
      connection: () => connection,
      it: (name, body) => (skips[name] ? it.skip(`${name} (skipped: ${skips[name]})`, body) : it(name, body)),
    }
    for (const [topic, contract] of Object.entries(topics)) describe(topic, () => contract(part))
  })
}

const topics: Record<string, (part: Part) => void> = {
  verbs: verbContract,
  metadata: metadataContract,
  lists: listContract,
  watches: watchContract,
  'custom resources': crdContract,
  deployments: deploymentContract,
  tables: tableContract,
  apply: applyContract,
  'apply of custom resources': customApplyContract,
  'managed fields': managedFieldsContract,
  patches: patchContract,
  validation: validationContract,
  'garbage collection': garbageContract,
  refusals: refusalContract,
}
