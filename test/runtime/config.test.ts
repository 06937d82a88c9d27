import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { configOf, type KubernetesConfigInput, loadConfig } from '../../shared/runtime/config.ts'
import { ConfigError } from '../../shared/runtime/layers.ts'
import { newFolder } from '../support/folder.ts'

/** A folder with these files. */
function folderWith(files: Record<string, string> = {}): string {
  const folder = newFolder()
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
  return folder
}

/** The problems that loading tells. */
async function problems(loading: Promise<unknown>): Promise<readonly string[]> {
  try {
    await loading
  } catch (error) {
    if (error instanceof ConfigError) return error.problems
    throw error
  }
  return []
}

const defaults = {
  enabled: true,
  required: false,
  namespace: '',
  events: true,
  leaderElection: {
    enabled: false,
    leaseName: '',
    identity: '',
    leaseDurationSeconds: 15,
    renewDeadlineSeconds: 10,
    retryPeriodSeconds: 2,
    releaseOnShutdown: true,
    leadWhenDetached: false,
    roles: [],
  },
  configMaps: { watch: [] },
}

describe('AC12: layers', () => {
  it('without any, everything has its default', async () => {
    expect(await loadConfig({ env: {}, folder: folderWith() })).toEqual(defaults)
    expect(configOf({})).toEqual(defaults)
  })

  const file = `
namespace: from-file
configMaps: { watch: [a, b] }
leaderElection: { identity: from-file, leaseDurationSeconds: 20 }
profiles:
  test: { namespace: from-section, leaderElection: { identity: from-section } }
  other: { namespace: from-other }
`
  const all = {
    'kubernetes.yaml': file,
    'kubernetes.test.yaml': 'namespace: from-own-file\nleaderElection: { identity: from-own-file }',
    '.env': 'KUBERNETES__NAMESPACE=from-dotenv\nKUBERNETES__LEADER_ELECTION__IDENTITY=from-dotenv\n',
  }
  const env = { KUBERNETES__NAMESPACE: 'from-env' }

  it.each([
    ['the file', { 'kubernetes.yaml': file }, 'production', {}, 'from-file'],
    ['the section of the profile', { 'kubernetes.yaml': file }, 'test', {}, 'from-section'],
    ["the profile's own file", { ...all, '.env': '' }, 'test', {}, 'from-own-file'],
    ['.env', all, 'test', {}, 'from-dotenv'],
    ['the environment', all, 'test', env, 'from-env'],
  ])('%s is above what stands below it', async (_, files, profile, variables, namespace) => {
    const config = await loadConfig({ env: variables, folder: folderWith(files), profile })
    expect(config.namespace).toBe(namespace)
    // What an upper layer does not say stays as a lower one said it.
    expect(config.leaderElection.leaseDurationSeconds).toBe(20)
    expect(config.configMaps.watch).toEqual(['a', 'b'])
  })

  it('each field comes from the uppermost layer that sets it', async () => {
    const config = await loadConfig({ env, folder: folderWith(all), profile: 'test' })
    expect(config).toMatchObject({ namespace: 'from-env', leaderElection: { identity: 'from-dotenv' } })
  })

  it.each([
    ['development', 'from-dotenv'],
    ['test', 'from-dotenv'],
    ['production', 'from-file'],
    ['staging', 'from-file'],
    ['', 'from-file'],
  ])('.env in the profile "%s": %s', async (profile, namespace) => {
    const folder = folderWith({ 'kubernetes.yaml': 'namespace: from-file', '.env': all['.env'] })
    expect((await loadConfig({ env: { NODE_ENV: profile }, folder })).namespace).toBe(namespace)
  })

  it.each(['kubernetes.yml', 'kubernetes.json'])('%s is read, too', async (name) => {
    const folder = folderWith({ [name]: '{"namespace": "shop"}' })
    expect((await loadConfig({ env: {}, folder })).namespace).toBe('shop')
  })

  it('a list in an upper layer takes the place of the list below', async () => {
    const folder = folderWith({ 'kubernetes.yaml': 'configMaps: { watch: [a, b] }' })
    const variables = { KUBERNETES__CONFIG_MAPS__WATCH: 'c' }
    expect((await loadConfig({ env: variables, folder })).configMaps.watch).toEqual(['c'])
  })

  it('what is given in code is above all layers; given alone it reads no file', async () => {
    const folder = folderWith(all)
    const given = { namespace: 'from-code' }
    expect((await loadConfig({ env, folder, profile: 'test', given })).namespace).toBe('from-code')
    expect((await loadConfig({ env: {}, given })).namespace).toBe('from-code')
  })

  it('an empty file, an empty section and a null are as if absent', async () => {
    const folder = folderWith({
      'kubernetes.yaml': 'leaderElection:\nprofiles:\n  test:\n',
      'kubernetes.test.yaml': '',
    })
    expect(await loadConfig({ env: {}, folder, profile: 'test' })).toEqual(defaults)
  })
})

