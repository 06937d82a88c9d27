import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parseAllDocuments, stringify } from 'yaml'
import type { KubeObject } from '../../shared/kinds/object.ts'
import { mutantops } from '../../shared/runtime/cli.ts'
import { configOf, type KubernetesConfigInput } from '../../shared/runtime/config.ts'
import { type ManifestOptions, manifests, type ShutdownTimes } from '../../shared/runtime/manifests.ts'
import { newFolder } from '../support/folder.ts'

interface Role extends KubeObject {
  rules: { resources: string[]; resourceNames?: string[]; verbs: string[] }[]
}

function made(config: KubernetesConfigInput, options: Partial<ManifestOptions> = {}): KubeObject[] {
  return manifests({
    name: 'web',
    namespace: 'shop',
    image: 'example.com/web:1',
    config: configOf(config),
    ...options,
  })
}

const kinds = (objects: KubeObject[]) => objects.map(({ kind }) => kind)

/** `leases work get create update`, a line for each rule of each Role. */
function rulesOf(objects: KubeObject[]): string[] {
  return objects
    .filter(({ kind }) => kind === 'Role')
    .flatMap((role) =>
      (role as Role).rules.map(({ resources, resourceNames = [], verbs }) =>
        [role.metadata?.namespace, ...resources, ...resourceNames, ...verbs].join(' '),
      ),
    )
}

function deploymentOf(objects: KubeObject[]) {
  const deployment = objects.find(({ kind }) => kind === 'Deployment')
  return deployment as unknown as {
    spec: {
      replicas: number
      template: { spec: { terminationGracePeriodSeconds: number; containers: Record<string, never>[] } }
    }
  }
}

