import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { functionConfig } from '../../functions/config.ts'
import { defaultLegacyManagers } from '../../shared/reconcile/adoption.ts'

const folder = new URL('../../knative/', import.meta.url)
const text = readFileSync(new URL('README.md', folder), 'utf8')

/** Every variable that is asked for when a configuration is read. */
function variablesRead(given: Record<string, string>): string[] {
  const asked = new Set<string>()
  const get = (_: object, name: string | symbol) => {
    asked.add(String(name))
    return given[String(name)]
  }
  functionConfig(new Proxy<Record<string, string>>({}, { get }))
  return [...asked]
}

/** The rows of the table under a heading, as cells. */
function rowsUnder(heading: string): string[][] {
  const section = text.split(/^## /m).find((one) => one.startsWith(`${heading}\n`)) ?? ''
  const rows = section.split('\n').filter((line) => line.startsWith('| ') && !line.startsWith('| ---'))
  return rows.slice(1).map((line) =>
    line
      .split('|')
      .map((cell) => cell.trim())
      .slice(1, -1),
  )
}

const codes = (cell: string) => [...cell.matchAll(/`([^`]+)`/g)].map(([, code]) => code ?? '')

describe('the environment', () => {
  it('is told whole, and nothing that is not read', () => {
    const told = rowsUnder('Environment').flatMap(([name = '']) => codes(name))
    const read = new Set([...variablesRead({}), ...variablesRead({ K_SINK: 'http://broker' })])
    expect(told.sort()).toEqual([...read].sort())
  })

  it('has the defaults that the code has', () => {
    const { port, logLevel, cluster, adoption, deadlineMs, drainMs, election } = functionConfig({})
    const defaults = Object.fromEntries(
      rowsUnder('Environment').map(([name = '', value = '']) => [codes(name)[0], value.replaceAll('`', '')]),
    )
    expect(defaults).toMatchObject({
      PORT: `${port}, all addresses`,
      LOG_LEVEL: logLevel,
      CLUSTER_NAME: cluster,
      ADOPTION: adoption,
      LEGACY_MANAGERS: defaultLegacyManagers.join(),
      DEADLINE_SECONDS: String(deadlineMs / 1_000),
      DRAIN_SECONDS: String(drainMs / 1_000),
      LEASE_NAME: `${election.leaseName}, ${election.namespace}`,
      LEASE_DURATION_SECONDS: `${election.leaseDurationSeconds}, ${election.renewDeadlineSeconds}, ${election.retryPeriodSeconds}`,
    })
  })
})

it('tells of each folder that can be applied', () => {
  const folders = readdirSync(folder, { withFileTypes: true })
    .filter((entry) => existsSync(new URL(`${entry.name}/kustomization.yaml`, folder)))
    .map(({ name }) => name)
  for (const name of folders.filter((one) => one !== 'base')) expect(text).toContain(`knative/${name}\``)
})

it('names only tests and files that there are', () => {
  for (const [path] of text.matchAll(/\b(?:test|knative|shared|functions)\/[\w./-]+\.(?:ts|yaml)\b/g))
    expect(existsSync(new URL(`../${path}`, folder)), path).toBe(true)
})
