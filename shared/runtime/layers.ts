import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import { parse as parseYaml } from 'yaml'
import { z } from 'zod'
import { isObject } from '../kinds/object.ts'

/**
 * Configuration from layers, each over the one before: a file, the section of the profile in it, the profile's own
 * file, `.env` (in development and test only), the environment, and what the program gives itself. Objects are
 * merged, everything else (lists too) is replaced. The schema gives defaults, types and the names that exist.
 *
 * (The merge is a few lines of ours: the libraries for it run code from the files, keep their result in a global, or
 * bring a downloader along.)
 */
export interface LayerOptions {
  /** The file's name without its ending: `<name>.yaml`, `.yml` or `.json`; the profile's own is `<name>.<profile>.yaml`. */
  name: string
  /** Where the files are; without a folder no file is read, `.env` neither. */
  folder?: string | undefined
  profile: string
  env: Record<string, string | undefined>
  /** Of the environment's variables: `PREFIX__LEADER_ELECTION__ENABLED`. */
  prefix: string
  /** The last word: what the program itself sets. */
  given?: object | undefined
}

/** What is wrong with a configuration, each problem with its key and where it was set, in the order of the keys. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
  readonly problems: readonly string[]

  constructor(problems: readonly string[], options?: ErrorOptions) {
    super(`The configuration is not valid:\n${problems.map((problem) => `  ${problem}`).join('\n')}`, options)
    this.problems = problems
  }
}

interface Layer {
  origin: string
  values: Tree
  /** The variable that set a key, for layers of variables. */
  variables?: Map<string, string>
}

type Tree = { [key: string]: unknown }

const endings = ['yaml', 'yml', 'json']
/** The section of a file that holds a section for each profile. */
const profilesKey = 'profiles'
const profilesWithDotEnv = ['development', 'test']

/** Reads and merges the layers and checks them. Throws a {@link ConfigError}. */
export async function loadLayers<S extends z.ZodType>(
  schema: S,
  options: LayerOptions,
): Promise<z.output<S>> {
  const layers = await layersOf(schema, options)
  return check(
    schema,
    layers.reduce<Tree>((under, { values }) => merge(under, values), {}),
    (key) => originOf(key, layers),
  )
}

/** Checks plain values. Throws a {@link ConfigError}; `originOf` tells where a key was set. */
export function check<S extends z.ZodType>(
  schema: S,
  values: unknown,
  originOf: (key: string) => string = () => '',
): z.output<S> {
  const result = schema.safeParse(values)
  if (result.success) return result.data
  const problems = result.error.issues.flatMap((issue) => {
    const path = issue.path.map(String)
    if (issue.code !== 'unrecognized_keys') return [{ key: path.join('.'), message: issue.message }]
    return issue.keys.map((key) => ({ key: [...path, key].join('.'), message: 'unknown key' }))
  })
  const lines = problems.map(({ key, message }) => {
    const origin = originOf(key)
    return `${key || '(all)'}: ${message}${origin && ` (${origin})`}`
  })
  throw new ConfigError([...new Set(lines)].toSorted())
}

async function layersOf(schema: z.ZodType, options: LayerOptions): Promise<Layer[]> {
  const { name, folder, profile, env, prefix, given } = options
  const layers: Layer[] = []
  if (folder !== undefined) {
    const file = await readLayer(folder, name)
    const { [profilesKey]: profiles, ...rest } = file?.values ?? {}
    if (file) layers.push({ origin: file.origin, values: rest })
    const section = sectionOf(profiles, profile, file?.origin ?? name)
    if (section) layers.push({ origin: `${file?.origin}, profile ${profile}`, values: section })
    const own = await readLayer(folder, `${name}.${profile}`)
    if (own) layers.push(own)
    if (profilesWithDotEnv.includes(profile)) {
      const text = await textOf(join(folder, '.env'))
      if (text !== undefined) layers.push(variablesLayer(schema, '.env', parseEnv(text), prefix))
    }
  }
  layers.push(variablesLayer(schema, 'environment', env, prefix))
  if (given) layers.push({ origin: 'given in code', values: given as Tree })
  return layers
}

