/** What the bench makes: Mutations of three variants. */

export const namespace = 'bench'
export const variants = ['red', 'green', 'blue']

export const baseOf = (name: string) => {
  const labels = { app: name }
  const spec = { containers: [{ name: 'web', image: 'nginx:1', env: [{ name: 'A', value: 'b' }] }] }
  return {
    metadata: { name, labels },
    spec: { selector: { matchLabels: labels }, template: { metadata: { labels }, spec } },
  }
}
export const mutationOf = (name: string) => ({
  apiVersion: 'neiam.org/v1',
  kind: 'Mutation',
  metadata: { namespace, name },
  spec: { deployment: baseOf(name), variants: variants.map((label) => ({ label, instances: 1 })) },
})
