import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { makeFolder, whyOf } from '../../folder.ts'

/**
 * Takes a folder for this run alone: a second run would overwrite the kubeconfig under the first one's processes. Gives
 * how to release it. Throws, naming the other run, when that still lives, and when nothing can be written there; what a killed run left is taken over.
 */
export async function claim(folder: string): Promise<() => Promise<void>> {
  makeFolder(folder)
  const file = join(folder, 'pid')
  for (;;) {
    try {
      // `wx`: of two that start at once only one makes the file.
      await writeFile(file, `${process.pid}\n`, { flag: 'wx' })
      return () => rm(file, { force: true })
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST')
        throw new Error(
          `Cannot write into the folder ${folder}: ${whyOf(error)}; give another with --folder`,
          {
            cause: error,
          },
        )
    }
    const other = Number(await readFile(file, 'utf8').catch(() => ''))
    if (other > 0 && other !== process.pid && isAlive(other))
      throw new Error(
        `Another run (pid ${other}) uses ${folder}. End it, or give this one a folder of its own with --folder. (If ${other} is something else: rm ${file})`,
      )
    await rm(file, { force: true })
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    // It lives, but is somebody else's.
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
