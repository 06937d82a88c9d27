import { simulationSuite } from './suite.ts'

simulationSuite(1)
