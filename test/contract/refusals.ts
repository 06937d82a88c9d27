import { beforeAll, expect } from 'vitest'
import { refusal, types } from './api.ts'
import { configMap } from './objects.ts'
import type { Part } from './suite.ts'

export function refusalContract({ api, connection, it }: Part): void {
  let namespace = ''
  beforeAll(async () => {
    namespace = await api().namespace()
    await api().post(`/api/v1/namespaces/${namespace}/configmaps`, configMap('here'))
  })

  /** `NS` in a path stands for the namespace of this part. */
  const refused = (
    line: string,
    code: number,
    reason: string,
    message: string,
    request: { body?: unknown; type?: string; accept?: string } = {},
  ) =>
    it(`${line}${request.body === undefined ? '' : ` with ${JSON.stringify(request.body)}`} is a ${code}`, async () => {
      const [method = '', path = ''] = line.split(' ')
      const answer = await api().send(method, path.replace('NS', namespace), request.body, request)
      expect(refusal(answer)).toEqual({ code, ...(reason && { reason }), message })
    })
  const base = '/api/v1/namespaces/NS/configmaps'
  const noResource = 'the server could not find the requested resource'
  const noMethod = 'the server does not allow this method on the requested resource'

  refused(`GET ${base}/gone`, 404, 'NotFound', 'configmaps "gone" not found')
  refused(
    'GET /apis/apps/v1/namespaces/NS/deployments/gone',
    404,
    'NotFound',
    'deployments.apps "gone" not found',
  )
  refused('GET /api/v1/nothing', 404, 'NotFound', noResource)
  refused('GET /apis/apps/v9/deployments', 404, 'NotFound', noResource)
  refused(`GET ${base}/here/status`, 404, 'NotFound', noResource)
  refused(`POST /api/v1/configmaps`, 405, 'MethodNotAllowed', noMethod, { body: configMap('a') })
  refused(`PUT ${base}`, 405, 'MethodNotAllowed', noMethod, { body: {} })
  refused(`POST ${base}/here`, 405, 'MethodNotAllowed', noMethod, { body: {} })
  refused('DELETE /api/v1/namespaces', 405, 'MethodNotAllowed', noMethod)
  refused(
    'DELETE /api/v1/namespaces/default',
    403,
    'Forbidden',
    'namespaces "default" is forbidden: this namespace may not be deleted',
  )

  const unrecognized = 'the object provided is unrecognized (must be of type ConfigMap): '
  refused(
    `POST ${base}`,
    400,
    'BadRequest',
    `${unrecognized}couldn't get version/kind; json parse error: unexpected end of JSON input ({)`,
    { body: '{' },
  )
  refused(
    `POST ${base}`,
    400,
    'BadRequest',
    `${unrecognized}couldn't get version/kind; json parse error: unexpected end of JSON input (<empty>)`,
    { body: '' },
  )
  const cannot = 'ConfigMap in version "v1" cannot be handled as a ConfigMap: '
  refused(
    `POST ${base}`,
    400,
    'BadRequest',
    `${cannot}json: cannot unmarshal number into Go struct field ConfigMap.data of type string`,
    { body: configMap('a', { data: { a: 1 } }) },
  )
  refused(
    `POST ${base}`,
    400,
    'BadRequest',
    `${cannot}json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string`,
    { body: configMap('a', { metadata: { labels: { a: 1 } } }) },
  )
  refused(
    `POST ${base}`,
    400,
    'BadRequest',
    'Secret in version "v1" cannot be handled as a ConfigMap: converting (v1.Secret) to (core.ConfigMap): unknown conversion',
    { body: { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'a' } } },
  )
  refused(
    `POST ${base}`,
    400,
    'BadRequest',
    'the namespace of the provided object does not match the namespace sent on the request',
    { body: configMap('a', { metadata: { namespace: 'other' } }) },
  )
  refused(
    `PUT ${base}/here`,
    400,
    'BadRequest',
    'the name of the object (there) does not match the name on the URL (here)',
    { body: configMap('there') },
  )
  refused(`POST ${base}`, 500, '', 'resourceVersion should not be set on objects to be created', {
    body: configMap('a', { metadata: { resourceVersion: '5' } }),
  })
  refused(`PUT ${base}/here`, 500, '', 'strconv.ParseUint: parsing "abc": invalid syntax', {
    body: configMap('here', { metadata: { resourceVersion: 'abc' } }),
  })

  refused(
    `POST ${base}`,
    415,
    'UnsupportedMediaType',
    'the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf',
    { body: 'a', type: 'text/plain' },
  )
  refused(`PATCH ${base}/here`, 415, 'UnsupportedMediaType', '415: Unsupported Media Type', {
    body: {},
    type: 'application/json',
  })
  refused(
    `GET ${base}/here`,
    406,
    'NotAcceptable',
    '406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, application/vnd.kubernetes.protobuf',
    { accept: 'image/png' },
  )

  refused(
    `PATCH ${base}/here`,
    400,
    'BadRequest',
    'error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}',
    { body: [], type: types.merge },
  )
  refused(
    `PATCH ${base}/here`,
    400,
    'BadRequest',
    'error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp',
    { body: {}, type: types.jsonPatch },
  )
  refused(`PATCH ${base}/here?fieldManager=a`, 400, 'BadRequest', 'metadata.managedFields must be nil', {
    body: configMap('here', { metadata: { managedFields: [{ manager: 'a' }] } }),
    type: types.apply,
  })
  const patchOptions = 'PatchOptions.meta.k8s.io "" is invalid: '
  refused(
    `PATCH ${base}/here`,
    422,
    'Invalid',
    `${patchOptions}fieldManager: Required value: is required for apply patch`,
    { body: configMap('here'), type: types.apply },
  )
  refused(
    `PATCH ${base}/here?force=true`,
    422,
    'Invalid',
    `${patchOptions}force: Forbidden: may not be specified for non-apply patch`,
    { body: {}, type: types.merge },
  )

  const invalid = (name: string) => `ConfigMap "${name}" is invalid: `
  const subdomain = `a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`
  refused(
    `POST ${base}`,
    422,
    'Invalid',
    `${invalid('')}metadata.name: Required value: name or generateName is required`,
    { body: {} },
  )
  refused(
    `POST ${base}`,
    422,
    'Invalid',
    `${invalid('A_')}metadata.name: Invalid value: "A_": ${subdomain}`,
    { body: configMap('A_') },
  )
  refused(
    `POST ${base}`,
    422,
    'Invalid',
    `${invalid('a')}metadata.finalizers[0]: Invalid value: "b": name is neither a standard finalizer name nor is it fully qualified`,
    { body: configMap('a', { metadata: { finalizers: ['b'] } }) },
  )
  refused(
    `POST ${base}`,
    422,
    'Invalid',
    `${invalid('a')}[metadata.ownerReferences.apiVersion: Invalid value: "": version must not be empty, metadata.ownerReferences.kind: Invalid value: "": must not be empty, metadata.ownerReferences.name: Invalid value: "": must not be empty, metadata.ownerReferences.uid: Invalid value: "": must not be empty]`,
    { body: configMap('a', { metadata: { ownerReferences: [{}] } }) },
  )
  refused(
    `POST ${base}?dryRun=Some`,
    422,
    'Invalid',
    'CreateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["Some"]: supported values: "All"',
    { body: {} },
  )
  refused(
    `DELETE ${base}/here`,
    422,
    'Invalid',
    'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: "Sideways": supported values: "Foreground", "Background", "Orphan", "nil"',
    { body: { propagationPolicy: 'Sideways' } },
  )

  refused(`GET ${base}?limit=many`, 400, 'BadRequest', 'strconv.ParseInt: parsing "many": invalid syntax')
  refused(
    `GET ${base}?resourceVersion=abc`,
    400,
    'BadRequest',
    'invalid resource version: resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing "abc": invalid syntax',
  )
  refused(
    `GET ${base}?resourceVersionMatch=Exact`,
    422,
    'Invalid',
    'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided',
  )
  refused(
    `GET ${base}?fieldSelector=data.x%3D1`,
    400,
    'BadRequest',
    '"data.x" is not a known field selector: only "metadata.name", "metadata.namespace"',
  )
  refused(
    'GET /api/v1/secrets?fieldSelector=data.x%3D1',
    400,
    'BadRequest',
    'field label not supported: data.x',
  )
  refused(
    `GET ${base}?labelSelector=a%20b`,
    400,
    'BadRequest',
    "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt",
  )
  refused(
    `GET ${base}?labelSelector=a%3Db%20c`,
    400,
    'BadRequest',
    "found 'c', expected: ',' or 'end of string'",
  )

  it('a path outside of the API is a plain 404', async () => {
    for (const path of ['/nothing', '/apis/nothing/v1/things']) {
      const answer = await api().get(path)
      expect([answer.code, answer.text]).toEqual([404, '404 page not found\n'])
    }
  })

  it('a version far ahead is not waited for long', async () => {
    const answer = await api().get(
      `/api/v1/namespaces/${namespace}/configmaps/here?resourceVersion=999999999`,
    )
    expect(refusal(answer)).toMatchObject({ code: 504, reason: 'Timeout' })
    expect(answer.body.details).toEqual({
      causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }],
      retryAfterSeconds: 1,
    })
  })

  it('a wrong token is a 401', async () => {
    const response = await connection().stranger('/api/v1/namespaces', { authorization: 'Bearer wrong' })
    expect([response.status, ((await response.json()) as { reason: string }).reason]).toEqual([
      401,
      'Unauthorized',
    ])
  })

  it('probes and the version need no token', async () => {
    const codes = ['/readyz', '/livez', '/version'].map(
      async (path) => (await connection().stranger(path)).status,
    )
    expect(await Promise.all(codes)).toEqual([200, 200, 200])
  })
}
