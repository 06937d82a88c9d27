import { isObject } from '../../kinds/object.ts'

/** One step of a path: from one value to those that it leads to. */
type Step = (value: unknown) => unknown[]

/**
 * Compiles the JSONPath of a printer column, as far as CRDs use it: `.a.b`, `['a']`, `[0]`, `[-1]`, `[*]`, `.*`, `..a`,
 * `[?(@.type=="Ready")]` with `==`, `!=`, `<`, `>`. Gives a function to the values found, in order; a path that cannot be read
 * finds nothing.
 */
export function readJsonPath(path: string): (object: unknown) => unknown[] {
  const steps = stepsOf(path)
  if (!steps) return () => []
  return (object) => steps.reduce<unknown[]>((values, step) => values.flatMap(step), [object])
}

function stepsOf(path: string): Step[] | undefined {
  const steps: Step[] = []
  let rest = path.replace(/^\$/, '')
  while (rest !== '') {
    const part = stepOf(rest)
    if (!part) return undefined
    steps.push(part.step)
    rest = rest.slice(part.length)
  }
  return steps
}

function stepOf(rest: string): { step: Step; length: number } | undefined {
  const deep = /^\.\.([\w-]+)/.exec(rest)
  if (deep?.[1]) return { step: descendants(deep[1]), length: deep[0].length }
  const field = /^\.((?:[\w/-]|\\.)+)/.exec(rest)
  if (field?.[1]) return { step: named(field[1].replace(/\\(.)/g, '$1')), length: field[0].length }
  const all = /^(\.\*|\[\*\])/.exec(rest)
  if (all) return { step: children, length: all[0].length }
  const quoted = /^\[(?:'([^']*)'|"([^"]*)")\]/.exec(rest)
  if (quoted) return { step: named(quoted[1] ?? quoted[2] ?? ''), length: quoted[0].length }
  const index = /^\[(-?\d+)\]/.exec(rest)
  if (index) return { step: at(Number(index[1])), length: index[0].length }
  const filter = /^\[\?\(\s*@([^=!<>\s]*)\s*(==|!=|<=|>=|<|>)\s*(?:"([^"]*)"|'([^']*)'|([^)]*?))\s*\)\]/.exec(
    rest,
  )
  if (!filter) return undefined
  const [whole, path = '', operator = '==', double, single, bare] = filter
  return { step: where(path, operator, double ?? single ?? literal(bare ?? '')), length: whole.length }
}

function literal(text: string): unknown {
  if (text === 'true' || text === 'false') return text === 'true'
  return text !== '' && !Number.isNaN(Number(text)) ? Number(text) : text
}

const named =
  (name: string): Step =>
  (value) =>
    isObject(value) && Object.hasOwn(value, name) && value[name] !== null ? [value[name]] : []

const children: Step = (value) => {
  if (Array.isArray(value)) return value
  return isObject(value) ? Object.values(value) : []
}

const at =
  (index: number): Step =>
  (value) => {
    const found = Array.isArray(value) ? value.at(index) : undefined
    return found === undefined ? [] : [found]
  }

const descendants =
  (name: string): Step =>
  (value) => [...named(name)(value), ...children(value).flatMap(descendants(name))]

const compare: Record<string, (a: unknown, b: unknown) => boolean> = {
  '==': (a, b) => a === b,
  '!=': (a, b) => a !== b,
  '<': (a, b) => Number(a) < Number(b),
  '>': (a, b) => Number(a) > Number(b),
  '<=': (a, b) => Number(a) <= Number(b),
  '>=': (a, b) => Number(a) >= Number(b),
}

function where(path: string, operator: string, wanted: unknown): Step {
  const read = readJsonPath(path)
  const holds = compare[operator] as (a: unknown, b: unknown) => boolean
  return (value) =>
    children(value).filter((item) => {
      const [found] = read(item)
      return found !== undefined && holds(found, wanted)
    })
}
