import { binaries } from './binaries.ts'

/** `npm run control-plane`: builds what is missing of the real control plane and says where it is. */
try {
  const found = await binaries(console.log)
  for (const path of Object.values(found)) console.log(path)
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 1
}
