#!/usr/bin/env node
import { existsSync } from 'node:fs'

// In a checkout the source runs as it is; an installed package has the built library only.
const source = new URL('cli.ts', import.meta.url)
const built = new URL('../../dist/library/runtime/cli.js', import.meta.url)
const { mutantops } = await import((existsSync(source) ? source : built).href)

process.exitCode = await mutantops(process.argv.slice(2), {
  env: process.env,
  out: (text) => process.stdout.write(text),
  err: (text) => process.stderr.write(text),
})
