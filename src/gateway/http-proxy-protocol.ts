import { isIP } from 'node:net'

/**
 * The PROXY protocol (versions 1 and 2, as HAProxy defines it): a proxy that passes on bytes says in front of them
 * whose bytes they are. A client could say it too, so only connections of proxies that are trusted are read this way;
 * theirs must begin with a header, because a header that may be missing could be forged by whom the proxy serves.
 */
export type ProxyHeader =
  | { readonly kind: 'incomplete' }
  | { readonly kind: 'invalid' }
  /** `address` is undefined where the proxy speaks for itself (a health check) or does not say. */
  | { readonly kind: 'ok'; readonly length: number; readonly address: string | undefined }

const INCOMPLETE: ProxyHeader = { kind: 'incomplete' }
const INVALID: ProxyHeader = { kind: 'invalid' }

/** The longest header of version 1, with its line end. */
const TEXT_BYTES_MAX = 107
/** Addresses and additions of version 2. Clouds add some hundred bytes about their endpoints. */
const BINARY_BYTES_MAX = 4_096
const SIGNATURE = Buffer.from([0x0d, 0x0a, 0x0d, 0x0a, 0x00, 0x0d, 0x0a, 0x51, 0x55, 0x49, 0x54, 0x0a])
const TEXT_START = Buffer.from('PROXY ', 'latin1')

export function readProxyHeader(bytes: Buffer): ProxyHeader {
  if (startsAs(bytes, SIGNATURE)) return bytes.length < 16 ? INCOMPLETE : readBinary(bytes)
  if (startsAs(bytes, TEXT_START)) return readText(bytes)
  return INVALID
}

/** As far as there are bytes, they are these. */
function startsAs(bytes: Buffer, start: Buffer): boolean {
  const length = Math.min(bytes.length, start.length)
  return bytes.compare(start, 0, length, 0, length) === 0
}

function readText(bytes: Buffer): ProxyHeader {
  const end = bytes.subarray(0, TEXT_BYTES_MAX).indexOf('\r\n')
  if (end < 0) return bytes.length < TEXT_BYTES_MAX ? INCOMPLETE : INVALID
  const [, family, source, destination, ...ports] = bytes.toString('latin1', 0, end).split(' ')
  const length = end + 2
  if (family === 'UNKNOWN') return { kind: 'ok', length, address: undefined }
  const version = family === 'TCP4' ? 4 : family === 'TCP6' ? 6 : undefined
  const isGood =
    version !== undefined &&
    isIP(source ?? '') === version &&
    isIP(destination ?? '') === version &&
    ports.length === 2 &&
    ports.every((port) => /^(0|[1-9]\d{0,4})$/.test(port) && Number(port) <= 65_535)
  return isGood ? { kind: 'ok', length, address: source } : INVALID
}

function readBinary(bytes: Buffer): ProxyHeader {
  const [versionAndCommand = 0, familyAndProtocol = 0] = bytes.subarray(12, 14)
  const length = 16 + bytes.readUInt16BE(14)
  const command = versionAndCommand & 15
  if (versionAndCommand >> 4 !== 2 || command > 1 || length > BINARY_BYTES_MAX) return INVALID
  if (bytes.length < length) return INCOMPLETE
  if (command === 0) return { kind: 'ok', length, address: undefined }
  const family = familyAndProtocol >> 4
  if (family === 1 && length >= 16 + 12) return { kind: 'ok', length, address: bytes.subarray(16, 20).join('.') }
  if (family === 2 && length >= 16 + 36) return { kind: 'ok', length, address: addressOf(bytes.subarray(16, 32)) }
  // Unix sockets and what is not specified have no address that could be charged.
  return family === 0 || family === 3 ? { kind: 'ok', length, address: undefined } : INVALID
}

/** An IPv6 address as Node writes it: the URL parser shortens zeros in the same way. */
function addressOf(bytes: Buffer): string {
  const groups = Array.from({ length: 8 }, (_, i) => bytes.readUInt16BE(2 * i).toString(16))
  const mapped = /^(0:){5}ffff:/.test(groups.join(':'))
  if (mapped) return `::ffff:${bytes.subarray(12).join('.')}`
  return new URL(`http://[${groups.join(':')}]`).hostname.slice(1, -1)
}
