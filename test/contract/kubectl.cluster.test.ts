import { spawn } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type ApiServer, apiServer } from '../../shared/apiserver/server.ts'
import { realCluster } from '../control-plane/cluster.ts'
import { normal } from './api.ts'
import { deployment, widget, widgetCrd } from './objects.ts'

/** A real kubectl against the embedded API by socket, as a user would run it. Here because kubectl comes with the real control plane. */

let server: ApiServer
let folder: string

beforeAll(async () => {
  server = apiServer()
  const { url } = await server.listen()
  folder = await mkdtemp(join(tmpdir(), 'mutantops-kubectl-'))
  await writeFile(join(folder, 'kubeconfig'), JSON.stringify(server.kubeconfig(url)), { mode: 0o600 })
  await apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } })
  await apply(widgetCrd())
})

afterAll(async () => {
  await server.stop()
  await rm(folder, { recursive: true })
})

interface Run {
  stdout: string
  stderr: string
  code: number
}

function start(args: string[], env: Record<string, string> = {}) {
  return spawn(realCluster.binaries.kubectl, args, {
    env: { PATH: process.env.PATH, HOME: folder, KUBECONFIG: join(folder, 'kubeconfig'), ...env },
    stdio: 'pipe',
  })
}

/** Runs kubectl to its end. */
function run(args: string[], options: { stdin?: string; env?: Record<string, string> } = {}): Promise<Run> {
  return new Promise((resolve, reject) => {
    const child = start(args, options.env)
    const result: Run = { stdout: '', stderr: '', code: 1 }
    child.stdout.on('data', (chunk: Buffer) => {
      result.stdout += chunk.toString()
    })
    child.stderr.on('data', (chunk: Buffer) => {
      result.stderr += chunk.toString()
    })
    child.on('error', reject)
    child.on('close', (code) => resolve({ ...result, code: code ?? 1 }))
    child.stdin.end(options.stdin ?? '')
  })
}

/** Runs a line in the namespace of the test; fails with what kubectl said when it fails. */
async function kubectl(line: string, options: Parameters<typeof run>[1] = {}): Promise<string> {
  const { stdout, stderr, code } = await run(
    ['-n', 'shop', ...line.split(' ').filter((word) => word !== '')],
    options,
  )
  if (code !== 0) throw new Error(`kubectl ${line}: ${stderr || stdout}`)
  return stdout
}

const apply = (object: object, flags = '--server-side') =>
  kubectl(`apply ${flags} -f -`, { stdin: JSON.stringify(object) })

const columnsOf = (text: string) => text.split('\n').map((line) => line.trim().split(/\s{2,}/))

