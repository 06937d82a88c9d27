import { describe } from 'vitest'
import { realCluster } from '../control-plane/cluster.ts'
import { reconcileSuite } from './suite.ts'

describe('on a real control plane', () => {
  reconcileSuite(realCluster, { courses: 10 })
})
