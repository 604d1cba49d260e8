/**
 * Is this address, header or text fit to be entered? Pure checks, without any question to the network: a name is not
 * resolved here, so a name of a stranger's that points to such an address is not found. Every function returns what is
 * wrong and what to do, in the words of `explain.ts`, or undefined.
 *
 * Refused are addresses that no engine has, and that lead to secrets where a server calls them for somebody else: the
 * link-local ranges (RFC 3927, RFC 4291) and the metadata services of clouds, which give out credentials to whoever
 * asks. `upstreams.hostsAllowed` allows single ones.
 */
export function addressProblem(text: string, hostsAllowed: readonly string[]): string | undefined {
  const odd = controlCharacterProblem(text)
  if (odd !== undefined) return odd
  let url: URL
  try {
    url = new URL(text)
  } catch {
    return 'is no address. Set it to an address such as http://gpu-1:8000/v1'
  }
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    return `begins with "${url.protocol}". Set it to an address that begins with http: or https:`
  }
  return hostProblem(url.hostname, hostsAllowed)
}

/** The same for a host alone, or with its port: `10.0.0.10:53`. */
export function hostProblem(host: string, hostsAllowed: readonly string[]): string | undefined {
  const name = canonicalHost(host)
  if (name === undefined) return 'is no host. Set it to a name or an address such as 10.0.0.10'
  if (hostsAllowed.some((allowed) => canonicalHost(allowed) === name)) return undefined
  const what = forbiddenKind(name)
  if (what === undefined) return undefined
  return `is ${what}. Set it to an engine’s address, or allow this one with upstreams.hostsAllowed`
}

/** Names and addresses of the metadata services of clouds, beside those in the link-local range. */
const METADATA_HOSTS = [
  'metadata',
  'metadata.google.internal',
  'metadata.goog',
  'instance-data',
  'instance-data.ec2.internal',
  'metadata.azure.internal',
  'metadata.tencentyun.com',
  // Alibaba Cloud, Oracle Cloud, Azure; AWS and Google Cloud over IPv6.
  '100.100.100.200',
  '192.0.0.192',
  '168.63.129.16',
  '[fd00:ec2::254]',
  '[fd20:ce::254]',
]

function forbiddenKind(host: string): string | undefined {
  if (METADATA_HOSTS.includes(host)) return 'the metadata service of a cloud'
  const parts = host.startsWith('[') ? groupsOf(host) : undefined
  const ipv4 = parts === undefined ? host : embeddedIpv4(parts)
  if (ipv4 !== undefined && METADATA_HOSTS.includes(ipv4)) return 'the metadata service of a cloud'
  const isLinkLocal = ipv4?.startsWith('169.254.') || ((parts?.[0] ?? 0) & 0xffc0) === 0xfe80
  return isLinkLocal ? 'a link-local address' : undefined
}

/**
 * The host as URLs write it, whatever it was written as: 2852039166 and 0xa9.0xfe.0xa9.0xfe are 169.254.169.254, and a
 * last dot means nothing.
 */
function canonicalHost(host: string): string | undefined {
  const isBareIpv6 = /^[0-9a-f:.]*:[0-9a-f:.]*:[0-9a-f:.]*$/i.test(host)
  try {
    return new URL(`http://${isBareIpv6 ? `[${host}]` : host}/`).hostname.replace(/\.$/, '')
  } catch {
    return undefined
  }
}

/** The eight groups of an IPv6 address in brackets. */
function groupsOf(host: string): number[] {
  const [head = '', tail] = host.slice(1, -1).split('::')
  const read = (text: string): number[] =>
    text === '' ? [] : text.split(':').map((group) => Number.parseInt(group, 16))
  const [before, after] = [read(head), read(tail ?? '')]
  const missing = tail === undefined ? 0 : 8 - before.length - after.length
  return [...before, ...Array.from({ length: missing }, () => 0), ...after]
}

/** The IPv4 address inside one of IPv6: mapped (::ffff:0:0/96), translated (64:ff9b::/96) or 6to4 (2002::/16). */
function embeddedIpv4(groups: readonly number[]): string | undefined {
  const starts = (...prefix: number[]): boolean => prefix.every((group, i) => groups[i] === group)
  const at =
    starts(0, 0, 0, 0, 0, 0xffff) || starts(0x64, 0xff9b, 0, 0, 0, 0) || starts(0, 0, 0, 0, 0, 0)
      ? 6
      : starts(0x2002)
        ? 1
        : undefined
  if (at === undefined) return undefined
  const [high = 0, low = 0] = groups.slice(at, at + 2)
  return [high >> 8, high & 255, low >> 8, low & 255].join('.')
}

/** Headers that frame a message or belong to one connection: a value of one's own would smuggle a second request. */
const FRAMING_HEADERS = [
  'connection',
  'content-length',
  'expect',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]

/** What is wrong with a header's name (RFC 9110, 5.1). */
export function headerNameProblem(name: string): string | undefined {
  if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(name)) {
    return 'is no name of a header. Use letters, digits and hyphens'
  }
  return FRAMING_HEADERS.includes(name.toLowerCase())
    ? 'is a header that the connection itself sets. Remove it'
    : undefined
}

/** What is wrong with a header's value (RFC 9110, 5.5). The value is not shown: it may be a secret. */
export function headerValueProblem(value: string): string | undefined {
  const isFit = Array.from(value).every(
    (letter) => letter === '\t' || (letter >= ' ' && letter <= 'ÿ' && !isControl(letter)),
  )
  return isFit ? undefined : 'has a line break, or a letter that no header can carry. Remove it'
}

/** Control characters: line breaks end headers and log lines, others repaint terminals. */
export function controlCharacterProblem(text: string): string | undefined {
  return Array.from(text).some(isControl) ? 'has a line break or another control character. Remove it' : undefined
}

const isControl = (letter: string): boolean => letter < ' ' || (letter >= '\u007f' && letter <= '\u009f')
