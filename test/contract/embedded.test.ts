import { apiServer } from '../../shared/apiserver/server.ts'
import type { Connection } from './api.ts'
import { overSocket } from './over-socket.ts'
import { embeddedSkips } from './skips.ts'
import { apiServerContract } from './suite.ts'

async function inProcess(): Promise<Connection> {
  const server = apiServer()
  return {
    transport: server.transport(),
    stranger: (path, headers = {}) => server.fetch(new Request(`http://localhost${path}`, { headers })),
    stop: () => server.stop(),
  }
}

async function bySocket(): Promise<Connection> {
  const server = apiServer()
  const { transport, url, dispatch } = await overSocket(server)
  return {
    transport,
    stranger: (path, headers = {}) => dispatch(url + path, { headers }),
    stop: () => server.stop(),
  }
}

apiServerContract('the embedded API in process', inProcess, embeddedSkips)
apiServerContract('the embedded API by socket', bySocket, embeddedSkips)