describe('AC12: variables', () => {
  const load = (variables: Record<string, string>) => loadConfig({ env: variables })

  it('are parsed to the type of their field', async () => {
    const config = await load({
      KUBERNETES__REQUIRED: 'true',
      KUBERNETES__EVENTS: 'false',
      KUBERNETES__LEADER_ELECTION__ENABLED: 'true',
      KUBERNETES__LEADER_ELECTION__LEASE_NAME: '7',
      KUBERNETES__LEADER_ELECTION__RETRY_PERIOD_SECONDS: '0.5',
      KUBERNETES__LEADER_ELECTION__LEASE_DURATION_SECONDS: ' 120 ',
      KUBERNETES__LEADER_ELECTION__RENEW_DEADLINE_SECONDS: '10.25',
      KUBERNETES__LEADER_ELECTION__ROLES: ' web , worker,',
      KUBERNETES__CONFIG_MAPS__WATCH: '',
      KUBERNETES_SERVICE_HOST: 'not ours',
      OTHER__ENABLED: 'not ours',
    })
    expect(config).toMatchObject({
      required: true,
      events: false,
      leaderElection: {
        enabled: true,
        leaseName: '7',
        leaseDurationSeconds: 120,
        renewDeadlineSeconds: 10.25,
        retryPeriodSeconds: 0.5,
        roles: ['web', 'worker'],
      },
      configMaps: { watch: [] },
    })
  })

  it.each([
    [
      { KUBERNETES__ENABLED: 'yes' },
      'enabled: Invalid input: expected boolean, received string (environment KUBERNETES__ENABLED)',
    ],
    [
      { KUBERNETES__LEADER_ELECTION__RETRY_PERIOD_SECONDS: '2s' },
      'leaderElection.retryPeriodSeconds: Invalid input: expected number, received string (environment KUBERNETES__LEADER_ELECTION__RETRY_PERIOD_SECONDS)',
    ],
    [
      { KUBERNETES__LEADER_ELECTION__ENABELD: 'true' },
      'leaderElection.enabeld: unknown key (environment KUBERNETES__LEADER_ELECTION__ENABELD)',
    ],
    [
      { KUBERNETES__NAMESPACE__DEEPER: 'x' },
      'namespace: Invalid input: expected string, received object (environment)',
    ],
  ])('%j is refused by name', async (variables, problem) => {
    expect(await problems(load(variables))).toEqual([problem])
  })

  it('another prefix makes others of no account', async () => {
    const env = { KUBERNETES__NAMESPACE: 'a', MYAPP__NAMESPACE: 'b' }
    expect((await loadConfig({ env, prefix: 'MYAPP' })).namespace).toBe('b')
  })
})

