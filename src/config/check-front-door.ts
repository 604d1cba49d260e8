import { parseRange } from '../policy/authority/client-range.ts'
import type { Problem } from './explain.ts'
import type { Settings } from './schema.ts'

/** Settings of the front door that are good by themselves and wrong together. */
export function checkFrontDoor({ server: { proxyProtocolFrom, tls } }: Settings): Problem[] {
  const problems = proxyProtocolFrom.flatMap((text, i): Problem[] => {
    const range = parseRange(text)
    const path = ['server', 'proxyProtocolFrom', i]
    if (typeof range === 'string') return [{ path, text: range }]
    if (range.prefixBits > 0) return []
    return [{ path, text: 'trusts everybody, so that anybody could invent an address. Name the proxies\u2019 own' }]
  })
  if (tls.clientCaFile !== undefined && tls.certificates.length === 0) {
    const path = ['server', 'tls', 'clientCaFile']
    problems.push({ path, text: 'asks clients for certificates, but there is no TLS. Set server.tls.certificates' })
  }
  return problems
}
