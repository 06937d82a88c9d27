import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { type Example, startExample } from './processes.ts'

describe('the example app without a cluster', () => {
  let example: Example
  afterEach(() => example.process.kill('SIGKILL'))

  it('leads, serves its page, probes and metrics, and ends in order', async () => {
    example = startExample({ HOSTNAME: 'laptop' })
    expect(await example.says('announces')).toMatchObject({ announces: 'hello', pod: 'laptop' })
    expect(await (await example.get('/')).json()).toEqual({
      greeting: 'hello',
      mode: 'detached',
      pod: 'laptop',
      leading: true,
    })
    expect(await (await example.get('/readyz')).json()).toEqual({
      status: 'ready',
      kubernetes: {
        status: 'unknown',
        mode: 'detached',
        namespace: 'default',
        leader: { lease: 'example', leading: true },
        configMaps: { example: 'waiting' },
      },
    })
    expect(await (await example.get('/metrics')).text()).toContain('kubernetes_leader{lease="example"} 1')
    example.process.kill('SIGTERM')
    expect(await example.ended).toBe(0)
    expect(example.lines.at(-1)).toMatchObject({ stopped: true })
  }, 30_000)

  it('AC3: with a mistyped KUBECONFIG it ends with an error that names it, and is never detached', async () => {
    example = startExample({ KUBECONFIG: '/nowhere/config' })
    expect(await example.ended).toBe(1)
    expect(example.errors()).toBe('Cannot load kubeconfig /nowhere/config: it does not exist\n')
    expect(example.lines.some((line) => 'leading' in line)).toBe(false)
  }, 30_000)

  it('where its port is taken it says so in a line', async () => {
    const other = createServer()
    await new Promise<void>((resolve) => other.listen(0, resolve))
    const { port } = other.address() as AddressInfo
    example = startExample({ PORT: String(port) })
    expect(await example.ended).toBe(1)
    expect(example.errors()).toMatch(new RegExp(`^listen EADDRINUSE.*${port}\\n$`))
    await new Promise((resolve) => other.close(resolve))
  }, 30_000)

  it('where its port is none it says so in a line', async () => {
    example = startExample({ PORT: 'abc' })
    expect(await example.ended).toBe(1)
    expect(example.errors()).toBe('PORT must be a port, not "abc"\n')
  }, 30_000)
})
