import { afterAll, describe } from 'vitest'
import { embeddedApi } from '../support/embedded.ts'
import { reconcileSuite } from './suite.ts'

describe('on the embedded API', () => {
  const api = embeddedApi({ rollout: false })
  afterAll(() => api.server.stop())
  reconcileSuite(api, { courses: 40 })
})
