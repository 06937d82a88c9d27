import { readFileSync } from 'node:fs'
import { Agent, fetch } from 'undici'
import { realCluster } from '../control-plane/cluster.ts'
import type { Connection } from './api.ts'
import { realSkips } from './skips.ts'
import { apiServerContract } from './suite.ts'

async function real(): Promise<Connection> {
  // Over HTTP/1.1: the server ends an HTTP/2 connection after a refused token, with what else is on it.
  const dispatcher = new Agent({ allowH2: false, connect: { ca: readFileSync(realCluster.caFile, 'utf8') } })
  return {
    transport: realCluster.transport(),
    stranger: (path, headers = {}) =>
      fetch(realCluster.server + path, { headers, dispatcher }) as unknown as Promise<Response>,
    stop: () => dispatcher.close(),
  }
}

apiServerContract('kube-apiserver', real, realSkips)