describe('AC11: manifests', () => {
  it('all that an app needs, in the order in which it can be applied', () => {
    const objects = made({ leaderElection: { enabled: true, leaseName: 'work' } })
    expect(kinds(objects)).toEqual([
      'ServiceAccount',
      'Role',
      'RoleBinding',
      'Deployment',
      'Service',
      'PodDisruptionBudget',
    ])
    for (const { metadata } of objects) expect(metadata).toMatchObject({ name: 'web', namespace: 'shop' })
  })

  it('as a whole they read so', async () => {
    const election = { enabled: true, leaseName: 'work' }
    const objects = made({ leaderElection: election, configMaps: { watch: ['settings', 'flags'] } })
    const text = objects.map((object) => stringify(object)).join('---\n')
    await expect(text).toMatchFileSnapshot('manifests.yaml')
  })

  it.each<[string, KubernetesConfigInput, string[]]>([
    ['disabled', { enabled: false, events: true }, []],
    ['nothing asked for', { events: false }, []],
    ['events alone', {}, ['shop events create']],
    [
      'everything',
      { leaderElection: { enabled: true, leaseName: 'work' }, configMaps: { watch: ['a', 'b'] } },
      ['shop leases work get create update', 'shop configmaps a b list watch', 'shop events create'],
    ],
    [
      'another namespace for Lease and ConfigMaps',
      { namespace: 'other', leaderElection: { enabled: true, leaseName: 'work' } },
      ['other leases work get create update', 'shop events create'],
    ],
  ])('the Role has only what the configuration needs: %s', (_, config, rules) => {
    const objects = made(config)
    expect(rulesOf(objects)).toEqual(rules)
    const bindings = objects.filter(({ kind }) => kind === 'RoleBinding')
    expect(bindings.length).toBe(new Set(rules.map((rule) => rule.split(' ')[0])).size)
    for (const binding of bindings)
      expect(binding).toMatchObject({
        roleRef: { kind: 'Role', name: 'web' },
        subjects: [{ kind: 'ServiceAccount', name: 'web', namespace: 'shop' }],
      })
  })

  it('the Deployment has probes, the Downward API, the labels and a preStop sleep', () => {
    const deployment = deploymentOf(made({}, { port: 3000, env: { COLOR: 'red' }, replicas: 3 }))
    expect(deployment).toMatchObject({
      spec: {
        replicas: 3,
        template: {
          spec: {
            serviceAccountName: 'web',
            terminationGracePeriodSeconds: 32,
            volumes: [{ name: 'podinfo', downwardAPI: { items: [{ path: 'labels' }] } }],
            containers: [
              {
                image: 'example.com/web:1',
                ports: [{ name: 'http', containerPort: 3000 }],
                startupProbe: { httpGet: { path: '/startupz', port: 'http' } },
                livenessProbe: { httpGet: { path: '/livez', port: 'http' } },
                readinessProbe: { httpGet: { path: '/readyz', port: 'http' } },
                lifecycle: { preStop: { sleep: { seconds: 5 } } },
                volumeMounts: [{ name: 'podinfo', mountPath: '/etc/podinfo', readOnly: true }],
              },
            ],
          },
        },
      },
    })
    const [container] = deployment.spec.template.spec.containers
    const env = (container?.env ?? []) as { name: string; value?: string }[]
    expect(env.map(({ name }) => name)).toEqual([
      'PORT',
      'COLOR',
      'POD_NAME',
      'POD_NAMESPACE',
      'POD_UID',
      'NODE_NAME',
      'POD_IP',
      'POD_SERVICE_ACCOUNT',
    ])
  })

  it.each<[Partial<ShutdownTimes>, number]>([
    [{ preStop: 10, grace: 1, timeout: 30, buffer: 4 }, 45],
    [{ timeout: Number.MAX_SAFE_INTEGER }, 2 ** 31 - 1],
    [{ preStop: 0, grace: 0, timeout: 0, buffer: 0 }, 0],
  ])('the grace period is the sum of its parts, and saturates: %j', (shutdown, seconds) => {
    const deployment = deploymentOf(made({}, { shutdown }))
    expect(deployment.spec.template.spec.terminationGracePeriodSeconds).toBe(seconds)
    const [container] = deployment.spec.template.spec.containers
    expect(container !== undefined && 'lifecycle' in container).toBe(shutdown.preStop !== 0)
  })

  it('command, args, resources and labels go where they belong', () => {
    const options = { command: ['node'], args: ['web.js'], labels: { team: 'x' } }
    const objects = made({}, { ...options, resources: { requests: { cpu: '10m' } } })
    const [container] = deploymentOf(objects).spec.template.spec.containers
    expect(container).toMatchObject({
      command: ['node'],
      args: ['web.js'],
      resources: { requests: { cpu: '10m' } },
    })
    for (const { metadata } of objects)
      expect(metadata?.labels).toEqual({ team: 'x', 'app.kubernetes.io/name': 'web' })
  })
})

