import { afterAll } from 'vitest'
import { embeddedApi } from '../support/embedded.ts'
import { watcherSuite } from './watcher-suite.ts'

const api = embeddedApi({ rollout: false })
afterAll(() => api.server.stop())

watcherSuite(api)