describe('kubectl on the embedded API', () => {
  it('api-resources names the kinds, with those of CRDs', async () => {
    const lines = await kubectl('api-resources')
    expect(lines).toMatch(/^deployments +deploy +apps\/v1 +true +Deployment$/m)
    expect(lines).toMatch(/^widgets +xwidgets +contract.neiam.org\/v1 +true +Widget$/m)
    expect(await kubectl('api-resources --categories=contract -o name')).toBe('widgets.contract.neiam.org\n')
  })

  it('get: tables, wide, selectors, all namespaces, short names, YAML', async () => {
    await apply(deployment('seen', { replicas: 2 }))
    const [head, row] = columnsOf(await kubectl('get deploy seen'))
    expect(head).toEqual(['NAME', 'READY', 'UP-TO-DATE', 'AVAILABLE', 'AGE'])
    expect(row?.slice(0, 4)).toEqual(['seen', '2/2', '2', '2'])
    expect(await kubectl('get deploy seen -o wide')).toMatch(
      /CONTAINERS +IMAGES +SELECTOR[\s\S]*main +nginx +app=seen/,
    )
    expect(await kubectl('get deploy -A -l app=seen -o name')).toBe('deployment.apps/seen\n')
    expect(await kubectl('get deploy -l app!=seen --field-selector metadata.name=seen -o name')).toBe('')
    expect(await kubectl('get deployments.v1.apps seen -o yaml')).toMatch(/^ {2}replicas: 2$/m)
    await apply(widget('seen', { size: 3, tags: ['a'] }))
    expect(columnsOf(await kubectl('get xwidgets'))[0]).toEqual(['NAME', 'SIZE', 'READY', 'AGE'])
    expect(await kubectl('get contract -o name')).toBe('widget.contract.neiam.org/seen\n')
    expect(await kubectl('get all')).toMatch(/^seen +2\/2/m)
  })

  it('get -w shows changes as they come', async () => {
    const child = start(['-n', 'shop', 'get', 'cm', '-w', '-o', 'name'])
    const seen = new Promise<string>((resolve) => {
      let text = ''
      child.stdout.on('data', (chunk: Buffer) => {
        text += chunk.toString()
        if (text.includes('late')) resolve(text)
      })
    })
    await apply({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'late' } })
    expect(await seen).toContain('configmap/late')
    child.kill()
  })

  it('apply, server-side: created, unchanged, changed, in conflict', async () => {
    expect(await apply(deployment('ssa'))).toBe('deployment.apps/ssa serverside-applied\n')
    expect(await apply(deployment('ssa', { replicas: 1 }))).toBe('deployment.apps/ssa serverside-applied\n')
    const refused = run(['-n', 'shop', 'apply', '--server-side', '--field-manager=other', '-f', '-'], {
      stdin: JSON.stringify(deployment('ssa', { replicas: 3 })),
    })
    expect((await refused).stderr).toContain('conflict with "kubectl": .spec.replicas')
    await apply(deployment('ssa', { replicas: 3 }), '--server-side --field-manager=other --force-conflicts')
  })

  it('apply, client-side: created, unchanged, configured', async () => {
    expect(await apply(deployment('csa'), '')).toBe('deployment.apps/csa created\n')
    expect(await apply(deployment('csa'), '')).toBe('deployment.apps/csa unchanged\n')
    const changed = deployment('csa', {}, { image: 'nginx:2', env: [{ name: 'A', value: '1' }] })
    expect(await apply(changed, '')).toBe('deployment.apps/csa configured\n')
    expect(await kubectl('get deploy csa -o jsonpath={..image}')).toBe('nginx:2')
    expect(await apply(widget('csa', { size: 1 }), '')).toBe('widget.contract.neiam.org/csa created\n')
    expect(await apply(widget('csa', { size: 2 }), '')).toBe('widget.contract.neiam.org/csa configured\n')
  })

  it('apply refuses an unknown field before anything is written', async () => {
    const { code, stderr } = await run(['-n', 'shop', 'apply', '-f', '-'], {
      stdin: JSON.stringify(deployment('typo', { replica: 1 })),
    })
    expect([code, stderr]).toEqual([1, expect.stringContaining('unknown field "spec.replica"')])
    expect((await run(['-n', 'shop', 'get', 'deploy', 'typo'])).stderr).toContain('NotFound')
  })

  it('label, annotate, scale, patch in its three types, set image', async () => {
    await apply(deployment('tuned'))
    await kubectl('label deploy tuned tier=web')
    await kubectl('annotate deploy tuned note=x')
    await kubectl('scale deploy tuned --replicas=3')
    await kubectl(
      'patch deploy tuned --type=json -p [{"op":"add","path":"/metadata/labels/json","value":"yes"}]',
    )
    await kubectl('patch deploy tuned --type=merge -p {"metadata":{"labels":{"merge":"yes"}}}')
    await kubectl(
      'patch deploy tuned -p {"spec":{"template":{"spec":{"containers":[{"name":"second","image":"b"}]}}}}',
    )
    await kubectl('set image deploy/tuned main=c')
    const tuned = JSON.parse(await kubectl('get deploy tuned -o json'))
    expect(tuned.metadata.labels).toEqual({ app: 'tuned', tier: 'web', json: 'yes', merge: 'yes' })
    expect(tuned.metadata.annotations).toMatchObject({ note: 'x' })
    expect(tuned.spec.replicas).toBe(3)
    const containers = tuned.spec.template.spec.containers as { name: string; image: string }[]
    expect(containers.map(({ name, image }) => `${name} ${image}`).sort()).toEqual(['main c', 'second b'])
    await apply(widget('tuned', { size: 1, replicas: 1 }))
    expect(await kubectl('scale xwidgets tuned --replicas=4')).toContain('scaled')
    expect(await kubectl('get xwidgets tuned -o jsonpath={.spec.replicas}')).toBe('4')
  })

  it('edit writes what the editor wrote', async () => {
    await apply(deployment('edited'))
    const script = join(folder, 'editor.sh')
    await writeFile(script, '#!/bin/sh\nsed -i "s/replicas: 0/replicas: 2/" "$1"\n', { mode: 0o700 })
    await kubectl('edit deploy edited', { env: { EDITOR: script } })
    expect(await kubectl('get deploy edited -o jsonpath={.spec.replicas}')).toBe('2')
  })

  it('rollout status and restart, wait for a condition', async () => {
    await apply(deployment('rolled', { replicas: 2 }))
    expect(await kubectl('rollout status deploy/rolled --timeout=10s')).toContain('successfully rolled out')
    expect(await kubectl('rollout restart deploy/rolled')).toContain('restarted')
    expect(await kubectl('rollout status deploy/rolled --timeout=10s')).toContain('successfully rolled out')
    expect(await kubectl('wait --for=condition=Available deploy/rolled --timeout=10s')).toContain(
      'condition met',
    )
    expect(
      await kubectl('wait --for=jsonpath={.status.readyReplicas}=2 deploy/rolled --timeout=10s'),
    ).toContain('condition met')
    await apply(widget('waited', { size: 1 }))
    const waiting = kubectl('wait --for=condition=Ready xwidgets/waited --timeout=20s')
    // kubectl takes no condition for true that is about an older generation.
    const conditions = [{ type: 'Ready', status: 'True' }]
    const ready = { status: { observedGeneration: 1, conditions } }
    await kubectl(`patch xwidgets waited --subresource=status --type=merge -p ${JSON.stringify(ready)}`)
    expect(await waiting).toContain('condition met')
  })

  it('describe, diff and explain', async () => {
    await apply(deployment('told'), '')
    const told = await kubectl('describe deploy told')
    expect(told).toMatch(/^Name: +told$/m)
    expect(told).toMatch(/^Selector: +app=told$/m)
    const diff = await run(['-n', 'shop', 'diff', '-f', '-'], {
      stdin: JSON.stringify(deployment('told', {}, { image: 'other' })),
    })
    expect(diff.stdout).toMatch(/^\+ +- image: other$|^\+ +image: other$|^\+.*image: other/m)
    expect(diff.code).toBe(1)
    expect(await kubectl('explain widget.spec.size')).toMatch(/FIELD: size <integer>/)
    expect(await kubectl('explain deployment.spec.strategy.type')).toMatch(/FIELD: type <string>/)
    expect(await kubectl('explain widget.metadata')).toMatch(/managedFields\t<\[\]Object>/)
    for (const kind of ['configmap', 'deployment', 'namespace', 'secret', 'lease', 'event', 'crd'])
      expect(await kubectl(`explain ${kind} --recursive`)).toContain('KIND:')
  })

  it.each([
    'namespace made',
    'configmap made --from-literal=a=b --from-literal=empty=',
    'secret generic made --from-literal=a=b',
    'deployment made --image=nginx --replicas=2 --port=80 -- run it',
  ])('create %s, which it sends as protobuf, makes what the real server makes of it', async (what) => {
    const namespace = await realCluster.newNamespace()
    const [command, ...rest] = what.split(' -- ')
    const asked = [
      ...`create ${command} --dry-run=server -o json`.split(' '),
      ...rest.flatMap((line) => ['--', ...line.split(' ')]),
    ]
    const made = async ({ stdout, stderr }: Run, inNamespace: string) => {
      expect(stderr).toBe('')
      return normal(JSON.parse(stdout.replaceAll(`"${inNamespace}"`, '"<namespace>"')))
    }
    const mine = await made(await run(['-n', 'shop', ...asked]), 'shop')
    expect(mine).toEqual(await made(await realCluster.kubectl(['-n', namespace, ...asked]), namespace))
    expect((await run(['-n', 'shop', 'create', ...(command ?? '').split(' ')])).stdout).toContain(
      '/made created',
    )
  })

  it('delete waits until the object, and what it owns, is gone', async () => {
    await apply({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'owner' } })
    const uid = await kubectl('get cm owner -o jsonpath={.metadata.uid}')
    const ownerReferences = [
      { apiVersion: 'v1', kind: 'ConfigMap', name: 'owner', uid, blockOwnerDeletion: true },
    ]
    await apply({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'owned', ownerReferences } })
    expect(await kubectl('delete cm owner --cascade=foreground --timeout=10s')).toContain('deleted')
    expect((await run(['-n', 'shop', 'get', 'cm', 'owned'])).stderr).toContain('NotFound')
    await kubectl('delete deploy --all --timeout=10s')
    expect(await kubectl('get deploy -o name')).toBe('')
  })

  it('delete of a namespace takes all that is in it', async () => {
    await apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'doomed' } })
    await run(['-n', 'doomed', 'apply', '--server-side', '-f', '-'], {
      stdin: JSON.stringify(deployment('gone')),
    })
    expect(await kubectl('delete ns doomed --timeout=10s')).toContain('deleted')
    expect(await kubectl('get deploy -A --field-selector metadata.namespace=doomed -o name')).toBe('')
  })
})
