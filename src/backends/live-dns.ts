import { Resolver } from 'node:dns/promises'
import { type DnsAnswer, type DnsResolver, NoSuchName } from './dns-discovery.ts'

/** The system's name servers, asked directly: `lookup` would block a thread and hide the time to live. */
const TIMEOUT_MS = 2_000
const TRIES = 2
const NOBODY: ReadonlySet<unknown> = new Set(['ENOTFOUND', 'ENODATA'])

export class LiveDnsResolver implements DnsResolver {
  readonly #resolver = new Resolver({ timeout: TIMEOUT_MS, tries: TRIES })

  constructor(servers?: readonly string[]) {
    if (servers !== undefined) this.#resolver.setServers([...servers])
  }

  /** One address family may be missing; if both are missing, the name has no address. */
  async addresses(name: string): Promise<readonly DnsAnswer[]> {
    const families = await Promise.allSettled([
      this.#resolver.resolve4(name, { ttl: true }),
      this.#resolver.resolve6(name, { ttl: true }),
    ])
    const found = families.flatMap((family) => (family.status === 'fulfilled' ? family.value : []))
    if (found.length > 0) return found.map(({ address, ttl }) => ({ host: address, ttlS: ttl }))
    throw toFailure(families)
  }

  async services(name: string): Promise<readonly DnsAnswer[]> {
    try {
      const records = await this.#resolver.resolveSrv(name)
      return records.map((record) => ({ host: record.name, port: record.port, ttlS: undefined }))
    } catch (error) {
      throw NOBODY.has((error as { code?: string }).code) ? new NoSuchName(name) : error
    }
  }
}

function toFailure(families: readonly PromiseSettledResult<unknown>[]): unknown {
  const reasons = families.flatMap((family) =>
    family.status === 'rejected' ? [family.reason as { code?: string }] : [],
  )
  return reasons.find(({ code }) => !NOBODY.has(code)) ?? new NoSuchName('nobody')
}
