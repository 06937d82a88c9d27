import { createHash, generateKeyPairSync, randomBytes, sign } from 'node:crypto'
import { isIP } from 'node:net'

/**
 * A self-signed certificate and its key, as PEM, for a server on this machine: kubectl shows no token to a server
 * without TLS. Made anew at each start, so no key lies on a disk. The encoding is DER (X.690) of what RFC 5280 asks.
 */
export function selfSigned(options: { hosts: readonly string[]; now: Date }): {
  key: string
  certificate: string
} {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const publicInfo = publicKey.export({ type: 'spki', format: 'der' })
  const name = sequence(set(sequence(objectId(commonName), text(0x0c, 'mutantops embedded API'))))
  const body = sequence(
    tagged(0, integer(Buffer.from([2]))),
    integer(serialNumber()),
    sequence(objectId(ecdsaWithSha256)),
    name,
    sequence(time(addDays(options.now, -1)), time(addDays(options.now, validDays))),
    name,
    publicInfo,
    tagged(3, sequence(...extensions(options.hosts, publicInfo))),
  )
  const signature = sign('sha256', body, privateKey)
  const der = sequence(body, sequence(objectId(ecdsaWithSha256)), bits(signature))
  return {
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    certificate: pem(der),
  }
}

const validDays = 365
const commonName = '550403'
const ecdsaWithSha256 = '2a8648ce3d040302'
const basicConstraints = '551d13'
const keyUsage = '551d0f'
const extendedKeyUsage = '551d25'
const serverAuth = '2b06010505070301'
const subjectAltName = '551d11'
const subjectKeyId = '551d0e'

function extensions(hosts: readonly string[], publicInfo: Buffer): Buffer[] {
  const isCritical = element(0x01, Buffer.from([0xff]))
  const names = hosts.map((host) => (isIP(host) ? element(0x87, addressBytes(host)) : text(0x82, host)))
  const keyId = createHash('sha1').update(publicInfo).digest()
  return [
    // It vouches for itself, and for nobody else.
    sequence(objectId(basicConstraints), isCritical, octets(sequence(isCritical, integer(Buffer.from([0]))))),
    // digitalSignature and keyCertSign.
    sequence(objectId(keyUsage), isCritical, octets(element(0x03, Buffer.from([2, 0b1000_0100])))),
    sequence(objectId(extendedKeyUsage), octets(sequence(objectId(serverAuth)))),
    sequence(objectId(subjectKeyId), octets(octets(keyId))),
    sequence(objectId(subjectAltName), octets(sequence(...names))),
  ]
}

function addressBytes(address: string): Buffer {
  if (isIP(address) === 4) return Buffer.from(address.split('.').map(Number))
  const [head = '', tail = ''] = address.split('::')
  const groups = (part: string) => part.split(':').filter((group) => group !== '')
  const missing = 8 - groups(head).length - groups(tail).length
  const all = [
    ...groups(head),
    ...Array<string>(address.includes('::') ? missing : 0).fill('0'),
    ...groups(tail),
  ]
  return Buffer.from(all.map((group) => group.padStart(4, '0')).join(''), 'hex')
}

function serialNumber(): Buffer {
  const bytes = randomBytes(16)
  // Positive, and not shortened by a leading zero.
  bytes[0] = ((bytes[0] as number) & 0x3f) | 0x40
  return bytes
}

function addDays(date: Date, days: number): Date {
  return new Date(date.getTime() + days * 86_400_000)
}

function element(tag: number, ...parts: Buffer[]): Buffer {
  const content = Buffer.concat(parts)
  return Buffer.concat([Buffer.from([tag]), lengthOf(content.length), content])
}

function lengthOf(length: number): Buffer {
  if (length < 0x80) return Buffer.from([length])
  const hex = length.toString(16)
  const bytes = Buffer.from(hex.padStart(hex.length + (hex.length % 2), '0'), 'hex')
  return Buffer.concat([Buffer.from([0x80 | bytes.length]), bytes])
}

const sequence = (...parts: Buffer[]) => element(0x30, ...parts)
const set = (...parts: Buffer[]) => element(0x31, ...parts)
const integer = (bytes: Buffer) => element(0x02, bytes)
const octets = (content: Buffer) => element(0x04, content)
const bits = (content: Buffer) => element(0x03, Buffer.from([0]), content)
const tagged = (tag: number, content: Buffer) => element(0xa0 | tag, content)
const text = (tag: number, value: string) => element(tag, Buffer.from(value))
const objectId = (hex: string) => element(0x06, Buffer.from(hex, 'hex'))
const time = (date: Date) => text(0x18, `${date.toISOString().slice(0, 19).replace(/[-:T]/g, '')}Z`)

function pem(der: Buffer): string {
  const lines = der.toString('base64').match(/.{1,64}/g) ?? []
  return ['-----BEGIN CERTIFICATE-----', ...lines, '-----END CERTIFICATE-----', ''].join('\n')
}
