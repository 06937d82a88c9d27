import { afterAll } from 'vitest'
import { embeddedApi } from '../support/embedded.ts'
import { functionsSuite } from './suite.ts'

const api = embeddedApi()
afterAll(() => api.server.stop())

functionsSuite(api)
