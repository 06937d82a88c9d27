import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { Command, InvalidArgumentError } from 'commander'
import { stringify } from 'yaml'
import { isDns1123Label } from '../kinds/mutants.ts'
import { version } from '../version.ts'
import { loadConfig } from './config.ts'
import { ConfigError } from './layers.ts'
import { manifests } from './manifests.ts'
import { replayCommand } from './replay-command.ts'

/** What the command touches; a test hands in its own. */
export interface Terminal {
  env: Record<string, string | undefined>
  out(text: string): void
  err(text: string): void
}

interface ManifestFlags {
  name: string
  image: string
  namespace: string
  config?: string
  profile?: string
  prefix: string
  replicas: number
  port: number
  env: Record<string, string>
  format: 'yaml' | 'json'
  preStop: number
  grace: number
  shutdownTimeout: number
  buffer: number
}

/** Runs `mutantops <args>`; returns the exit code. */
export async function mutantops(args: readonly string[], terminal: Terminal): Promise<number> {
  const program = new Command('mutantops')
    .description('Tools for apps that use the Kubernetes runtime plugin, and for tapes of CloudEvents.')
    .version(version)
    .exitOverride()
    .configureOutput({ writeOut: terminal.out, writeErr: terminal.err })
  let code = 0
  manifestsCommand(program, terminal)
  replayCommand(program, {
    out: terminal.out,
    fail(message) {
      terminal.err(`${message}\n`)
      code = 1
    },
  })
  try {
    await program.parseAsync(args, { from: 'user' })
    return code
  } catch (error) {
    if (error instanceof ConfigError) terminal.err(`${error.message}\n`)
    // Commander has said by itself what was wrong with the flags.
    else if (isCommanderError(error)) return error.exitCode
    else throw error
    return 1
  }
}

function manifestsCommand(program: Command, terminal: Terminal): void {
  program
    .command('manifests')
    .description("Writes the objects that run an app, from the app's own configuration.")
    .requiredOption('--name <name>', 'of the app and of all its objects', serviceName)
    .requiredOption('--image <image>', 'that its pods run', imageName)
    .option('--namespace <namespace>', 'where it runs', namespaceName, 'default')
    .option('--config <folder>', 'where kubernetes.yaml is (default: config)')
    .option('--profile <profile>', 'whose configuration to use (default: NODE_ENV, else production)')
    .option('--prefix <prefix>', 'of the variables that set the configuration', 'KUBERNETES')
    .option('--replicas <number>', 'of the Deployment', wholeNumber, 2)
    .option('--port <number>', 'where the app listens', portNumber, 8080)
    .option('--env <name=value>', 'a variable of the container; may be given again', variable, {})
    .option('--pre-stop <seconds>', 'to wait before SIGTERM', wholeNumber, 5)
    .option('--grace <seconds>', 'from SIGTERM to the end of accepting', wholeNumber, 2)
    .option('--shutdown-timeout <seconds>', 'for what is in flight then', wholeNumber, 20)
    .option('--buffer <seconds>', 'left over before the kubelet kills', wholeNumber, 5)
    .option('--format <format>', 'yaml or json', format, 'yaml')
    .action(async (flags: ManifestFlags) => {
      const { config: given, profile, prefix, preStop, grace, buffer, ...app } = flags
      const folder = given ?? 'config'
      // What an app sets in code cannot be seen from here: a role without its rights must not come as a surprise.
      if (!existsSync(join(folder, 'kubernetes.yaml'))) {
        const missing = `There is no ${join(folder, 'kubernetes.yaml')}`
        if (given !== undefined) throw new ConfigError([missing])
        terminal.err(`${missing}: the rights are those of the defaults and of ${prefix}__ variables\n`)
      }
      const config = await loadConfig({ env: terminal.env, folder, prefix, ...(profile && { profile }) })
      const shutdown = { preStop, grace, timeout: flags.shutdownTimeout, buffer }
      const objects = manifests({ ...app, config, shutdown })
      terminal.out(flags.format === 'json' ? jsonOf(objects) : yamlOf(objects))
    })
}

function yamlOf(objects: object[]): string {
  return objects.map((object) => stringify(object, { lineWidth: 0 })).join('---\n')
}

function jsonOf(items: object[]): string {
  return `${JSON.stringify({ apiVersion: 'v1', kind: 'List', items }, null, 2)}\n`
}

function wholeNumber(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError('It must be a whole number.')
  return Number(text)
}

function portNumber(text: string): number {
  const port = wholeNumber(text)
  if (port < 1 || port > 65_535) throw new InvalidArgumentError('It must be a port, from 1 to 65535.')
  return port
}

/** A Service has the name too, and its names begin with a letter (RFC 1035). */
function serviceName(text: string): string {
  if (!isDns1123Label(text) || /^\d/.test(text))
    throw new InvalidArgumentError(
      'It must be a DNS label (RFC 1035): up to 63 of a-z, 0-9 and -, beginning with a letter, not ending with -.',
    )
  return text
}

function namespaceName(text: string): string {
  if (!isDns1123Label(text)) throw new InvalidArgumentError('It must be a DNS label (RFC 1123).')
  return text
}

function imageName(text: string): string {
  if (!/^\S+$/.test(text)) throw new InvalidArgumentError('It must be the name of an image.')
  return text
}

function variable(text: string, before: Record<string, string>): Record<string, string> {
  const at = text.indexOf('=')
  if (at < 1) throw new InvalidArgumentError('It must be <name>=<value>.')
  return { ...before, [text.slice(0, at)]: text.slice(at + 1) }
}

function format(text: string): string {
  if (text !== 'yaml' && text !== 'json') throw new InvalidArgumentError('It must be yaml or json.')
  return text
}

function isCommanderError(error: unknown): error is Error & { exitCode: number } {
  return error instanceof Error && 'exitCode' in error
}
