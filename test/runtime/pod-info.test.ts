import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parseLabels, podInfo } from '../../shared/runtime/pod-info.ts'
import { newFolder } from '../support/folder.ts'

const folder = newFolder()
const missing = join(folder, 'missing')
const fileOf = (name: string, text: string) => {
  const path = join(folder, name)
  writeFileSync(path, text)
  return path
}
const nothing = { namespaceFile: missing, labelsFile: missing }

describe('who this pod is', () => {
  it('AC2: every field comes from its variable', async () => {
    const env = {
      POD_NAME: 'web-1',
      HOSTNAME: 'host',
      POD_NAMESPACE: ' shop ',
      POD_UID: 'u-1',
      NODE_NAME: 'node-a',
      POD_IP: '10.0.0.1',
      POD_SERVICE_ACCOUNT: 'web',
    }
    expect(await podInfo({ env, ...nothing })).toEqual({
      name: 'web-1',
      namespace: 'shop',
      uid: 'u-1',
      nodeName: 'node-a',
      ip: '10.0.0.1',
      serviceAccount: 'web',
      labels: {},
    })
  })

  it.each([
    ['HOSTNAME when POD_NAME is absent', { HOSTNAME: 'host' }, { name: 'host' }],
    ['HOSTNAME when POD_NAME is empty', { POD_NAME: '', HOSTNAME: 'host' }, { name: 'host' }],
    ['HOSTNAME when POD_NAME is blank', { POD_NAME: '  ', HOSTNAME: 'host' }, { name: 'host' }],
    ['nothing when all are empty', { POD_NAME: '', HOSTNAME: '', POD_UID: '', POD_IP: ' ' }, {}],
    ['nothing outside a pod', {}, {}],
  ])('AC2: %s', async (_, env, expected) => {
    expect(await podInfo({ env, ...nothing })).toEqual({ ...expected, labels: {} })
  })

  it.each([
    ['absent', {}],
    ['empty', { POD_NAMESPACE: '' }],
  ])("AC2: the namespace comes from the service account's file when POD_NAMESPACE is %s", async (_, env) => {
    const namespaceFile = fileOf('namespace', 'from-file\n')
    expect((await podInfo({ env, ...nothing, namespaceFile })).namespace).toBe('from-file')
  })

  it('AC2: labels come from the file of the Downward API, and an empty file has none', async () => {
    const labelsFile = fileOf('labels', 'app="web"\npod-template-hash="5d9"\n')
    expect((await podInfo({ env: {}, ...nothing, labelsFile })).labels).toEqual({
      app: 'web',
      'pod-template-hash': '5d9',
    })
    expect((await podInfo({ env: {}, ...nothing, labelsFile: fileOf('none', '') })).labels).toEqual({})
  })
})

describe('labels as Go quotes them', () => {
  it.each([
    ['a=""', { a: '' }],
    ['a= "spaced" ', { a: 'spaced' }],
    ['a=x"y"\nb="y"x\nc', {}],
    ['example.com/a="b=c"', { 'example.com/a': 'b=c' }],
    [String.raw`a="say \"hi\" \\ there"`, { a: 'say "hi" \\ there' }],
    [String.raw`a="\a\b\f\n\r\t\v"`, { a: '\x07\b\f\n\r\t\v' }],
    [String.raw`a="\x41\xe2\x82\xac"`, { a: 'A€' }],
    [String.raw`a="\u20ac and \U0001F600"`, { a: '€ and 😀' }],
    [String.raw`a="\UFFFFFFFF"`, { a: '\ufffd' }],
    ['a="ünïcode"', { a: 'ünïcode' }],
    ['a=unquoted\nb="open\n="x"\nno line\nc="kept"', { c: 'kept' }],
  ])('%s', (text, labels) => {
    expect(parseLabels(text)).toEqual(labels)
  })
})
