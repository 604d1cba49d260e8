import { clientAddressOf } from '../policy/authority/client-address.ts'
import { type ClientRange, formatAddress, parseRange } from '../policy/authority/client-range.ts'
import type { HttpRequest } from './http-message.ts'

/**
 * Where does a request come from? The one place that knows: ranges of keys, the allowance of an address and whatever
 * shows an address ask here. Without trusted proxies (`server.trustedProxies`) it is what the connection says, and
 * nothing is parsed.
 */
export type TrustedProxies = readonly ClientRange[]

type Arrived = Pick<HttpRequest, 'headers' | 'socket'>

/** The other end of the connection, which may be a proxy. */
const socketAddress = ({ socket }: Arrived): string | undefined => socket.remoteAddress

/** The client's address as text; undefined when the connection is gone, or a trusted proxy wrote something that is none. */
export function requestAddress(req: Arrived, trusted: TrustedProxies): string | undefined {
  const socket = socketAddress(req)
  if (trusted.length === 0 || socket === undefined) return socket
  // Node joins several headers of this name into one text.
  const forwarded = req.headers['x-forwarded-for'] as string | undefined
  const address = clientAddressOf(socket, forwarded, trusted)
  return address === undefined ? undefined : formatAddress(address)
}

/** The settings have been checked: text that is no range trusts nobody. */
export function readTrusted(ranges: readonly string[] = []): TrustedProxies {
  return ranges.map(parseRange).filter((range) => typeof range !== 'string')
}
