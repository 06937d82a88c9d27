import { readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { claim } from '../../shared/local/session/claim.ts'
import { newFolder } from '../support/folder.ts'

it('a folder is taken and released', async () => {
  const folder = newFolder()
  const release = await claim(join(folder, 'new'))
  expect(await readdir(join(folder, 'new'))).toEqual(['pid'])
  await release()
  expect(await readdir(join(folder, 'new'))).toEqual([])
})

it('a folder that a living process has is refused, and the process named', async () => {
  const folder = newFolder()
  await writeFile(join(folder, 'pid'), `${process.ppid}\n`)
  await expect(claim(folder)).rejects.toThrow(`pid ${process.ppid}`)
})

it.each(['4194304000', 'nonsense', ''])('what a killed run left (%j) is taken over', async (text) => {
  const folder = newFolder()
  await writeFile(join(folder, 'pid'), text)
  const release = await claim(folder)
  await release()
})

it('a folder that cannot be written is told by its name', async () => {
  await expect(claim('/proc')).rejects.toThrow('Cannot write into the folder /proc')
})
