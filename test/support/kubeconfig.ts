import { mkdtempSync, rmSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Writes a kubeconfig for a server on the loopback address and gives its path; it goes with the process. */
export async function writeKubeconfig(url: string, token = 'test'): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'kubeconfig-'))
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
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