function sectionOf(profiles: unknown, profile: string, origin: string): Tree | undefined {
  if (profiles === undefined || profiles === null) return undefined
  if (!isObject(profiles)) throw new ConfigError([`${profilesKey}: must be an object (${origin})`])
  const section = Object.hasOwn(profiles, profile) ? profiles[profile] : undefined
  if (section === undefined || section === null) return undefined
  if (!isObject(section)) throw new ConfigError([`${profilesKey}.${profile}: must be an object (${origin})`])
  return section
}

async function readLayer(folder: string, name: string): Promise<Layer | undefined> {
  for (const ending of endings) {
    const origin = `${name}.${ending}`
    const text = await textOf(join(folder, origin))
    if (text === undefined) continue
    let values: unknown
    try {
      values = parseYaml(text) ?? {}
    } catch (cause) {
      throw new ConfigError([`${origin}: is not YAML or JSON`], { cause })
    }
    if (!isObject(values)) throw new ConfigError([`${origin}: must hold an object`])
    return { origin, values }
  }
  return undefined
}

/** Undefined when there is no such file; any other trouble with it is an error, never taken for "no file". */
async function textOf(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8')
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined
    throw new ConfigError([`${path}: cannot be read (${code})`], { cause })
  }
}

function variablesLayer(
  schema: z.ZodType,
  origin: string,
  variables: Record<string, string | undefined>,
  prefix: string,
): Layer {
  const layer = { origin, values: {} as Tree, variables: new Map<string, string>() }
  for (const [variable, text] of Object.entries(variables).toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    if (!variable.startsWith(`${prefix}__`) || text === undefined) continue
    const path = variable
      .slice(prefix.length + 2)
      .split('__')
      .map(camelCase)
    layer.variables.set(path.join('.'), variable)
    layer.values = merge(layer.values, nest(path, typedValue(fieldAt(schema, path), text)))
  }
  return layer
}

function camelCase(word: string): string {
  return word.toLowerCase().replace(/_+([a-z0-9])/g, (_, letter: string) => letter.toUpperCase())
}

function nest(path: string[], value: unknown): Tree {
  return path.reduceRight<unknown>((inner, key) => ({ [key]: inner }), value) as Tree
}

/** The schema of a field, its defaults taken off; undefined when there is none. */
function fieldAt(schema: z.ZodType | undefined, path: string[]): z.ZodType | undefined {
  let at = schema && bare(schema)
  for (const key of path) at = at instanceof z.ZodObject ? bare(at.shape[key]) : undefined
  return at
}

function bare(schema: unknown): z.ZodType | undefined {
  let at = schema
  while (at instanceof z.ZodDefault || at instanceof z.ZodPrefault || at instanceof z.ZodOptional)
    at = at.unwrap()
  return at instanceof z.ZodType ? at : undefined
}

/** A variable's text as the field wants it; text that does not fit stays text, and the schema says what is wrong. */
function typedValue(field: z.ZodType | undefined, text: string): unknown {
  if (field instanceof z.ZodBoolean) return text === 'true' ? true : text === 'false' ? false : text
  if (field instanceof z.ZodNumber) return /^-?\d+(\.\d+)?$/.test(text.trim()) ? Number(text) : text
  if (!(field instanceof z.ZodArray)) return text
  const items = text.split(',').map((item) => item.trim())
  return items.filter((item) => item !== '').map((item) => typedValue(bare(field.element), item))
}

function merge(under: Tree, over: Tree): Tree {
  const merged = { ...under }
  for (const [key, value] of Object.entries(over)) {
    if (value === undefined || value === null) continue
    const below = Object.hasOwn(merged, key) ? merged[key] : undefined
    const both = isObject(below) && isObject(value) ? merge(below, value) : value
    // Not by assignment: a key `__proto__` must stay a key, for the schema to refuse.
    Object.defineProperty(merged, key, { value: both, enumerable: true, writable: true, configurable: true })
  }
  return merged
}

/** The uppermost layer that sets `key`, or a part of it. */
function originOf(key: string, layers: Layer[]): string {
  const path = key === '' ? [] : key.split('.')
  const layer = layers.findLast(({ values }) => has(values, path))
  if (!layer) return ''
  const variable = layer.variables?.get(key)
  return variable ? `${layer.origin} ${variable}` : layer.origin
}

function has(values: unknown, path: string[]): boolean {
  const [key, ...rest] = path
  if (key === undefined) return true
  return isObject(values) && Object.hasOwn(values, key) && has(values[key], rest)
}
