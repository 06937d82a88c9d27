import { describe, expect, it } from 'vitest'
import { hints, look, undelivered } from '../../shared/local/session/look.ts'

describe('what to try next', () => {
  const exported = (kubeconfig: string) =>
    hints({ look: look(false), samples: true, kubeconfig, api: { isEmbedded: true } })[2]

  it.each([
    ['/home/me/mutantops/.mutantops/kubeconfig', '/home/me/mutantops/.mutantops/kubeconfig'],
    ["/home/me/it's mine/kubeconfig", "'/home/me/it'\\''s mine/kubeconfig'"],
  ])('names the kubeconfig %s as a shell takes it', (path, word) => {
    expect(exported(path)).toBe(`  export KUBECONFIG=${word}`)
  })
})

describe('the line on events that the end cut off', () => {
  const cluster = { isEmbedded: false, isKept: true }
  const kept = { isEmbedded: true, isKept: true }

  it('counts them where the objects outlive the run', () => {
    expect(undelivered(1, cluster)).toBe(
      '1 event was not delivered; the resync of the next start makes up for that.',
    )
    expect(undelivered(2, kept)).toBe(
      '2 events were not delivered; the resync of the next start makes up for that.',
    )
  })

  it('is left out where there is nothing to miss', () => {
    expect(undelivered(0, kept)).toBeUndefined()
    expect(undelivered(3, { isEmbedded: true, isKept: false })).toBeUndefined()
  })
})
