/** What names, labels and keys may look like. Each function gives what is wrong, in the API's words; nothing when all is well. */

const subdomain = String.raw`[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*`
const dnsLabel = '[a-z0-9]([-a-z0-9]*[a-z0-9])?'
const qualified = '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]'
const labelValue = '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?'
const configKey = '[-._a-zA-Z0-9]+'

const subdomainText = `a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '${subdomain}')`
const dnsLabelText = `a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '${dnsLabel}')`
const qualifiedText = `must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '${qualified}')`
const labelValueText = `a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '${labelValue}')`
const configKeyText = `a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '${configKey}')`
const envNameText =
  "a valid environment variable name must consist only of printable ASCII characters other than '='"

const subdomainMax = 253
const labelMax = 63
const portNameMax = 15

const whole = (pattern: string) => new RegExp(`^(?:${pattern})$`)
const tooLong = (text: string, max: number, unit: 'characters' | 'bytes') =>
  Buffer.byteLength(text) > max ? [`must be no more than ${max} ${unit}`] : []
const unless = (good: boolean, text: string) => (good ? [] : [text])

/** A DNS subdomain: what most objects are named by. */
export function subdomainErrors(text: string): string[] {
  return [...tooLong(text, subdomainMax, 'characters'), ...unless(whole(subdomain).test(text), subdomainText)]
}

/** A DNS label: namespaces, volumes. */
export function dnsLabelErrors(text: string): string[] {
  return [...tooLong(text, labelMax, 'characters'), ...unless(whole(dnsLabel).test(text), dnsLabelText)]
}

/** A DNS label for which dots have a message of their own: namespaces and containers. */
export function dotlessErrors(text: string): string[] {
  return text.includes('.') ? ['must not contain dots'] : dnsLabelErrors(text)
}

/** A key of a label, an annotation or a taint: a name, with an optional subdomain and a slash before it. */
export function qualifiedNameErrors(text: string): string[] {
  const parts = text.split('/')
  if (parts.length > 2)
    return [
      `a valid label key ${qualifiedText} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`,
    ]
  const [prefix, name = ''] = parts.length === 2 ? parts : [undefined, text]
  return [...prefixErrors(prefix), ...namePartErrors(name)]
}

function prefixErrors(prefix: string | undefined): string[] {
  if (prefix === undefined) return []
  if (prefix === '') return ['prefix part must be non-empty']
  return subdomainErrors(prefix).map((text) => `prefix part ${text}`)
}

function namePartErrors(name: string): string[] {
  return [
    ...unless(name !== '', 'name part must be non-empty'),
    ...tooLong(name, labelMax, 'bytes').map((text) => `name part ${text}`),
    ...unless(whole(qualified).test(name), `name part ${qualifiedText}`),
  ]
}

export function labelValueErrors(text: string): string[] {
  return [...tooLong(text, labelMax, 'bytes'), ...unless(whole(labelValue).test(text), labelValueText)]
}

/** A key of a Secret's or ConfigMap's data. */
export function configKeyErrors(text: string): string[] {
  const traversal = text === '.' || text === '..' ? [`must not be '${text}'`] : []
  const dotted = text.startsWith('..') && text !== '..' ? ["must not start with '..'"] : []
  return [
    ...tooLong(text, subdomainMax, 'characters'),
    ...unless(whole(configKey).test(text), configKeyText),
    ...traversal,
    ...dotted,
  ]
}

export function envNameErrors(text: string): string[] {
  return unless(/^[ -<>-~]+$/.test(text), envNameText)
}

/** A port's name, as in `http`. */
export function portNameErrors(text: string): string[] {
  return [
    ...tooLong(text, portNameMax, 'characters'),
    ...unless(
      /^[-a-z0-9]+$/.test(text),
      'must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)',
    ),
    ...unless(/[a-z]/.test(text), 'must contain at least one letter (a-z)'),
    ...unless(!text.includes('--'), 'must not contain consecutive hyphens'),
    ...unless(!/^-|-$/.test(text), 'must not begin or end with a hyphen'),
  ]
}
