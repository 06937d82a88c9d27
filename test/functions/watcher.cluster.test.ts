import { realCluster } from '../control-plane/cluster.ts'
import { watcherSuite } from './watcher-suite.ts'

watcherSuite(realCluster)
