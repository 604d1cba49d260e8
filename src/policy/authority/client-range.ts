/**
 * Does a client's address lie within a range?
 *
 * Addresses are text as sockets and proxies write them; ranges are CIDR (RFC 4632, RFC 4291): an address and the number
 * of its leading bits that count. An address is four words of 32 bits; IPv4 uses the last one.
 *
 * - An IPv4 address that is mapped into IPv6 (`::ffff:10.1.2.3`, as a socket that serves both families reports it) is
 *   the IPv4 address, in ranges too. An IPv6 range never contains an IPv4 address, not even `::/0`: somebody who allows
 *   "all of IPv6" has not allowed all of IPv4.
 * - Numbers with leading zeros are refused: some parsers read them as octal, and an address must mean one host.
 * - A range with bits behind its prefix (`10.1.2.3/8`) is refused, because its author may have meant one host.
 *
 * Deliberately not: names of hosts; NAT64 and 6to4, whose embedded address is not the client's to prove.
 * Example: `10.0.0.0/8` contains `10.255.0.1` and `::ffff:10.0.0.1`, and not `11.0.0.1`.
 */
export interface ClientAddress {
  readonly family: 4 | 6
  readonly words: readonly [number, number, number, number]
}

export interface ClientRange extends ClientAddress {
  /** Leading bits that count, of the 32 or 128 of the family. */
  readonly prefixBits: number
}

/** Longer text is no address: 45 characters are the longest, and a zone has a name of an interface. */
const ADDRESS_LENGTH_MAX = 64

/** The address in this text; undefined when it is none. A zone (`fe80::1%eth0`) is left out: it names our interface. */
export function parseAddress(text: string): ClientAddress | undefined {
  if (text.length > ADDRESS_LENGTH_MAX) return undefined
  const zoneAt = text.indexOf('%')
  return parsePlain(zoneAt > 0 && text.includes(':') ? text.slice(0, zoneAt) : text)
}

/** The range in this text, or what is wrong with it. A bare address is a range of one. */
export function parseRange(text: string): ClientRange | string {
  if (text.length > ADDRESS_LENGTH_MAX) return 'is too long for an address range'
  const slashAt = text.indexOf('/')
  const address = parsePlain(slashAt === -1 ? text : text.slice(0, slashAt))
  if (address === undefined) return 'is no address range: write it as 10.0.0.0/8 or 2001:db8::/32'
  const bits = address.family === 4 ? 32 : 128
  if (slashAt === -1) return { ...address, prefixBits: bits }
  const isMapped = address.family === 4 && text.includes(':')
  const digits = text.slice(slashAt + 1)
  const prefixBits = /^(0|[1-9][0-9]{0,2})$/.test(digits) ? Number(digits) - (isMapped ? 96 : 0) : Number.NaN
  if (!(prefixBits >= 0 && prefixBits <= bits)) return `has the prefix /${digits}, which is not one of its family`
  const range: ClientRange = { ...address, prefixBits }
  if (!sameWords(range.words, maskedWords(range))) {
    return `has bits behind its prefix: write ${formatRange({ ...range, words: maskedWords(range) })}`
  }
  return range
}

export function isInRange(range: ClientRange, address: ClientAddress): boolean {
  return (
    range.family === address.family && sameWords(range.words, maskedWords({ ...address, prefixBits: range.prefixBits }))
  )
}

/** Whether every address of the inner range lies within the outer one. */
export function isRangeWithin(outer: ClientRange, inner: ClientRange): boolean {
  return inner.prefixBits >= outer.prefixBits && isInRange(outer, inner)
}

/** One spelling for each address: IPv4 with dots, IPv6 in eight groups without `::`. */
export function formatAddress({ family, words }: ClientAddress): string {
  if (family === 4) return [24, 16, 8, 0].map((shift) => (words[3] >>> shift) & 0xff).join('.')
  return words.flatMap((word) => [(word >>> 16).toString(16), (word & 0xffff).toString(16)]).join(':')
}

export const formatRange = (range: ClientRange): string => `${formatAddress(range)}/${range.prefixBits}`

function parsePlain(text: string): ClientAddress | undefined {
  if (!text.includes(':')) {
    const word = parseDotted(text)
    return word === undefined ? undefined : { family: 4, words: [0, 0, 0, word] }
  }
  const words = parseGroups(text)
  if (words === undefined) return undefined
  const isMapped = words[0] === 0 && words[1] === 0 && words[2] === 0xffff
  return isMapped ? { family: 4, words: [0, 0, 0, words[3]] } : { family: 6, words }
}

function parseDotted(text: string): number | undefined {
  const parts = text.split('.')
  if (parts.length !== 4) return undefined
  let word = 0
  for (const part of parts) {
    if (!/^(0|[1-9][0-9]{0,2})$/.test(part) || Number(part) > 255) return undefined
    word = word * 256 + Number(part)
  }
  return word
}

function parseGroups(text: string): ClientAddress['words'] | undefined {
  const halves = text.split('::')
  if (halves.length > 2) return undefined
  const [head, tail] = halves.map((half) => (half === '' ? [] : groupsOf(half)))
  if (head === undefined || (halves.length === 2 && tail === undefined)) return undefined
  const missing = 8 - head.length - (tail?.length ?? 0)
  // `::` stands for one group at least.
  if (tail === undefined ? missing !== 0 : missing < 1) return undefined
  const groups = tail === undefined ? head : [...head, ...Array<number>(missing).fill(0), ...tail]
  const word = (i: number): number => (((groups[2 * i] ?? 0) << 16) | (groups[2 * i + 1] ?? 0)) >>> 0
  return [word(0), word(1), word(2), word(3)]
}

/** Groups of 16 bits; the last two may be written with dots. */
function groupsOf(half: string): number[] | undefined {
  const parts = half.split(':')
  const groups: number[] = []
  for (const [i, part] of parts.entries()) {
    if (part.includes('.')) {
      const word = i === parts.length - 1 ? parseDotted(part) : undefined
      if (word === undefined) return undefined
      groups.push(word >>> 16, word & 0xffff)
    } else if (/^[0-9a-fA-F]{1,4}$/.test(part)) groups.push(Number.parseInt(part, 16))
    else return undefined
  }
  return groups
}

function maskedWords({ family, words, prefixBits }: ClientRange): ClientAddress['words'] {
  const from = family === 4 ? 96 : 0
  const mask = (i: number): number => {
    const bits = Math.min(32, Math.max(0, prefixBits + from - 32 * i))
    // A shift by 32 would be a shift by 0.
    return bits === 0 ? 0 : ((words[i] ?? 0) & (-1 << (32 - bits))) >>> 0
  }
  return [mask(0), mask(1), mask(2), mask(3)]
}

function sameWords(one: ClientAddress['words'], other: ClientAddress['words']): boolean {
  return one[0] === other[0] && one[1] === other[1] && one[2] === other[2] && one[3] === other[3]
}
