import { parseRange } from '../policy/authority/client-range.ts'
import type { Problem } from './explain.ts'
import type { Settings } from './schema.ts'

/** Settings of the front door that are good by themselves and wrong together. */
export function checkFrontDoor({ server }: Settings): Problem[] {
  const { proxyProtocolFrom, tls, headersTimeoutMs, requestTimeoutMs } = server
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
  if (requestTimeoutMs < headersTimeoutMs) {
    const path = ['server', 'requestTimeoutMs']
    const text = `is less than server.headersTimeoutMs (${headersTimeoutMs}), but has the headers in it. Raise it or lower the other`
    problems.push({ path, text })
  }
  return problems
}