describe('AC11: the command mutantops manifests', () => {
  async function run(args: string[], env: Record<string, string> = {}) {
    let [out, err] = ['', '']
    const write = { out: (text: string) => (out += text), err: (text: string) => (err += text) }
    const code = await mutantops(args, { env, ...write })
    return { code, out, err }
  }
  const folder = newFolder()
  writeFileSync(
    join(folder, 'kubernetes.yaml'),
    'leaderElection: { enabled: true, leaseName: work }\nprofiles: { test: { configMaps: { watch: [a] } } }',
  )
  const web = ['manifests', '--name', 'web', '--image', 'example.com/web:1', '--config', folder]

  it('writes YAML from the real configuration of the app', async () => {
    const { code, out } = await run([...web, '--namespace', 'shop', '--env', 'A=b=c', '--pre-stop', '7'])
    expect(code).toBe(0)
    const objects = parseAllDocuments(out).map((document) => document.toJS() as KubeObject)
    const config = { leaderElection: { enabled: true, leaseName: 'work' } }
    expect(objects).toEqual(made(config, { env: { A: 'b=c' }, shutdown: { preStop: 7 } }))
  })

  it('says that it found no configuration where it looked by itself', async () => {
    const { code, err } = await run(['manifests', '--name', 'web', '--image', 'web:1'])
    expect(code).toBe(0)
    expect(err).toMatch(/^There is no config.kubernetes\.yaml: the rights are those of the defaults/)
  })

  it('takes the profile and the environment into account, and writes JSON', async () => {
    const variable = { APP__EVENTS: 'false' }
    const flags = ['--profile', 'test', '--prefix', 'APP', '--format', 'json', '--replicas', '1']
    const { out } = await run([...web, ...flags], variable)
    const { items, ...list } = JSON.parse(out)
    expect(list).toEqual({ apiVersion: 'v1', kind: 'List' })
    expect(rulesOf(items)).toEqual([
      'default leases work get create update',
      'default configmaps a list watch',
    ])
    expect(deploymentOf(items).spec.replicas).toBe(1)
  })

  it.each([
    ['a flag is missing', ['manifests', '--name', 'web'], {}, "required option '--image <image>'"],
    ['a number is none', [...web, '--port', 'http'], {}, 'It must be a whole number.'],
    ['a number begins as none', [...web, '--port', 'x80'], {}, 'It must be a whole number.'],
    ['a number ends as none', [...web, '--port', '80x'], {}, 'It must be a whole number.'],
    ['a folder has no configuration', [...web, '--config', newFolder()], {}, 'There is no '],
    ['a port is none', [...web, '--port', '70000'], {}, 'It must be a port, from 1 to 65535.'],
    ['a name is no label', [...web, '--name', 'Web_'], {}, 'It must be a DNS label (RFC 1035)'],
    ['a name begins with a digit', [...web, '--name', '1web'], {}, 'It must be a DNS label (RFC 1035)'],
    ['a namespace is no label', [...web, '--namespace', 'a.b'], {}, 'It must be a DNS label (RFC 1123)'],
    ['an image is empty', [...web, '--image', ''], {}, 'It must be the name of an image.'],
    ['a format is unknown', [...web, '--format', 'toml'], {}, 'It must be yaml or json.'],
    ['a variable has no name', [...web, '--env', '=x'], {}, 'It must be <name>=<value>.'],
    ['a command is unknown', ['manifest'], {}, "unknown command 'manifest'"],
    [
      'the configuration is not valid',
      web,
      { KUBERNETES__TYPO: '1' },
      'typo: unknown key (environment KUBERNETES__TYPO)',
    ],
  ])('when %s it says so and ends with an error', async (_, args, env, message) => {
    const { code, out, err } = await run(args, env)
    expect(code).toBe(1)
    expect(out).toBe('')
    expect(err).toContain(message)
  })

  it('helps', async () => {
    const { code, out } = await run(['manifests', '--help'])
    expect(code).toBe(0)
    expect(out).toMatchInlineSnapshot(`
      "Usage: mutantops manifests [options]

      Writes the objects that run an app, from the app's own configuration.

      Options:
        --name <name>                 of the app and of all its objects
        --image <image>               that its pods run
        --namespace <namespace>       where it runs (default: "default")
        --config <folder>             where kubernetes.yaml is (default: config)
        --profile <profile>           whose configuration to use (default: NODE_ENV,
                                      else production)
        --prefix <prefix>             of the variables that set the configuration
                                      (default: "KUBERNETES")
        --replicas <number>           of the Deployment (default: 2)
        --port <number>               where the app listens (default: 8080)
        --env <name=value>            a variable of the container; may be given again
                                      (default: {})
        --pre-stop <seconds>          to wait before SIGTERM (default: 5)
        --grace <seconds>             from SIGTERM to the end of accepting (default:
                                      2)
        --shutdown-timeout <seconds>  for what is in flight then (default: 20)
        --buffer <seconds>            left over before the kubelet kills (default: 5)
        --format <format>             yaml or json (default: "yaml")
        -h, --help                    display help for command
      "
    `)
  })
})
