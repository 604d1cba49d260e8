import type { Key, Tenant } from '../domain/tenant.ts'
import type { Caller, KeyDirectory, Peer, PeerDirectory } from './authenticate.ts'

/**
 * Who may call, and on which terms. The whole directory is replaced at once when the configuration is read again:
 * requests that come later find the new terms, tickets that wait keep the ones they came with.
 */
export class TenantDirectory implements KeyDirectory, PeerDirectory {
  #callers: ReadonlyMap<string, Caller> = new Map()
  #tenants: ReadonlyMap<string, Tenant> = new Map()

  readonly #peers: ReadonlyMap<string, Peer>
  /** Made when first asked for: a caller must be the same object every time, because its standing hangs on it. */
  readonly #behalf = new Map<string, Caller>()

  constructor(
    tenants: readonly Tenant[],
    keys: ReadonlyArray<{ readonly key: Key; readonly hash: string }>,
    peers: ReadonlyArray<{ readonly region: string; readonly hash: string }> = [],
  ) {
    this.#peers = new Map(peers.map(({ region, hash }) => [hash.replace(/^sha256:/, ''), { region }]))
    this.replace(tenants, keys)
  }

  byHash(digest: string): Caller | undefined {
    return this.#callers.get(digest)
  }

  peerByHash(digest: string): Peer | undefined {
    return this.#peers.get(digest)
  }

  /**
   * On its own terms, with two exceptions. It is never degraded here: the ladder is climbed by the gateway whose client it
   * is, which tells the client. And it spends from no key: its own gateway has counted it against one.
   */
  onBehalf({ region }: Peer, tenantId: string): Caller | undefined {
    const name = `${region}/${tenantId}`
    const known = this.#behalf.get(name)
    if (known !== undefined) return known
    const tenant = this.#tenants.get(tenantId)
    if (tenant === undefined) return undefined
    const caller: Caller = {
      tenant: { ...tenant, contract: 'reject' },
      key: { id: `${tenantId}@${region}`, tenantId, weight: 1, allowance: {} },
    }
    this.#behalf.set(name, caller)
    return caller
  }

  get tenants(): ReadonlyMap<string, Tenant> {
    return this.#tenants
  }

  replace(tenants: readonly Tenant[], keys: ReadonlyArray<{ readonly key: Key; readonly hash: string }>): void {
    const byId = new Map(tenants.map((tenant) => [tenant.id, tenant]))
    const callers = new Map<string, Caller>()
    for (const { key, hash } of keys) {
      const tenant = byId.get(key.tenantId)
      if (tenant !== undefined) callers.set(hash.replace(/^sha256:/, ''), { tenant, key })
    }
    this.#tenants = byId
    this.#behalf.clear()
    this.#callers = callers
  }
}
