import { afterAll } from 'vitest'
import { embeddedApi } from '../support/embedded.ts'
import { orderSuite } from './order.ts'

const api = embeddedApi()
afterAll(() => api.server.stop())

orderSuite(api)
