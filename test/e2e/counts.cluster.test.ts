import { realCluster } from '../control-plane/cluster.ts'
import { countsSuite } from './counts-suite.ts'

countsSuite(async () => ({
  admin: realCluster.client(),
  kubeconfigFile: realCluster.kubeconfigFile,
  async requests() {
    const methods: Record<string, string> = { get: 'GET', list: 'GET', watch: 'GET' }
    return (await realCluster.requests()).map(({ userAgent, verb, requestURI }) => ({
      userAgent,
      method: methods[verb] ?? verb.toUpperCase(),
      uri: requestURI,
    }))
  },
}))
