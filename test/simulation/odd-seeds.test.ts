import { simulationSuite } from './suite.ts'

simulationSuite(0)
