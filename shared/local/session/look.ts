import { createColors } from 'picocolors'
import type { Line } from './narrator.ts'

/** How text looks: with colours on a terminal, without elsewhere. */
export interface Look {
  strong(text: string): string
  good(text: string): string
  bad(text: string): string
  quiet(text: string): string
}

export function look(hasColours: boolean): Look {
  const { bold, green, red, dim } = createColors(hasColours)
  return { strong: bold, good: green, bad: red, quiet: dim }
}

/** `  1.2 s  event       applied Mutation default/storefront → mutation` */
export function lineText(line: Line, sinceStartMs: number, { good, bad, quiet }: Look): string {
  const time = `${(sinceStartMs / 1000).toFixed(1)} s`.padStart(8)
  const paint = { plain: (text: string) => text, good, bad, quiet }[line.tone]
  return `${quiet(time)}  ${paint(`${line.word.padEnd(10)}  ${line.text}`)}`
}

/** What a user may try next. */
export function hints(options: {
  look: Look
  samples: boolean
  /** Its whole path: the other terminal may be in another folder. */
  kubeconfig: string
  api: { isEmbedded: boolean }
}): string[] {
  const { look, kubeconfig, samples } = options
  const tries: [command: string, what: string][] = samples
    ? [
        ['kubectl get mutations,mutantdeployments,deployments', 'see what there is'],
        ['kubectl edit mutation storefront', 'add or remove a variant, or change its instances'],
        ['kubectl delete deployment storefront-dark', 'it comes back'],
        ['kubectl delete mutantdeployment nginx-mutant', 'its Deployments go with it'],
        ['kubectl get events', 'what a person should know (give a variant -1 instances)'],
      ]
    : [
        ['kubectl apply -f knative/samples', 'two objects to begin with'],
        ['kubectl get mutations,mutantdeployments,deployments', 'see what there is'],
      ]
  const width = Math.max(...tries.map(([command]) => command.length))
  return [
    '',
    look.strong('Now try, in another terminal:'),
    `  export KUBECONFIG=${shellWord(kubeconfig)}`,
    ...tries.map(([command, what]) => `  ${command.padEnd(width)}  ${look.quiet(`# ${what}`)}`),
    look.quiet('Ctrl-C ends it.'),
    '',
  ]
}

/** A word that a shell reads as this text. */
function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}

/** What remains after the end. */
export function goodbye(api: { isEmbedded: boolean; isKept: boolean }): string {
  if (!api.isEmbedded)
    return 'Ending. Objects, their Deployments and the two CRDs stay in the cluster; nothing looks after them now.'
  return api.isKept
    ? 'Ending. The objects are kept for the next run.'
    : 'Ending. The embedded API keeps nothing.'
}

/** About events that the end cut off, or undefined when no object outlives it that they could be missed for. */
export function undelivered(
  count: number,
  api: { isEmbedded: boolean; isKept: boolean },
): string | undefined {
  if (count === 0 || (api.isEmbedded && !api.isKept)) return undefined
  const what = count === 1 ? '1 event was' : `${count} events were`
  return `${what} not delivered; the resync of the next start makes up for that.`
}
