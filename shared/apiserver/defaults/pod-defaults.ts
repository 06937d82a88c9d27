import { isObject } from '../../kinds/object.ts'

type Fields = Record<string, unknown>

/** The defaults of a pod template, as a Deployment has one; `template` has been decoded already. */
export function podTemplateDefaults(template: Fields): Fields {
  const spec = filled(template.spec, {
    restartPolicy: 'Always',
    dnsPolicy: 'ClusterFirst',
    terminationGracePeriodSeconds: 30,
    securityContext: {},
    schedulerName: 'default-scheduler',
  })
  const account = spec.serviceAccountName ?? spec.serviceAccount
  const containers = (list: unknown) => each(list, containerDefaults)
  return {
    ...template,
    spec: {
      ...spec,
      ...containersOf(spec, containers),
      ...(spec.volumes !== undefined && { volumes: each(spec.volumes, volumeDefaults) }),
      // The older name of the field is kept in step with the newer one.
      ...(account !== undefined && { serviceAccountName: account, serviceAccount: account }),
    },
  }
}

function containersOf(spec: Fields, defaults: (list: unknown) => unknown): Fields {
  const lists = ['initContainers', 'containers', 'ephemeralContainers'].filter((name) =>
    Array.isArray(spec[name]),
  )
  return Object.fromEntries(lists.map((name) => [name, defaults(spec[name])]))
}

function containerDefaults(container: Fields): Fields {
  const full = filled(container, {
    terminationMessagePath: '/dev/termination-log',
    terminationMessagePolicy: 'File',
    imagePullPolicy: pullPolicy(String(container.image ?? '')),
  })
  return changed(full, {
    ports: (ports) => each(ports, (port) => filled(port, { protocol: 'TCP' })),
    env: (env) => each(env, envDefaults),
    livenessProbe: probeDefaults,
    readinessProbe: probeDefaults,
    startupProbe: probeDefaults,
    lifecycle: (lifecycle) =>
      changed(lifecycle as Fields, { postStart: handlerDefaults, preStop: handlerDefaults }),
  })
}

/** An image without a tag or digest is `latest`, and `latest` is always pulled. */
function pullPolicy(image: string): string {
  if (image === '' || image.includes('@')) return 'IfNotPresent'
  const tag = /:([^:/]+)$/.exec(image)?.[1] ?? 'latest'
  return tag === 'latest' ? 'Always' : 'IfNotPresent'
}

function envDefaults(env: Fields): Fields {
  return changed(env, { valueFrom: (source) => changed(source as Fields, { fieldRef: fieldRefDefaults }) })
}

const fieldRefDefaults = (ref: unknown) => filled(ref, { apiVersion: 'v1' })

function probeDefaults(probe: unknown): Fields {
  const full = filled(probe, {
    timeoutSeconds: 1,
    periodSeconds: 10,
    successThreshold: 1,
    failureThreshold: 3,
  })
  return handlerDefaults(full)
}

function handlerDefaults(handler: unknown): Fields {
  return changed(handler as Fields, {
    httpGet: (get) => filled(get, { path: '/', scheme: 'HTTP' }),
    grpc: (grpc) => filled(grpc, { service: '' }),
  })
}

function volumeDefaults(volume: Fields): Fields {
  if (Object.keys(volume).every((name) => name === 'name')) return { ...volume, emptyDir: {} }
  const readable = (source: unknown) => filled(source, { defaultMode: 0o644 })
  const downward = (source: unknown) => downwardDefaults(readable(source))
  return changed(volume, {
    secret: readable,
    configMap: readable,
    downwardAPI: downward,
    projected: (source) => changed(readable(source), { sources: (list) => each(list, projectionDefaults) }),
    hostPath: (source) => filled(source, { type: '' }),
    ephemeral: (source) => changed(source as Fields, { volumeClaimTemplate: claimDefaults }),
    iscsi: (source) => filled(source, { iscsiInterface: 'default' }),
  })
}

function projectionDefaults(source: Fields): Fields {
  return changed(source, {
    serviceAccountToken: (token) => filled(token, { expirationSeconds: 3600 }),
    downwardAPI: downwardDefaults,
  })
}

function downwardDefaults(source: unknown): Fields {
  return changed(source as Fields, {
    items: (items) => each(items, (item) => changed(item, { fieldRef: fieldRefDefaults })),
  })
}

function claimDefaults(template: unknown): Fields {
  return changed(template as Fields, { spec: (spec) => filled(spec, { volumeMode: 'Filesystem' }) })
}

/** With the defaults for what is absent. */
function filled(value: unknown, defaults: Fields): Fields {
  const given = isObject(value) ? value : {}
  return {
    ...given,
    ...Object.fromEntries(Object.entries(defaults).filter(([name]) => given[name] === undefined)),
  }
}

/** With these fields changed, where they are there. */
function changed(value: Fields, changes: Record<string, (field: unknown) => unknown>): Fields {
  const out = { ...value }
  for (const [name, change] of Object.entries(changes)) {
    const field = value[name]
    if (field !== undefined && field !== null) out[name] = change(field)
  }
  return out
}

function each(list: unknown, change: (item: Fields) => Fields): unknown {
  return Array.isArray(list) ? list.map((item) => change(item as Fields)) : list
}