describe('AC12: what is refused', () => {
  const election = { enabled: true, leaseName: 'work' }
  it.each<[unknown, string[]]>([
    [{ typo: 1 }, ['typo: unknown key (given in code)']],
    [
      { leaderElection: { ...election, deep: { er: 1 } }, configMaps: { watch: [], wach: [] } },
      ['configMaps.wach: unknown key (given in code)', 'leaderElection.deep: unknown key (given in code)'],
    ],
    [
      { leaderElection: { enabled: true } },
      ['leaderElection.leaseName: must be set when enabled is true (given in code)'],
    ],
    [
      { leaderElection: { ...election, leaseName: 'Not_DNS' } },
      [
        'leaderElection.leaseName: must be lower-case letters, digits, "-" and "." (a DNS name) (given in code)',
      ],
    ],
    [
      { namespace: 'a.b' },
      ['namespace: must be lower-case letters, digits and "-" (a DNS label) (given in code)'],
    ],
    [
      { configMaps: { watch: ['ok', 'Not/ok'] } },
      ['configMaps.watch.1: must be lower-case letters, digits, "-" and "." (a DNS name) (given in code)'],
    ],
    [
      { leaderElection: { ...election, leaseDurationSeconds: 9, retryPeriodSeconds: 0 } },
      [
        'leaderElection.leaseDurationSeconds: must be greater than renewDeadlineSeconds (given in code)',
        'leaderElection.retryPeriodSeconds: must be greater than 0 (given in code)',
      ],
    ],
    [[], ['(all): Invalid input: expected object, received array (given in code)']],
  ])('%j: %j', async (given, expected) => {
    expect(await problems((async () => configOf(given as KubernetesConfigInput))())).toEqual(expected)
  })

  it('__proto__ is a key like any other: refused by name', async () => {
    const folder = folderWith({ 'kubernetes.yaml': '__proto__: { enabled: false }' })
    expect(await problems(loadConfig({ env: {}, folder }))).toEqual([
      '__proto__: unknown key (kubernetes.yaml)',
    ])
  })

  it('each problem tells the layer that is to be mended, in a stable order', async () => {
    const folder = folderWith({
      'kubernetes.yaml': 'zeta: 1\nenabled: maybe\nprofiles: { test: { events: 3 } }',
      'kubernetes.test.yaml': 'alpha: 1',
    })
    const variables = { KUBERNETES__MIDDLE: 'x' }
    const expected = [
      'alpha: unknown key (kubernetes.test.yaml)',
      'enabled: Invalid input: expected boolean, received string (kubernetes.yaml)',
      'events: Invalid input: expected boolean, received number (kubernetes.yaml, profile test)',
      'middle: unknown key (environment KUBERNETES__MIDDLE)',
      'zeta: unknown key (kubernetes.yaml)',
    ]
    const load = () => loadConfig({ env: variables, folder, profile: 'test' })
    expect(await problems(load())).toEqual(expected)
    await expect(load()).rejects.toThrow(`The configuration is not valid:\n  ${expected.join('\n  ')}`)
  })

  it.each([
    ['kubernetes.yaml: is not YAML or JSON', { 'kubernetes.yaml': 'a: [' }],
    ['kubernetes.yaml: must hold an object', { 'kubernetes.yaml': '- a' }],
    ['profiles: must be an object (kubernetes.yaml)', { 'kubernetes.yaml': 'profiles: []' }],
    ['profiles.test: must be an object (kubernetes.yaml)', { 'kubernetes.yaml': 'profiles: { test: 1 }' }],
  ])('%s', async (problem, files) => {
    expect(await problems(loadConfig({ env: {}, folder: folderWith(files), profile: 'test' }))).toEqual([
      problem,
    ])
  })

  it('a file that is a folder is an error, never taken for no file', async () => {
    const folder = folderWith()
    mkdirSync(join(folder, 'kubernetes.yaml'))
    const [problem] = await problems(loadConfig({ env: {}, folder }))
    expect(problem).toMatch(/kubernetes\.yaml: cannot be read \(EISDIR\)$/)
  })
})
