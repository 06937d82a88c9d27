import { realCluster } from '../control-plane/cluster.ts'
import { orderSuite } from './order.ts'

orderSuite(realCluster)
