import { type ClientAddress, type ClientRange, isInRange, parseAddress } from './client-range.ts'

/**
 * Which address does a request come from, when proxies stand before the gateway?
 *
 * A proxy adds the address that it was called from to the right of `x-forwarded-for`; what stands further left was
 * written by the caller and may be invented. So the list is read from the right, beginning with the socket's own
 * address: as long as an address belongs to a trusted proxy, the next one on the left is believed. The first address
 * that does not belong to a trusted proxy is the client's.
 *
 * Example: trusted 10.0.0.0/8, socket 10.0.0.1, header `1.2.3.4, 203.0.113.9, 10.0.0.2`: the client is 203.0.113.9, and
 * 1.2.3.4 is only what that client says.
 */

/** Some proxies add the port: `203.0.113.9:4711`, `[2001:db8::1]:4711`. */
function withoutPort(text: string): string {
  return /^\[([^\]]*)\](:\d{1,5})?$/.exec(text)?.[1] ?? /^([\d.]+):\d{1,5}$/.exec(text)?.[1] ?? text
}

/** Proxies in a row at most: a longer header was not written by our proxies. */
const HOPS_MAX = 16

/** The client's address; undefined when a trusted proxy wrote something that is none, which no range contains. */
export function clientAddressOf(
  socketAddress: string,
  forwardedFor: string | undefined,
  trusted: readonly ClientRange[],
): ClientAddress | undefined {
  const before = forwardedFor === undefined || trusted.length === 0 ? [] : forwardedFor.split(',').slice(-HOPS_MAX)
  let address = parseAddress(socketAddress)
  for (let i = before.length - 1; i >= 0; i--) {
    const here = address
    if (here === undefined || !trusted.some((range) => isInRange(range, here))) return here
    address = parseAddress(withoutPort((before[i] ?? '').trim()))
  }
  return address
}
