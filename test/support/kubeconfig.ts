import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { newFolder } from './folder.ts'

/** Writes a kubeconfig for a server on the loopback address and gives its path in a folder of the test file's. */
export async function writeKubeconfig(url: string, token = 'test'): Promise<string> {
  const folder = newFolder()
  const path = join(folder, 'config')
  await writeFile(
    path,
    JSON.stringify({
      clusters: [{ name: 'test', cluster: { server: url } }],
      users: [{ name: 'test', user: { token } }],
      contexts: [{ name: 'test', context: { cluster: 'test', user: 'test' } }],
      'current-context': 'test',
    }),
    { mode: 0o600 },
  )
  return path
}
